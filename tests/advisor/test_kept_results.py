"""A call that comes again is answered from what was kept, and only as long as nothing it rests on has changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from advisor.kept_results import KeptResults
from advisor.llm.protocol import ToolCall
from advisor.tool_runner import Outcome, run_call
from knowledge import models, prices
from knowledge.models import load_model
from knowledge.types import Architecture
from tools.registry import ToolSpec

FITS: dict[str, Any] = {"model": "7B", "method": "lora"}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of each tool that really ran."""
    seen: list[str] = []
    really = ToolSpec.call

    def call(spec: ToolSpec, arguments: dict[str, Any]) -> Any:
        seen.append(spec.name)
        return really(spec, arguments)

    monkeypatch.setattr(ToolSpec, "call", call)
    return seen


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    yield
    prices.set_overlay()
    models.set_elsewhere(None)


def ask(kept: KeptResults | None, name: str, arguments: dict[str, Any], call_id: str = "c1") -> Outcome:
    return run_call(ToolCall(call_id, name, arguments), kept)


def test_the_same_call_runs_once_and_gives_what_it_gave(runs: list[str]) -> None:
    kept = KeptResults()
    first, again = (ask(kept, "estimate_vram", dict(FITS), call_id) for call_id in ("c1", "c2"))
    assert runs == ["estimate_vram"]
    assert again.data == first.data == ask(None, "estimate_vram", FITS).data
    assert (first.call.id, again.call.id) == ("c1", "c2")
    assert again.payload("t7")["facts"][0]["id"].startswith("t7.")
    assert first.payload("t1")["facts"][0]["id"].startswith("t1.")


def test_other_arguments_and_other_tools_are_other_calls(runs: list[str]) -> None:
    kept = KeptResults()
    for arguments in (FITS, {**FITS, "seq_len": 4096}, {**FITS, "seq_len": 4096.0}, {**FITS, "method": "qlora"}):
        assert ask(kept, "estimate_vram", arguments).data == ask(None, "estimate_vram", arguments).data
    assert runs.count("estimate_vram") == 8
    assert ask(kept, "compare_gpus", {"gpus": ["H100", "A100"]}).error is None
    assert len(kept) == 5


def test_new_prices_or_another_day_make_every_call_new(runs: list[str]) -> None:
    kept = KeptResults()
    before = ask(kept, "lookup_prices", {"gpu": "H100"})
    old = prices.offers("H100-SXM5", billing="on_demand")[0]
    cheap = replace(
        old, id=10**6, usd_per_gpu_hour=0.5, usd_per_hour=0.5 * old.n_gpus, observed="2027-01-15", live=True
    )
    prices.set_overlay([cheap], today="2027-01-15")
    after = ask(kept, "lookup_prices", {"gpu": "H100"})
    assert len(runs) == 2
    assert after.data != before.data
    assert "0.5" in str(after.data)
    prices.set_overlay([cheap], today="2027-01-16")
    ask(kept, "lookup_prices", {"gpu": "H100"})
    assert len(runs) == 3


def test_errors_are_not_kept(runs: list[str]) -> None:
    kept = KeptResults()
    for _time in range(2):
        assert ask(kept, "estimate_vram", {"model": "no such model 9"}).error is not None
    assert len(runs) == 2
    assert len(kept) == 0


def test_what_was_read_from_the_hub_is_not_kept(runs: list[str]) -> None:
    def read(name: str, _field: str) -> Architecture:
        return replace(load_model("meta-llama/Llama-3.1-8B"), id=name)

    models.set_elsewhere(read)
    kept = KeptResults()
    for _time in range(2):
        outcome = ask(kept, "estimate_vram", {"model": "someone/unheard-of-8x-thing"})
        assert outcome.error is None
    assert len(runs) == 2
    assert len(kept) == 0


def test_the_one_not_used_for_longest_makes_room(runs: list[str]) -> None:
    kept = KeptResults(most=2)
    for method in ("lora", "qlora", "lora", "full", "lora"):  # full takes the place of qlora
        ask(kept, "estimate_vram", {**FITS, "method": method})
    assert len(kept) == 2
    assert len(runs) == 3
