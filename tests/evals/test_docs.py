"""The example of the guide runs as it is printed."""

import re
from pathlib import Path

from evals.run import run_suites

GUIDE = Path(__file__).parents[2] / "docs" / "evals.md"


def test_the_example_file_of_the_guide_runs_and_passes(tmp_path):
    example = re.search(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert example
    file = tmp_path / "ours.yaml"
    file.write_text(example[1], encoding="utf-8")
    report = run_suites([str(file)])
    assert [list(map(str, result.misses)) for result in report.results] == [[]]


def test_every_command_of_the_guide_exists():
    from evals.cli import command

    for name in re.findall(r"advisor eval (\w+)", GUIDE.read_text(encoding="utf-8")):
        assert name in command.commands, name
