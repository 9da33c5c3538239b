"""A budget for five calls pays for exactly five of 64 at once, to the cent: in one process, in two, and after kill -9.

The model stands at a barrier: the calls that were let in wait until all others have been decided, so that whoever
looks first and pays later lets too many in.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from advisor.accounts import Accounts, Limits
from advisor.database import open_database
from advisor.llm.protocol import Finish, ModelEvent, ModelRequest, TextDelta, Usage
from integrations.http.metering import _input_tokens
from tests.advisor.conftest import Scripted, says
from tests.advisor.fake_provider import Handler, Provider
from tests.integrations.http.conftest import Live, Serve, _toy_tools  # noqa: F401
from tests.integrations.http.test_process import Process, advisor

CALLERS, PAID = 64, 5
TAKEN, GIVEN = 1_000, 500
PRICES = {"usd_per_million_input_tokens": 10.0, "usd_per_million_output_tokens": 20.0}
COST = TAKEN * 10e-6 + GIVEN * 20e-6  # USD of one call as the provider counts it
QUESTION = {"question": "how much memory does 7B need?"}


class Barrier:
    """A model whose calls wait until they are let go, and then say what they cost."""

    name = "prov/priced"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.calls = 0
        self.reserve = 0.0  # USD set aside for one call
        self._lock = threading.Lock()

    def reply(self, request: ModelRequest) -> Iterator[ModelEvent]:
        with self._lock:
            self.calls += 1
            self.reserve = _input_tokens(request) * 10e-6 + request.max_output_tokens * 20e-6
        assert self.go.wait(60)
        yield TextDelta("Hello there.")
        yield Finish(usage=Usage(TAKEN, GIVEN))


def planner() -> Scripted:
    return Scripted(*[says("From the planner.") for _ in range(200)], name="planner")


def worst_case(serve: Serve, tmp_path: Path) -> float:
    """USD that one such call sets aside, measured on a server without a limit."""
    model = Barrier()
    model.go.set()
    live = serve(model, planner(), **PRICES)
    assert live.client.post("/v1/ask", json=QUESTION).json()["model"] == model.name
    return model.reserve


def ask_at_once(ask: Callable[[int], httpx.Response], decided: int, go: Callable[[], None]) -> list[httpx.Response]:
    """64 requests together; ``go`` once as many have been answered as are to be refused."""
    done: list[httpx.Response] = []
    lock = threading.Lock()

    def one(number: int) -> httpx.Response:
        got = ask(number)
        with lock:
            done.append(got)
            if len(done) == decided:
                go()
        return got

    with ThreadPoolExecutor(CALLERS) as pool:
        timer = threading.Timer(40, go)  # a fault must fail the test, not hang it
        timer.start()
        got = list(pool.map(one, range(CALLERS)))
        timer.cancel()
    return got


def limited(live: Live, usd: float) -> tuple[dict[str, str], str]:
    key = live.service.accounts.create_key("team", limits=Limits(usd_per_day=usd))
    found = live.service.accounts.find_key(key)
    assert found is not None
    return {"authorization": f"Bearer {key}"}, f"key:{found.id}"


@pytest.mark.parametrize(
    ("route", "way"), [("/v1/ask", "refuse"), ("/v1/ask", "planner"), ("/v1/chat/completions", "refuse")]
)
def test_of_64_at_once_exactly_five_are_paid_for(serve: Serve, tmp_path: Path, way: str, route: str) -> None:
    reserve = worst_case(serve, tmp_path)
    model = Barrier()
    many = {"turns": CALLERS, "turns_per_caller": CALLERS}
    live = serve(model, planner(), over_budget=way, **many, **PRICES)
    headers, subject = limited(live, PAID * reserve + 1e-9)
    body: dict[str, Any] = dict(QUESTION)
    if route != "/v1/ask":
        body = {"model": model.name, "messages": [{"role": "user", "content": QUESTION["question"]}]}
    with httpx.Client(base_url=live.url, timeout=60, limits=httpx.Limits(max_connections=CALLERS)) as client:
        got = ask_at_once(lambda number: client.post(route, json=body, headers=headers), CALLERS - PAID, model.go.set)
    assert model.calls == PAID
    paid = [one for one in got if "Hello there." in one.text]
    rest = [one for one in got if "Hello there." not in one.text]
    assert (len(paid), len(rest)) == (PAID, CALLERS - PAID)
    assert all(one.status_code == 200 for one in paid)
    for one in rest:
        if way == "planner":
            assert one.status_code == 200
            assert "budget is spent" in one.text
        else:
            assert one.status_code == 429
            assert one.json()["error"]["code"] == "over_budget"
            assert 1 <= int(one.headers["retry-after"]) <= 86_400
    for who, others in ((subject, 0), ("*", 1)):  # all together: the call that was measured too
        tokens, usd = live.service.accounts.spent(who)
        assert tokens == (PAID + others) * (TAKEN + GIVEN)
        assert usd == pytest.approx((PAID + others) * COST, abs=1e-9)


def test_a_stream_is_refused_by_its_status(serve: Serve, tmp_path: Path) -> None:
    model = Barrier()
    live = serve(model, planner(), over_budget="refuse", **PRICES)
    headers, subject = limited(live, 1e-6)
    for extra in ({"accept": "text/event-stream"}, {}):
        got = live.client.post("/v1/ask", json=QUESTION, headers={**headers, **extra})
        assert (got.status_code, got.json()["error"]["code"]) == (429, "over_budget")
    assert live.service.accounts.spent(subject) == (0, 0.0)
    free = live.client.post("/v1/ask", json={**QUESTION, "model": "planner"}, headers=headers)
    assert free.json()["model"] == "planner"
    assert model.calls == 0


def test_a_stream_that_is_paid_for_has_all_its_events(serve: Serve) -> None:
    model = Barrier()
    model.go.set()
    live = serve(model, planner(), over_budget="refuse", **PRICES)
    headers, _subject = limited(live, 10.0)
    got = live.client.post("/v1/ask", json=QUESTION, headers={**headers, "accept": "text/event-stream"})
    kinds = [json.loads(line[6:])["type"] for line in got.text.splitlines() if line.startswith("data: ")]
    assert (kinds[0], kinds[-1]) == ("started", "done")


def test_a_provider_that_counts_backwards_is_charged_in_full(serve: Serve) -> None:
    model = Scripted(says("Hello.", finish=Finish(usage=Usage(-5_000, 10))), name="prov/priced")
    live = serve(model, planner(), **PRICES)
    headers, subject = limited(live, 10.0)
    live.client.post("/v1/ask", json=QUESTION, headers=headers)
    assert live.service.accounts.spent(subject)[1] > 0.02


# With server processes, a provider on loopback and litellm between them ----------------------------------------------


class Till(Provider):
    """A provider that holds its answers until ``go``; says what each cost, and adds up what it said."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.said = 0
        super().__init__(self._answer)

    def _answer(self, handler: Handler) -> None:
        assert self.go.wait(90)
        with self.lock:
            self.said += 1
        usage = {"prompt_tokens": TAKEN, "completion_tokens": GIVEN, "total_tokens": TAKEN + GIVEN}
        handler.start_stream()
        handler.chunk({"role": "assistant", "content": "Hello there."})
        handler.chunk({}, "stop")
        last = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
        handler.raw(b"data: " + json.dumps(last).encode() + b"\n\n")
        handler.end_stream()


@pytest.fixture
def till() -> Iterator[Till]:
    made = Till()
    yield made
    made.go.set()
    made.close()


def environment(till: Till) -> dict[str, str]:
    return {
        "ADVISOR_MODEL": "openai/unlisted-model", "OPENAI_API_BASE": till.url, "OPENAI_API_KEY": "sk-not-a-real-one",
        "ADVISOR_OVER_BUDGET": "refuse", "ADVISOR_USD_PER_MILLION_INPUT_TOKENS": "10",
        "ADVISOR_USD_PER_MILLION_OUTPUT_TOKENS": "20", "ADVISOR_TURNS": "64", "ADVISOR_TURNS_PER_CALLER": "64",
        "ADVISOR_FIRST_TOKEN_SECONDS": "100", "ADVISOR_TURN_SECONDS": "200", "ADVISOR_IDLE_SECONDS": "100",
    }  # fmt: skip


def spent(place: str, owner: str) -> tuple[int, float]:
    database = open_database(place)
    try:
        accounts = Accounts(database)
        (key,) = [found for found in accounts.all_keys() if found.owner == owner]
        return accounts.spent(f"key:{key.id}")
    finally:
        database.close()


def made_key(place: str, owner: str, usd: float) -> dict[str, str]:
    made = json.loads(advisor(place, "keys", "create", owner, "--usd-per-day", f"{usd:.9f}", "--json").stdout)
    return {"authorization": f"Bearer {made['key']}"}


def reserved_for_one(place: str, till: Till) -> float:
    """USD set aside for one call, read from the database while it is under way."""
    headers = made_key(place, "probe", 100.0)
    with ExitStack() as stack:
        server = Process(place, **environment(till))
        stack.callback(server.close)
        waiting = threading.Thread(target=lambda: server.client.post("/v1/ask", json=QUESTION, headers=headers))
        waiting.start()
        until = time.monotonic() + 60
        while not till.requests:
            assert time.monotonic() < until
            time.sleep(0.05)
        _tokens, usd = spent(place, "probe")
        till.go.set()
        waiting.join(60)
        till.go.clear()
    assert spent(place, "probe") == (TAKEN + GIVEN, pytest.approx(COST, abs=1e-9))
    return usd


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_server_processes_pay_for_exactly_five_together(tmp_path: Path, till: Till) -> None:
    place = str(tmp_path / "a.db")
    reserve = reserved_for_one(place, till)
    before = till.said
    headers = made_key(place, "team", PAID * reserve + 1e-9)
    with ExitStack() as stack:
        servers = [Process(place, **environment(till)) for _ in range(2)]
        for server in servers:
            stack.callback(server.close)
            server.client.timeout = httpx.Timeout(120)
        got = ask_at_once(
            lambda number: httpx.post(
                f"http://127.0.0.1:{servers[number % 2].port}/v1/ask", json=QUESTION, headers=headers, timeout=120
            ),
            CALLERS - PAID,
            till.go.set,
        )
    codes = [one.status_code for one in got]
    assert (codes.count(200), codes.count(429)) == (PAID, CALLERS - PAID)
    assert all(int(one.headers["retry-after"]) >= 1 for one in got if one.status_code == 429)
    assert till.said - before == PAID
    assert spent(place, "team") == (PAID * (TAKEN + GIVEN), pytest.approx(PAID * COST, abs=1e-9))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_server_killed_between_paying_and_settling_leaves_the_call_paid(tmp_path: Path, till: Till) -> None:
    """kill -9 while the provider works: the reservation stays charged, so what follows has less, never more."""
    place = str(tmp_path / "a.db")
    reserve = reserved_for_one(place, till)
    headers = made_key(place, "team", 2 * reserve + 1e-9)
    with ExitStack() as stack:
        first = Process(place, **environment(till))
        stack.callback(first.close)
        asked = len(till.requests)

        def lost() -> None:
            with pytest.raises(httpx.HTTPError):
                first.client.post("/v1/ask", json=QUESTION, headers=headers)

        waiting = threading.Thread(target=lost)
        waiting.start()
        until = time.monotonic() + 60
        while len(till.requests) == asked:
            assert time.monotonic() < until
            time.sleep(0.05)
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
        waiting.join(30)
        assert spent(place, "team")[1] == pytest.approx(reserve, abs=1e-9)
        till.go.set()
        second = Process(place, **environment(till))
        stack.callback(second.close)
        codes = [second.client.post("/v1/ask", json=QUESTION, headers=headers).status_code for _ in range(3)]
    # One reservation is gone for good; the other pays for a call, and what is left of it for no second one.
    assert codes == [200, 429, 429]
    assert spent(place, "team")[1] == pytest.approx(reserve + COST, abs=1e-9)
