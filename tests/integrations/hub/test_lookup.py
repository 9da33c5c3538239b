"""Looking a model up on the hub: what is asked, what is kept, and what is said when it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from advisor.turn import answer
from integrations import hub
from integrations.hub.lookup import is_hub_id, lookup
from knowledge import models
from knowledge.errors import UnknownName
from knowledge.types import Architecture
from tools.registry import get_tool

NOW = datetime(2026, 12, 1, tzinfo=UTC)
NAME = "some-lab/New-Model-9B"
# Llama-3.1-8B with four layers more: 8,030,261,248 + 4 x (41,943,040 + 176,160,768 + 8,192) weights.
CONFIG = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 36,
          "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
          "tie_word_embeddings": False}  # fmt: skip
ABOUT = {"safetensors": {"total": 8_902_709_248}, "gated": False, "cardData": {"license": "apache-2.0"}}


@pytest.fixture(autouse=True)
def _detached() -> Iterator[None]:
    yield
    models.set_elsewhere(None)


def _look(folder: Path, now: datetime = NOW, name: str = NAME, **environment: str) -> Architecture | None:
    return lookup(name, path=folder / "hub.db", environment=environment, now=lambda: now)


def _serve(config: Any = CONFIG, status: int = 200) -> respx.Route:
    respx.get(f"https://huggingface.co/api/models/{NAME}").respond(json=ABOUT)
    return respx.get(f"https://huggingface.co/{NAME}/raw/main/config.json").respond(status, json=config)


@respx.mock
def test_a_public_model_is_read_once_and_then_kept(tmp_path: Path) -> None:
    route = _serve()
    first, again = _look(tmp_path), _look(tmp_path, NOW + timedelta(days=20))
    assert first == again
    assert first is not None
    assert (first.total_params, first.licence, first.as_of) == (8_902_709_248, "apache-2.0", "2026-12-01")
    assert route.call_count == 1


@respx.mock
def test_a_token_is_sent_where_there_is_one(tmp_path: Path) -> None:
    route = _serve()
    _look(tmp_path, HF_TOKEN="hf_test")
    assert route.calls.last.request.headers["authorization"] == "Bearer hf_test"


@respx.mock
def test_an_old_reading_beats_none(tmp_path: Path) -> None:
    _serve()
    first = _look(tmp_path)
    respx.get(f"https://huggingface.co/{NAME}/raw/main/config.json").respond(500)
    assert _look(tmp_path, NOW + timedelta(days=400)) == first
    assert _look(tmp_path, NOW + timedelta(days=400), ADVISOR_OFFLINE="1") == first


@respx.mock(assert_all_called=False)
def test_offline_says_what_to_give_instead_and_asks_nobody(tmp_path: Path, respx_mock: respx.MockRouter) -> None:
    route = respx_mock.route().respond(json=CONFIG)
    with pytest.raises(UnknownName) as problem:
        _look(tmp_path, ADVISOR_OFFLINE="1")
    assert problem.value.code == "hub_offline"
    assert "params_b" in str(problem.value.hint)
    assert not route.called


@respx.mock
@pytest.mark.parametrize(
    ("status", "code"), [(404, "unknown_model"), (401, "hub_gated"), (403, "hub_gated"), (500, "hub_unreachable")]
)
def test_a_model_that_cannot_be_read_is_one_error_with_a_way_out(tmp_path: Path, status: int, code: str) -> None:
    _serve(status=status)
    with pytest.raises(UnknownName) as problem:
        _look(tmp_path)
    assert problem.value.code == code
    assert "params_b" in str(problem.value.hint)


@respx.mock
@pytest.mark.parametrize("error", [httpx.ConnectError("refused"), OSError("sockets are shut"), RuntimeError("blocked")])
def test_without_a_network_the_question_still_gets_an_answer(tmp_path: Path, error: Exception) -> None:
    respx.route().mock(side_effect=error)
    with pytest.raises(UnknownName) as problem:
        _look(tmp_path)
    assert problem.value.code == "hub_unreachable"


@respx.mock
def test_a_renamed_model_is_followed_on_the_hub_and_nowhere_else(tmp_path: Path) -> None:
    _serve()
    old = "https://huggingface.co/old-lab/Model/raw/main/config.json"
    respx.get("https://huggingface.co/api/models/old-lab/Model").respond(404)
    respx.get(old).respond(307, headers={"location": f"/{NAME}/raw/main/config.json"})
    found = _look(tmp_path, name="old-lab/Model")
    assert found is not None
    assert found.n_layers == 36
    for where in ("https://evil.example/config.json", "//evil.example/x", "/admin", f"/{NAME}/raw/main/../x.json"):
        respx.get(old).respond(307, headers={"location": where})
        with pytest.raises(UnknownName):
            _look(tmp_path / "fresh", name="old-lab/Model")


@pytest.mark.parametrize(
    "name",
    ["a/b/c", "../etc/passwd", "a/..", "..", "http://x/y", "a b/c", "a/b?x=1", "a/b#c", "a\\b/c", "-a/b", "a/.b",
     "a/b.", "a@b/c", "user:pw@host/x", "x" * 200 + "/y", "", "llama", "a/b\n", "%2e%2e/x"],
)  # fmt: skip
def test_what_is_no_hub_id_is_never_asked_for(name: str, tmp_path: Path) -> None:
    assert not is_hub_id(name)
    assert _look(tmp_path, name=name) is None


@respx.mock
def test_an_unknown_hub_id_can_be_sized_once_a_surface_is_attached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _serve()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(UnknownName):
        get_tool("estimate_vram").call({"model": NAME})
    hub.attach()
    result = get_tool("estimate_vram").call({"model": NAME, "method": "qlora"})
    assert float(result.fact("weights").value) > 4e9
    assert any("read from its configuration on the hub" in note.why for note in result.assumptions)


def test_a_known_model_never_asks_the_hub() -> None:
    def fail(name: str, field: str) -> Architecture | None:
        raise AssertionError(name)

    models.set_elsewhere(fail)
    assert models.find_model("meta-llama/Llama-3.1-8B-Instruct").value.id == "meta-llama/Llama-3.1-8B"


def test_a_model_that_the_hub_does_not_give_is_sized_by_its_name_and_the_answer_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("ADVISOR_OFFLINE", "1")
    hub.attach()
    done = answer(f"can I qlora {NAME} on a 4090?")
    assert done.status == "answered"
    assert "I do not know" in done.answer
    assert "typical dense 9B decoder" in done.answer
    assert any(fact["name"] == "peak_per_gpu" for fact in done.as_json()["facts"])
