"""The README quotes the figures that the benchmarks wrote, and no others."""

from pathlib import Path

from evals import figures
from evals.soak import sound

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_quotes_the_results_file():
    assert figures.quoted(figures.read()) + "\n" in README.read_text(encoding="utf-8")


def test_what_is_quoted_was_measured_and_held():
    found = figures.read()
    assert {"slow_readers", "soak"} <= set(found)
    for section in found.values():
        assert section["date"] >= "2026-11-30"
        assert section["machine"]["processors"] >= 1
    assert found["slow_readers"]["hung"] == found["slow_readers"]["failed"] == 0
    assert found["slow_readers"]["reading_at_once"] >= 500
    assert sound(found["soak"])


def test_a_benchmark_replaces_its_own_section_only(tmp_path):
    file = tmp_path / "results" / "load.json"
    figures.record("soak", {"minutes": 1}, file)
    figures.record("load", {"clients": 2}, file)
    figures.record("soak", {"minutes": 30}, file)
    found = figures.read(file)
    assert (found["soak"]["minutes"], found["load"]["clients"]) == (30, 2)
    assert set(found["soak"]) == {"date", "machine", "minutes"}
