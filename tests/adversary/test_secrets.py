"""No secret that the product is given comes out of it: not in logs, errors, answers, databases or traces.

Each secret setting holds a canary. Providers and price sources answer in the ways that leak: they repeat the key in the
body of an error, are slow, break off, or make a parser fail on what they sent.
"""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx
from pydantic import SecretStr

from advisor import database
from advisor.doctor import checks
from advisor.redaction import HIDDEN, RedactingFormatter, Redaction, secret_values, without_password
from advisor.settings import Settings
from integrations.http import logs
from integrations.http.settings import ServiceSettings
from integrations.hub.lookup import lookup
from integrations.prices.cache import Cache
from integrations.prices.refresh import refresh
from integrations.prices.sources import SOURCES
from integrations.slack.settings import Credentials, SlackSettings
from knowledge.errors import UnknownName
from tests.advisor.fake_provider import Handler, Move, Provider, cut, status, text
from tests.integrations.http.test_process import COMMAND, ROOT, environment, serving

CANARY = "c4n4ry-{}-9f8e7d6c5b4a"
PROVIDER_KEYS = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_API_KEY", "GEMINI_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY",
    "TOGETHERAI_API_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "HUGGINGFACE_API_KEY", "HF_TOKEN",
    "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET",
)  # fmt: skip


def secrets() -> dict[str, str]:
    """Every secret variable that the product reads, with a canary in it."""
    names = [name for source in SOURCES for name in source.keys]
    for kind, prefix in ((Settings, "ADVISOR_"), (ServiceSettings, "ADVISOR_"), (SlackSettings, "ADVISOR_")):
        names += [f"{prefix}{name.upper()}" for name, info in kind.model_fields.items() if SecretStr in _parts(info)]
    names += [f"SLACK_{name.upper()}" for name in Credentials.__dataclass_fields__] if _is_dataclass() else []
    return {name: CANARY.format(name.lower().replace("_", "")) for name in dict.fromkeys([*names, *PROVIDER_KEYS])}


def _parts(info: Any) -> tuple[Any, ...]:
    return (info.annotation, *getattr(info.annotation, "__args__", ()))


def _is_dataclass() -> bool:
    return hasattr(Credentials, "__dataclass_fields__")


SECRETS = secrets()
MORE = {
    "ADVISOR_API_KEYS": f"ann:{CANARY.format('ann')}, {CANARY.format('nobody')}",
    "ADVISOR_DATABASE_URL": f"postgresql://me:{CANARY.format('database')}@db.example/x",
    "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {CANARY.format('otel')},x-team=infra",
    "HTTPS_PROXY": f"http://me:{CANARY.format('proxy')}@proxy.example:3128",
}


def assert_clean(text: str | bytes, where: str) -> None:
    found = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    at = found.find(b"c4n4ry-")
    assert at < 0, f"{where}: …{found[max(0, at - 80) : at + 60]!r}"


def test_there_is_a_canary_for_every_secret() -> None:
    assert {"ADVISOR_API_KEYS", "ADVISOR_METRICS_TOKEN", "HF_TOKEN", "SLACK_SIGNING_SECRET"} <= SECRETS.keys()
    assert len(SECRETS) > 20


def test_every_secret_is_known_to_the_logs_whole_and_in_its_parts() -> None:
    known = secret_values({**SECRETS, **MORE, "HOME": "/home/me", "NO_PROXY": "localhost,127.0.0.1"})
    for name, value in SECRETS.items():
        if name != "ADVISOR_API_KEYS":
            assert value in known, name
    for part in ("ann", "nobody", "database", "otel", "proxy"):
        assert CANARY.format(part) in known
    assert not {"/home/me", "localhost", "127.0.0.1"} & set(known)
    assert without_password(MORE["ADVISOR_DATABASE_URL"]) == f"postgresql://me:{HIDDEN}@db.example/x"


class _Odd:
    def __repr__(self) -> str:
        return f"<Odd {CANARY.format('odd')}>"


def spill(log: logging.Logger, secret: str) -> None:
    """Every way in which a secret gets into a log line."""
    log.debug("in the message " + secret)
    log.info("as an argument %s and %r and %s", secret, [secret], {"key": secret})
    log.warning("as a field", extra={"given": secret, "inside": {"a": [secret, (secret,), {secret}]}, secret: 1})
    log.warning("as bytes and objects", extra={"raw": secret.encode(), "odd": _Odd()})
    log.error("an address https://me:%s@host/x?key=%s", secret, secret)
    try:
        try:
            raise ValueError(f"the provider said: invalid key {secret}")
        except ValueError as error:
            raise RuntimeError("because of the above") from error
    except RuntimeError:
        log.exception("a fault")
        log.warning("stacked", exc_info=True, stack_info=True)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    log = logging.getLogger()
    before, level = list(log.handlers), log.level
    yield log
    log.handlers, log.level = before, level
    log.setLevel(level)


@pytest.mark.parametrize("form", ["json", "console", "plain"])
def test_nothing_that_is_logged_holds_a_secret(form: str, root: logging.Logger) -> None:
    secret = CANARY.format("odd")
    out = io.StringIO()
    if form == "plain":
        handler = logging.StreamHandler(out)
        handler.setFormatter(RedactingFormatter([secret]))
        root.handlers = [handler]
        root.setLevel("DEBUG")
    else:
        settings = ServiceSettings.model_validate({"log_format": form, "log_level": "debug"})
        logs.set_up(settings, [secret], out)
    spill(logging.getLogger("advisor.http"), secret)
    said = out.getvalue()
    assert said.count("\n") >= 7
    assert HIDDEN in said
    assert "because of the above" in said  # the traceback is there, without what it held
    assert_clean(said, form)


def test_what_looks_like_a_key_is_hidden_though_nobody_named_it() -> None:
    clean = Redaction().text
    for word in ("sk-proj-" + "a" * 30, "xoxb-1234567890-abcdef", "adv_0123456789ab_" + "b" * 43, "hf_" + "c" * 30):
        assert word not in clean(f"the key {word} is wrong")
    assert clean("Authorization: Bearer abcdefgh12345") == f"Authorization: Bearer {HIDDEN}"
    assert clean("postgresql://me:hunter2@db/x") == f"postgresql://{HIDDEN}@db/x"
    assert clean("It needs 45.3 GB at https://arxiv.org/abs/1910.02054") == (
        "It needs 45.3 GB at https://arxiv.org/abs/1910.02054"
    )


def echo(request: httpx.Request) -> str:
    """What a careless provider says: all that it was sent."""
    return f"bad key {dict(request.headers)} {request.url} {request.content.decode('utf-8', 'replace')}"


FAULTS: dict[str, Callable[[httpx.Request], httpx.Response]] = {
    "200 that repeats": lambda request: httpx.Response(
        200, json={"data": [{"price": echo(request)}], "Items": echo(request)}
    ),
    "200 of text": lambda request: httpx.Response(200, text=echo(request)),
    "401": lambda request: httpx.Response(401, text=echo(request)),
    "429": lambda request: httpx.Response(429, text=echo(request), headers={"retry-after": "900"}),
    "500": lambda request: httpx.Response(500, text=echo(request), headers={"retry-after": "900"}),
    "302": lambda request: httpx.Response(302, headers={"location": f"https://evil.example/?k={echo(request)[:200]}"}),
}


def timed_out(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout(f"no answer to {echo(request)}")


def crashed(request: httpx.Request) -> httpx.Response:
    raise RuntimeError(f"a bug while sending {echo(request)}")


EVERY = {**FAULTS, "timeout": timed_out, "crash": crashed}


@pytest.mark.parametrize("turn", [0, 3, pytest.param(None, marks=pytest.mark.slow)])
def test_no_price_source_lets_its_key_out(turn: int | None, tmp_path: Path, root: logging.Logger) -> None:
    """Each source meets a fault of its own, in every run another one; among the slow tests each meets all."""
    for shift in range(len(EVERY)) if turn is None else [turn]:
        out = io.StringIO()
        logs.set_up(ServiceSettings(log_format="json", log_level="debug"), secret_values(SECRETS), out)
        faults = list(EVERY.values())
        with respx.mock(assert_all_called=False) as mocked:
            for number, source in enumerate(SOURCES):
                for host in source.hosts:
                    mocked.route(host=host).mock(side_effect=faults[(number + shift) % len(faults)])
            report = refresh(SOURCES, cache=Cache(tmp_path / "prices.db"), environment=SECRETS)
        assert len(report.outcomes) == len(SOURCES)
        assert_clean(repr(report), "the report")
        assert_clean(out.getvalue(), "the log")
    for file in tmp_path.iterdir():
        assert_clean(file.read_bytes(), file.name)


@pytest.mark.parametrize("fault", EVERY)
def test_the_hub_s_token_stays_inside(fault: str, tmp_path: Path, root: logging.Logger) -> None:
    out = io.StringIO()
    logs.set_up(ServiceSettings(log_format="console", log_level="debug"), secret_values(SECRETS), out)
    with respx.mock:
        respx.route().mock(side_effect=EVERY[fault])
        with pytest.raises((UnknownName, Exception)) as problem:
            lookup("some-lab/New-9B", path=tmp_path / "hub.db", environment=SECRETS)
    assert_clean(repr(getattr(problem.value, "as_dict", dict)()) + str(problem.value), "the error")
    assert_clean(out.getvalue(), "the log")
    for file in tmp_path.iterdir():
        assert_clean(file.read_bytes(), file.name)


def test_the_self_check_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    monkeypatch.setenv("ADVISOR_DATABASE_URL", f"postgresql://me:{CANARY.format('db')}@127.0.0.1:1/none")
    found = checks()
    assert any(not one.ok for one in found)
    assert_clean(repr(found), "doctor")


def test_a_command_that_crashes_in_debug_shows_no_secret(tmp_path: Path) -> None:
    """ADVISOR_DEBUG prints tracebacks, and an exception repeats what it was given."""
    secret = CANARY.format("debug")
    code = (
        "import os\n"
        "import advisor.turn\n"
        "def boom(*given, **named):\n"
        "    raise RuntimeError('refused: ' + os.environ['OPENAI_API_KEY'])\n"
        "advisor.turn.answer = boom\n"
        "from advisor.cli import main\n"
        "main(['ask', 'what GPU for 7B?'])\n"
    )
    given = environment(str(tmp_path / "a.db"), OPENAI_API_KEY=secret, ADVISOR_DEBUG="1")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=given, capture_output=True, text=True)
    assert done.returncode != 0
    assert "RuntimeError" in done.stderr
    assert_clean(done.stdout + done.stderr, "the terminal")


# A whole server with a provider that leaks ---------------------------------------------------------------------------


def repeats(code: int, headers: dict[str, str] | None = None) -> Move:
    def move(handler: Handler) -> None:
        given = str(dict(handler.headers.items()))
        handler.json(code, {"error": {"message": f"no such key {given}", "type": "x", "code": None}}, headers)

    return move


def stalls(handler: Handler) -> None:
    time.sleep(3)


MOVES: dict[str, Move] = {
    "success": text("It is fine."),
    "401": repeats(401),
    "429": repeats(429, {"retry-after": "600"}),
    "500": repeats(500),
    "400": repeats(400),
    "404": repeats(404),
    "timeout": stalls,
    "cut": cut,
    "nonsense": status(200, message=CANARY.format("body")),
}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_server_with_a_leaking_provider_lets_nothing_out(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    provider = Provider(MOVES["success"])
    own = CANARY.format("own") + "-long-enough"
    given = {name: value for name, value in SECRETS.items() if name != "ADVISOR_API_KEYS" and "SLACK" not in name}
    try:
        with serving(
            str(place), **given, ADVISOR_API_KEYS=f"me:{own}", ADVISOR_MODEL="openai/m", OPENAI_API_BASE=provider.url,
            ADVISOR_LOG_LEVEL="debug", ADVISOR_RETRIES="0", ADVISOR_FIRST_TOKEN_SECONDS="1", ADVISOR_TURN_SECONDS="8",
        ) as server:  # fmt: skip
            said = []
            for name, move in MOVES.items():
                provider.moves = [move]
                for extra in ({}, {"accept": "text/event-stream"}):
                    headers = {"authorization": f"Bearer {own}", **extra}
                    got = server.client.post("/v1/ask", json={"question": "what does 7B need?"}, headers=headers)
                    assert got.status_code == 200, name
                    said.append(got.text + str(got.headers))
            wrong = server.client.post("/v1/ask", json={}, headers={"authorization": f"Bearer {own}-wrong"})
            said.append(wrong.text)
            for path in ("/readyz", "/metrics", "/openapi.json", "/v1/models", "/v1/conversations", "/docs"):
                said.append(server.client.get(path, headers={"authorization": f"Bearer {own}"}).text)
            assert server.stop() == 0
            logged = "".join(server.lines)
    finally:
        provider.close()
    assert any(json.loads(line).get("route") == "/v1/ask" for line in logged.splitlines() if line.startswith("{"))
    assert_clean("\n".join(said), "an answer")
    assert_clean(logged, "the log")
    for file in tmp_path.iterdir():
        assert_clean(file.read_bytes(), file.name)


@pytest.mark.slow
def test_commands_with_a_leaking_provider_let_nothing_out(tmp_path: Path) -> None:
    provider = Provider(repeats(401))
    try:
        for name in ("401", "500", "nonsense"):
            provider.moves = [MOVES[name]]
            given = environment(
                str(tmp_path / "a.db"), **SECRETS, ADVISOR_MODEL="openai/m", OPENAI_API_BASE=provider.url,
                ADVISOR_DEBUG="1", ADVISOR_RETRIES="0",
            )  # fmt: skip
            done = subprocess.run(
                [*COMMAND, "ask", "--json", "what does 7B need?"], cwd=ROOT, env=given, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr[-500:]
            assert_clean(done.stdout + done.stderr, name)
    finally:
        provider.close()
