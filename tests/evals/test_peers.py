"""The peer benchmark: fair jobs, equal sources, nothing of ours in the peers' process."""

import ast
import json
from pathlib import Path

import pytest

import evals.peers
from evals.peers import __main__ as bench
from evals.peers import adapters

FOLDER = Path(evals.peers.__file__).parent


def test_the_script_that_runs_beside_the_peers_imports_nothing_of_ours():
    tree = ast.parse((FOLDER / "adapters.py").read_text(encoding="utf-8"))
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert not {name.split(".")[0] for name in names} & {"advisor", "tools", "knowledge", "evals", "integrations"}


def test_jobs_carry_no_measurement_and_every_field_that_adapters_read():
    rows = bench.measured_rows()
    assert len(rows) > 200
    read = set()
    for node in ast.walk(ast.parse((FOLDER / "adapters.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "job":
            read.add(ast.literal_eval(node.slice))
    assert read <= set(rows[0].job)
    for row in rows:
        assert row.bytes_per_gpu not in row.job.values()
        json.dumps(row.job)


def test_a_peer_that_is_not_there_is_said_so_and_one_that_cannot_express_a_job_too():
    job = bench.measured_rows()[0].job
    assert "missing" in adapters.ask("vram-check", [{**job, "method": "full", "n_gpus": 1}])
    answer = adapters.ask("rule of thumb", [{**job, "method": "full", "params": 7e9, "n_gpus": 1, "tp": 1, "pp": 1}])
    assert answer["answers"][0]["bytes"] == 112e9  # 7e9 × 16 bytes
    refused = adapters.ask("vram-check", [{**job, "method": "dpo"}])
    assert "missing" in refused or refused["answers"][0]["why"] == "method dpo"


def test_quantiles_weigh_sources_and_not_rows():
    # Nine rows of one source at 10 % and one of another at 50 %: half of the weight is at 50 %.
    errors, sources = [0.1] * 9 + [0.5], ["a"] * 9 + ["b"]
    assert bench._weighted(errors, sources, 0.5) == 10.0
    assert bench._weighted(errors, sources, 0.6) == 50.0
    assert bench._weighted([], [], 0.5) is None


def test_the_better_of_two_readings_counts_for_a_peer():
    rows = bench.measured_rows()[:3]

    def answered(factor):
        return {
            "peer": "p", "mean_seconds": 0.001, "first_seconds": 0.1,
            "answers": [{"id": row.id, "bytes": row.bytes_per_gpu * factor, "why": None} for row in rows],
        }  # fmt: skip

    table = bench.scores(rows, [answered(2.0), answered(1.1)])
    assert [line["peer"] for line in table] == ["this advisor", "p"]
    assert table[1]["median_error_pct"] == pytest.approx(10.0)


def test_the_recorded_run_shows_everyone_on_the_same_rows():
    table = json.loads((FOLDER.parent / "data" / "peers.json").read_text(encoding="utf-8"))
    assert table[0]["peer"] == "this advisor"
    assert len(table) >= 9
    for line in table[1:]:
        assert line["rows"] <= table[0]["rows"]
        assert line["our_median_on_the_same_rows_pct"] < line["median_error_pct"], line["peer"]
