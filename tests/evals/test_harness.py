"""Case files, the runner, its reports, its exit codes, the baseline and the cassettes."""

import json
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from advisor.llm.protocol import Finish, Message, ModelFailed, ModelRequest, TextDelta, ToolCall, ToolSchema
from evals import cli
from evals.baseline import compare, read, write
from evals.casefile import CASES, json_schema, load_suites, read_suite
from evals.cassettes import Recorded, Replayed, request_hash
from evals.plots import Point, scatter
from evals.report import as_html, as_json
from evals.run import run_suites
from tools.errors import BadValue

GOOD = {
    "id": "one.good", "why": "holds by hand", "tags": ["t"],
    "call": {"tool": "estimate_vram", "arguments": {"model": "llama-3.1-8b", "method": "full", "precision": "bf16"}},
    "expect": {"numbers": [{"fact": "weights", "value": 16.06, "unit": "GB", "source": "8.03e9 x 2 bytes"}]},
}  # fmt: skip
BAD = {
    **GOOD, "id": "one.bad",
    "expect": {"numbers": [{"fact": "weights", "value": 8.03, "unit": "GB", "source": "wrong on purpose"}]},
}  # fmt: skip


def suite_file(tmp_path, *cases, name="mine"):
    file = tmp_path / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"suite": name, "about": "of this test", "cases": list(cases)}), encoding="utf-8")
    return file


def test_all_our_suites_load_and_their_schema_is_the_committed_one():
    suites = load_suites()
    ids = [case.id for suite in suites for case in suite.cases]
    assert len(ids) == len(set(ids))
    committed = json.loads((CASES / "case.schema.json").read_text(encoding="utf-8"))
    assert committed == json.loads(json.dumps(json_schema()))
    for file in CASES.glob("*.yaml"):
        jsonschema.validate(yaml.safe_load(file.read_text(encoding="utf-8")), committed)


def test_every_expected_number_names_where_it_comes_from():
    for suite in load_suites():
        for case in suite.cases:
            expects = [case.expect, *(turn.expect for turn in case.turns or [])]
            for expect in expects:
                for number in expect.numbers:
                    assert len(number.source) >= 12, case.id
                    assert "our tool" not in number.source


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "Has Spaces"}, "id"),
        ({"call": None}, "exactly one of call, ask, turns"),
        ({"ask": "and also this"}, "exactly one of call, ask, turns"),
        ({"expect": {"numbers": [{"fact": "weights", "source": "no value at all"}]}}, "exactly one of value"),
        ({"expect": {"numbers": [{"fact": "weights", "value": 1, "source": "?"}]}}, "source"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_faulty_case_file_is_one_clear_error(tmp_path, change, words):
    case = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(BadValue, match=r"mine\.yaml") as caught:
        read_suite(suite_file(tmp_path, case))
    assert words in caught.value.message


def test_an_unknown_suite_offers_ours():
    with pytest.raises(BadValue) as caught:
        load_suites(["pined"])
    assert "pinned" in caught.value.candidates


def test_exit_codes_are_0_all_pass_1_a_failure_2_nothing_or_broken(tmp_path, monkeypatch):
    runner = CliRunner()
    good, bad = suite_file(tmp_path, GOOD, name="good"), suite_file(tmp_path, BAD, name="bad")
    done = runner.invoke(cli.command, ["run", str(good)])
    assert done.exit_code == 0
    assert done.output.rstrip().endswith("1 passed, 0 failed")
    done = runner.invoke(cli.command, ["run", str(good), str(bad)])
    assert done.exit_code == 1
    assert done.output.rstrip().endswith("1 passed, 1 failed")
    monkeypatch.setattr("evals.run.run_canaries", lambda: [__import__("evals.graders").graders.Miss("canary", "x")])
    assert runner.invoke(cli.command, ["run", str(good)]).exit_code == 2
    monkeypatch.undo()
    monkeypatch.setattr("evals.run.load_suites", lambda names: [])
    assert runner.invoke(cli.command, ["run"]).exit_code == 2
    monkeypatch.setattr("evals.run.load_suites", lambda names: 1 / 0)
    assert runner.invoke(cli.command, ["run"]).exit_code == 2


def test_json_output_is_one_object_on_standard_output(tmp_path):
    done = CliRunner().invoke(cli.command, ["run", str(suite_file(tmp_path, GOOD)), "--json"])
    data = json.loads(done.stdout)
    assert (data["passed"], data["failed"], data["cases"][0]["id"]) == (1, 0, "one.good")


def test_reports_hold_every_case_and_the_failing_grader(tmp_path):
    report = run_suites([str(suite_file(tmp_path, GOOD, BAD))], out=tmp_path / "out")
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert results["misses_by_grader"] == {"fact_value": 1}
    root = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()
    cases = root.findall(".//testcase")
    assert [case.get("name") for case in cases] == ["one.good", "one.bad"]
    failure = cases[1].find("failure")
    assert failure is not None
    assert failure.get("type") == "fact_value"
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "one.bad" in page
    assert "8.03 GB" in page
    assert "http" not in page.replace("http-equiv", "")
    assert as_html(report) == page
    assert as_json(report)["crashed"] == 0


def test_a_crash_of_a_case_is_a_failure_counted_apart_and_the_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("evals.run.of_call", lambda tool, arguments: 1 / 0)
    report = run_suites([str(suite_file(tmp_path, GOOD, BAD))], out=tmp_path / "out")
    assert (report.passed, report.failed, report.crashed) == (0, 2, 2)
    root = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()
    assert len(root.findall(".//testcase/error")) == 2


def test_hostile_text_stays_text_in_the_reports(tmp_path):
    case = {**GOOD, "id": "one.hostile", "why": "<script>alert(1)</script> ]]> \x1b[31m"}
    del case["call"]
    case["ask"] = "what is <b>VRAM</b>?"
    case["expect"] = {"say": ["never said"]}
    run_suites([str(suite_file(tmp_path, case))], out=tmp_path / "out")
    assert "<script>" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    ElementTree.parse(tmp_path / "out" / "junit.xml")


def test_a_pass_that_became_a_failure_is_a_regression(tmp_path):
    file = suite_file(tmp_path, GOOD, {**BAD, "id": "one.other"})
    report = run_suites([str(file)])
    baseline = tmp_path / "baseline.json"
    assert compare(report, baseline).new_failures == ["one.other"]
    write(report, "first", baseline)
    known = read(baseline)
    known["mine"]["one.other"] = "pass"
    known["mine"]["one.gone"] = "pass"
    baseline.write_text(json.dumps({"cases": known}), encoding="utf-8")
    found = compare(report, baseline)
    assert (found.regressions, found.new_failures, found.gone) == (["one.other"], [], ["one.gone"])


class Provider:
    name = "openai/test"

    def reply(self, request):
        yield ToolCall("random-id", "estimate_vram", {"model": "7B"})
        yield TextDelta("hello")
        yield Finish(suggestions=("more?",))


def asked(text, tools=()):
    return ModelRequest(messages=(Message("system", "rules"), Message("user", text)), tools=tuple(tools), deadline=0.0)


def test_a_cassette_replays_what_was_recorded_and_nothing_else(tmp_path):
    kept = list(Recorded(Provider(), tmp_path).reply(asked("one")))
    replayed = Replayed("openai/test", tmp_path)
    assert list(replayed.reply(asked("one"))) == kept
    with pytest.raises(ModelFailed, match="no cassette"):
        list(replayed.reply(asked("another question")))
    changed = ToolSchema("estimate_vram", lambda: ("s", "another description", {"type": "object"}))
    with pytest.raises(ModelFailed, match="no cassette"):
        list(replayed.reply(asked("one", [changed])))


def test_random_call_ids_do_not_make_a_cassette_stale():
    def conversation(call_id):
        call = ToolCall(call_id, "estimate_vram", {"model": "7B"})
        messages = (Message("assistant", tool_calls=(call,)), Message("tool", "{}", tool_call_id=call_id))
        return ModelRequest(messages=messages, tools=(), deadline=1.0)

    assert request_hash("m", conversation("a1")) == request_hash("m", conversation("zz9"))


def test_a_stale_cassette_fails_the_case_though_the_planner_could_answer(tmp_path):
    case = {**GOOD, "id": "one.asked", "ask": "what GPU for 70B QLoRA?", "expect": {}}
    del case["call"]
    from evals.cassettes import opener_of

    report = run_suites([str(suite_file(tmp_path, case))], "openai/test", opener=opener_of(None, tmp_path / "none"))
    assert (report.failed, report.crashed) == (1, 1)


def test_several_attempts_must_all_hold(tmp_path):
    case = {**GOOD, "id": "one.asked", "ask": "what GPU for 70B QLoRA?", "expect": {}}
    del case["call"]
    report = run_suites([str(suite_file(tmp_path, case))], repeat=3)
    assert (report.results[0].attempts, report.results[0].passes) == (3, 3)


def test_accuracy_plots_are_inline_and_say_what_they_show():
    points = [Point(10, 11, 9, 12, "lora"), Point(20, 30, 25, 35, "full"), Point(40, 39, 35, 45, "full")]
    svg = scatter("memory", points)
    assert "3 rows" in svg
    assert "67 % inside" in svg
    assert svg.count("<circle") == 3
    assert scatter("none", []) == ""


def test_the_pinned_numbers_hold():
    report = run_suites(["pinned"])
    assert len(report.results) >= 30
    assert [(result.case.id, list(map(str, result.misses))) for result in report.results if not result.passed] == []


def test_the_oracle_meets_published_parameter_counts_and_wrote_the_derived_suites():
    from evals.oracle import MODELS, PUBLISHED, SUITES, suite_text

    for name, billions in PUBLISHED.items():
        assert MODELS[name].params / 1e9 == pytest.approx(billions, rel=0.002), name
    for name in SUITES:
        assert (CASES / f"{name}.yaml").read_text(encoding="utf-8") == suite_text(name), name


def test_the_oracle_shares_nothing_with_the_product():
    import ast
    from pathlib import Path

    import evals.oracle

    tree = ast.parse(Path(evals.oracle.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert not imported & {"tools", "knowledge", "advisor"}


def test_the_baseline_holds_every_case_and_lets_none_fail():
    outcomes = {case: outcome for suite in read().values() for case, outcome in suite.items()}
    assert set(outcomes) == {case.id for suite in load_suites() for case in suite.cases}
    assert set(outcomes.values()) == {"pass"}


def test_the_cases_are_as_many_and_of_the_kinds_that_we_promise():
    cases = [case for suite in load_suites() for case in suite.cases]
    assert len(cases) >= 500
    assert sum(len(case.asked()) > 1 for case in cases) >= 60
    assert sum("adversarial" in case.tags for case in cases) >= 150
    traps = {case.id for case in cases if "adversarial" in case.tags}
    twins = [case for case in cases if case.twin]
    assert len(twins) >= 20
    assert {case.twin for case in twins} <= traps
