"""What docs/security.md claims is tested: each row names tests that exist, and each risk of two lists has a row."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
# Risks of agents that talk to other agents, or persuade people to act for them: there is none of either here.
NOT_OURS = {"ASI07", "ASI09", "ASI10"}


def test_every_claim_names_tests_that_exist() -> None:
    assert wrong(PAGE.read_text(encoding="utf-8")) == []


def test_every_risk_has_its_row() -> None:
    named = set(re.findall(r"\b(?:LLM|ASI)\d\d\b", PAGE.read_text(encoding="utf-8")))
    listed = {f"LLM{number:02}" for number in range(1, 11)} | {f"ASI{number:02}" for number in range(1, 11)}
    assert named == listed - NOT_OURS


def test_every_file_of_these_tests_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for file in Path(__file__).parent.glob("test_*.py"):
        if file.name not in ("test_claims.py", "test_mutations.py"):
            assert f"`tests/adversary/{file.name}`" in text, file.name


def test_a_claim_without_a_test_would_be_found() -> None:
    row = "| LLM01 x | y | `tests/adversary/test_claims.py` |"
    assert wrong(f"| a | b | c |\n|---|---|---|\n{row}") == []
    assert wrong(row.replace("test_claims", "test_nothing")) == ["tests/adversary/test_nothing.py is not there"]
    assert wrong("| LLM01 x | y | soon |") == ["no test: LLM01 x"]


def wrong(text: str) -> list[str]:
    """Rows of the table without a test, and tests that do not exist."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or cells[0] in ("risk", "a") or set(cells[0]) <= {"-"}:
            continue
        files = re.findall(r"`(tests/[\w/]+\.py)`", cells[2])
        if not files:
            found.append(f"no test: {cells[0]}")
        found += [f"{file} is not there" for file in files if not (ROOT / file).is_file()]
    return found
