"""Tools over HTTP: the list, a call, a batch; the OpenAPI document carries units and examples; pages are local."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from tests.integrations.http.conftest import Serve
from tools.registry import all_tools


def test_the_list_holds_every_tool_with_its_schemas(serve: Serve) -> None:
    listed = serve().client.get("/v1/tools").json()["tools"]
    assert [tool["name"] for tool in listed] == list(all_tools())
    for tool in listed:
        for schema in (tool["input_schema"], tool["output_schema"]):
            jsonschema.Draft202012Validator.check_schema(schema)


def test_a_call_gives_what_the_function_gives(serve: Serve) -> None:
    arguments = {"model": "7B", "method": "qlora"}
    got = serve().client.post("/v1/tools/estimate_vram", json=arguments)
    direct = all_tools()["estimate_vram"].call(arguments)
    assert got.json() == json.loads(direct.model_dump_json())


@pytest.mark.parametrize("name", list(all_tools()))
def test_every_example_in_the_document_works(serve: Serve, name: str) -> None:
    client = serve().client
    operation = client.get("/openapi.json").json()["paths"][f"/v1/tools/{name}"]["post"]
    examples = operation["requestBody"]["content"]["application/json"].get("examples", {})
    for example in examples.values():
        got = client.post(f"/v1/tools/{name}", json=example["value"])
        assert got.status_code == 200, got.text


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        ({"model": "7B", "seq_len": -1}, "out_of_range", "seq_len"),
        ({"model": "7B", "metod": "lora"}, "unknown_argument", "metod"),
        ({}, "missing_argument", "model"),
    ],
)
def test_a_wrong_argument_is_named(serve: Serve, arguments: dict[str, object], code: str, field: str) -> None:
    got = serve().client.post("/v1/tools/estimate_vram", json=arguments)
    error = got.json()["error"]
    assert (got.status_code, error["code"], error["field"]) == (422, code, field)


def test_an_unknown_tool_is_not_found_with_the_nearest_names(serve: Serve) -> None:
    got = serve().client.post("/v1/tools/estimate_ram", json={})
    assert got.status_code == 404
    assert "estimate_vram" in got.json()["error"]["candidates"]


def test_a_batch_answers_in_order_and_a_bad_item_stops_nothing(serve: Serve) -> None:
    client = serve().client
    items = [{"model": "a"}, {"model": "b", "n_gpus": 0}, 7, {"model": "c"}]
    results = client.post("/v1/tools/toy_memory/batch", json={"items": items}).json()["results"]
    about = [result["facts"][0]["about"][0] if "facts" in result else result["error"]["code"] for result in results]
    assert about == ["a", "out_of_range", "bad_value", "c"]
    lines = b'{"model": "a"}\n\nnot json\n{"model": "c"}\n'
    got = client.post("/v1/tools/toy_memory/batch", content=lines, headers={"content-type": "application/x-ndjson"})
    out = [json.loads(line) for line in got.text.splitlines()]
    assert [next(iter(line)) for line in out] == ["facts", "error", "facts"]


def test_a_batch_survives_a_tool_that_breaks_and_has_a_limit(serve: Serve) -> None:
    client = serve(batch_items=2).client
    got = client.post("/v1/tools/toy_price/batch", json={"items": [{"gpu": "boom"}, {"gpu": "H100"}]})
    assert [next(iter(result)) for result in got.json()["results"]] == ["error", "facts"]
    assert "sk-123" not in got.text
    assert client.post("/v1/tools/toy_price/batch", json={"items": [{}] * 3}).status_code == 413


def test_a_tool_that_breaks_is_our_fault_and_shows_no_detail(serve: Serve) -> None:
    got = serve().client.post("/v1/tools/toy_price", json={"gpu": "boom"})
    assert got.status_code == 500
    assert got.json()["error"]["code"] == "internal"
    assert "sk-123" not in got.text


def test_the_document_carries_units_and_resolves(serve: Serve) -> None:
    document = serve().client.get("/openapi.json").json()
    text = json.dumps(document)
    for reference in set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', text)):
        assert reference in document["components"]["schemas"], reference
    schemas = document["components"]["schemas"]
    units = {
        field["unit"]
        for schema in schemas.values()
        for field in schema.get("properties", {}).values()
        if "unit" in field
    }
    assert units
    for name in all_tools():
        assert f"/v1/tools/{name}" in document["paths"]


def test_pages_load_nothing_from_elsewhere(serve: Serve) -> None:
    client = serve().client
    page = client.get("/docs")
    assert page.status_code == 200
    for address in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert address.startswith(("/", "#")), address
        if address.startswith("/"):
            assert client.get(address).status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert all(name in page.text for name in all_tools())


def test_figures_count_by_route_and_tool_and_never_by_what_callers_write(serve: Serve) -> None:
    client = serve().client
    client.post("/v1/tools/toy_memory", json={"model": "very-private"})
    client.get("/v1/very-private")
    text = client.get("/metrics").text
    assert 'advisor_tool_calls_total{outcome="ok",surface="http",tool="toy_memory"} 1.0' in text
    assert 'route="/v1/tools/{name}"' in text
    assert "very-private" not in text


def test_figures_can_ask_for_a_token(serve: Serve) -> None:
    client = serve(metrics_token="a-token-for-figures").client
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"authorization": "Bearer a-token-for-figures"}).status_code == 200
