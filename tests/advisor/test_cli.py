"""The real command line in a process of its own, as people and scripts call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.turn import default_desk

Run = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]
ARGUMENTS = '{"model": "llama-3.1-8b", "method": "qlora", "gpu": "RTX 4090"}'


@pytest.fixture
def advisor(tmp_path: Path) -> Run:
    def run(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("ADVISOR_", "OPENAI_"))}
        env |= {"XDG_DATA_HOME": str(tmp_path), "PYTHONWARNINGS": "default", **environment}
        done = subprocess.run(
            [sys.executable, "-m", "advisor", *arguments],
            cwd=ROOT,
            env=env,
            input=stdin,
            capture_output=True,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback (most recent" not in out + err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run


def error_of(text: str) -> dict[str, object]:
    body = json.loads(text)
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message", "field", "hint", "candidates"]
    error: dict[str, object] = body["error"]
    return error


def test_ask_answers_with_numbers_and_goes_on_in_the_conversation(advisor: Run) -> None:
    first = advisor("ask", "--json", "what GPU for 70B QLoRA?")
    assert first.returncode == 0
    got = json.loads(first.stdout)
    assert got["status"] == "answered"
    assert got["grounding"]["numbers"] == got["grounding"]["grounded"] > 0
    again = json.loads(advisor("ask", "--json", "--conversation", got["conversation_id"], "and on H200?").stdout)
    assert again["conversation_id"] == got["conversation_id"]
    assert any("H200" in str(call["arguments"]) for call in again["tool_calls"])


def test_ask_prints_plain_text_into_a_pipe(advisor: Run) -> None:
    done = advisor("ask", "does 8B QLoRA fit on a 4090?")
    assert done.returncode == 0
    assert "**" not in done.stdout
    assert "\x1b" not in done.stdout
    assert "GB" in done.stdout
    assert "Assumed" in done.stdout
    assert "--conversation" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ask", "--json", ""], "empty_question"),
        (["ask", "--json", "   "], "empty_question"),
        (["ask", "--json"], "empty_question"),
        (["ask", "--json", "x" * 100_000], "question_too_long"),
        (["tool", "--json", "estimate_vrma", "{}"], "unknown_tool"),
        (["tool", "--json", "estimate_vram"], "missing_argument"),
        (["tool", "--json", "estimate_vram", "{}"], "missing_argument"),
        (["tool", "--json", "estimate_vram", "{'model': 1}"], "bad_json"),
        (["tool", "--json", "estimate_vram", "[1]"], "not_an_object"),
        (["tool", "--json", "estimate_vram", '{"model": NaN}'], "not_finite"),
        (["tool", "--json", "estimate_vram", '{"model": "7B", "seq_len": -Infinity}'], "not_finite"),
        (["tool", "--json", "estimate_vram", '{"model": "7B", "model": "8B"}'], "repeated_key"),
        (["tool", "--json", "estimate_vram", '{"model": ' + "[" * 5000 + "]" * 5000 + "}"], "bad_json"),
        (["tool", "--json", "estimate_vram", '{"model": "7B", "seq_len": -5}'], "out_of_range"),
        (["tool", "--json", "estimate_vram", '{"model": "no such model", "gpu": "H100"}'], "unknown_model"),
        (["tool", "--json", "estimate_vram", '{"model": "7B", "gpu": "H300"}'], "unknown_gpu"),
        (["tool", "--json", "estimate_vram", '{"model": "7B", "gpuu": "H100"}'], "unknown_argument"),
        (["tool", "estimate_vram", "--batch", "/no/such/file"], "no_such_file"),
        (["ask", "--json", "--nonsense"], "bad_usage"),
        (["nonsense", "--json"], "bad_usage"),
    ],
)
def test_bad_input_is_one_error_of_the_one_shape(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    default_desk.cache_clear()
    with pytest.raises(SystemExit) as end:
        main(arguments)
    default_desk.cache_clear()
    assert end.value.code == 2
    shown = capsys.readouterr()
    assert error_of(shown.out)["code"] == code
    assert shown.err == ""


def test_binary_junk_is_refused(advisor: Run) -> None:
    junk = bytes(range(256)) * 4
    done = advisor("ask", "--json", "-", stdin=junk)
    assert done.returncode == 2
    assert error_of(done.stdout)["code"] == "question_unreadable"


def test_without_json_an_error_is_a_sentence_with_the_nearest_thing(advisor: Run) -> None:
    done = advisor("tool", "estimate_vram", '{"model": "llama-3.1-8b", "gpu": "H1000"}')
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: I do not know a GPU called 'H1000'.")
    assert "H100" in done.stderr


def test_a_tool_prints_tables_or_its_whole_result(advisor: Run) -> None:
    words = advisor("tool", "estimate_vram", ARGUMENTS)
    assert words.returncode == 0
    assert "GB" in words.stdout
    result = json.loads(advisor("tool", "estimate_vram", ARGUMENTS, "--json").stdout)
    assert any(fact["name"] == "peak_per_gpu" for fact in result["facts"])


def test_a_batch_gives_a_line_for_every_line_and_does_not_stop(advisor: Run, tmp_path: Path) -> None:
    lines = [ARGUMENTS, "{not json", '{"model": "no such model"}', "", '{"model": NaN}', "\x00\x01", ARGUMENTS]
    file = tmp_path / "calls.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    done = advisor("tool", "estimate_vram", "--batch", str(file))
    assert done.returncode == 0
    got = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line.get("error", {}).get("code") for line in got] == [
        None, "bad_json", "unknown_model", "not_finite", "bad_json", None,
    ]  # fmt: skip
    assert got[0] == got[-1]


def test_a_bad_setting_is_named(advisor: Run) -> None:
    done = advisor("ask", "hello", ADVISOR_TURN_SECONDS="soon")
    assert done.returncode == 2
    assert "ADVISOR_TURN_SECONDS" in done.stderr


def test_offline_a_providers_model_is_not_even_imported(advisor: Run) -> None:
    done = advisor("ask", "--json", "8B QLoRA on a 4090?", ADVISOR_OFFLINE="1", ADVISOR_MODEL="openai/gpt-x")
    got = json.loads(done.stdout)
    assert (got["model"], got["degraded"], got["status"]) == ("planner", True, "answered")


def test_doctor_finds_everything_in_order(advisor: Run) -> None:
    done = advisor("doctor", "--json")
    checks = {item["check"]: item for item in json.loads(done.stdout)}
    assert all(item["ok"] for item in checks.values()), checks
    assert done.returncode == 0


def test_chat_answers_each_line_in_one_conversation(advisor: Run) -> None:
    done = advisor("chat", stdin=b"does 8B QLoRA fit on a 4090?\nand on a T4?\n/new\n/quit\n")
    assert done.returncode == 0
    assert "RTX-4090" in done.stdout
    assert "T4" in done.stdout


def test_help_lists_the_commands_and_loads_nothing_heavy(advisor: Run) -> None:
    done = advisor("--help")
    assert done.returncode == 0
    assert all(f"  {name}" in done.stdout for name in ("ask", "chat", "doctor", "tool", "tools"))
    assert json.loads(advisor("tools", "--json").stdout)[0]["name"] == "estimate_vram"


def test_a_question_answered_by_the_planner_costs_little_and_never_imports_litellm(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from advisor.cli import main\n"
        "try:\n    main(['ask', '--json', 'what GPU for 70B QLoRA?'])\n"
        "except SystemExit as end:\n"
        "    heavy = {'litellm', 'openai', 'fastapi', 'scipy', 'pandas', 'sqlite_utils'} & set(sys.modules)\n"
        "    print(end.code, sorted(heavy), time.process_time(), file=sys.stderr)\n"
    )
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    times = []
    for _try in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        status, heavy, seconds = done.stderr.split()[-3:]
        assert (status, heavy) == ("0", "[]")
        times.append(float(seconds))
    assert min(times) < 0.7 * max(1.0, _slowness())


def _slowness() -> float:
    """How much slower this machine is just now than one that takes 60 ms for two million squares."""
    spans = []
    for _try in range(3):
        begun = time.process_time()
        sum(number * number for number in range(2_000_000))
        spans.append(time.process_time() - begun)
    return min(spans) / 0.06
