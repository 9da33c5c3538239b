"""MCP through the SDK's own client: over a subprocess's standard streams and over the running server's /mcp."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import jsonschema
import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from integrations.mcp.resources import listing
from integrations.mcp.server import build_server
from tests.integrations.http.conftest import Serve, _toy_tools, serve  # noqa: F401  fixtures
from tools.registry import all_tools

ROOT = Path(__file__).parents[3]
ARGUMENTS = {"model": "7B", "method": "qlora"}


def talk(server: Any, work: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
    """Do ``work`` with a client of this server."""

    async def main() -> Any:
        async with Client(server, mode=mode) as client:
            return await work(client)

    return anyio.run(main)


@pytest.fixture(scope="module")
def over_stdio() -> dict[str, Any]:
    """Everything asked of one `advisor mcp` process."""
    found: dict[str, Any] = {}

    async def work(client: Client) -> None:
        found["tools"] = (await client.list_tools()).tools
        found["result"] = await client.call_tool("estimate_vram", ARGUMENTS)
        found["refusal"] = await client.call_tool("estimate_vram", {"model": "7B", "seq_len": -1})
        found["article"] = await client.read_resource("advisor://articles/lora")
        found["prompts"] = (await client.list_prompts()).prompts

    command = [sys.executable, "-m", "advisor", "mcp"]
    talk(stdio_client(StdioServerParameters(command=command[0], args=command[1:], cwd=ROOT)), work)
    return found


def test_a_process_lists_every_tool_with_schemas_that_carry_units(over_stdio: dict[str, Any]) -> None:
    tools = {tool.name: tool for tool in over_stdio["tools"]}
    assert list(tools) == [name for name in all_tools() if not name.startswith("toy_")]
    for tool in tools.values():
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
    assert '"unit"' in json.dumps([tool.input_schema for tool in tools.values()])


def test_a_call_gives_data_and_words(over_stdio: dict[str, Any]) -> None:
    result = over_stdio["result"]
    direct = all_tools()["estimate_vram"].call(ARGUMENTS)
    assert not result.is_error
    assert result.structured_content["facts"] == [fact.model_dump(mode="json") for fact in direct.facts]
    assert "[[" not in result.content[0].text
    assert " GB" in result.content[0].text


def test_a_wrong_argument_is_a_result_that_a_model_can_mend(over_stdio: dict[str, Any]) -> None:
    refusal = over_stdio["refusal"]
    assert refusal.is_error
    assert refusal.structured_content["error"]["field"] == "seq_len"
    assert "seq_len" in refusal.content[0].text
    assert "pydantic" not in refusal.content[0].text


def test_articles_and_prompts_are_there(over_stdio: dict[str, Any]) -> None:
    assert "LoRA" in over_stdio["article"].contents[0].text
    assert {prompt.name for prompt in over_stdio["prompts"]} == {"size_training_job", "explain_out_of_memory"}


def test_the_server_speaks_the_same_over_http(serve: Serve) -> None:  # noqa: F811
    live = serve()

    async def work(client: Client) -> tuple[list[str], Any]:
        tools = (await client.list_tools()).tools
        return [tool.name for tool in tools], await client.call_tool("estimate_vram", ARGUMENTS)

    for mode in ("auto", "legacy"):
        names, result = talk(live.url + "/mcp", work, mode)
        assert names == list(all_tools())
        assert result.structured_content["facts"][0]["name"] == "peak_per_gpu"
    figures = live.client.get("/metrics").text
    assert 'advisor_tool_calls_total{outcome="ok",surface="mcp",tool="estimate_vram"} 2.0' in figures


def test_nobody_holds_a_stream_on_which_nothing_comes(serve: Serve) -> None:  # noqa: F811
    refused = serve().client.get("/mcp", headers={"accept": "text/event-stream"})
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


def test_over_http_a_key_is_asked_for_as_everywhere(serve: Serve) -> None:  # noqa: F811
    live = serve(api_keys="a-key-of-some-length")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"accept": "application/json, text/event-stream"}
    refused = live.client.post("/mcp", json=call, headers=accept)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
    key = live.service.accounts.create_key("team", scopes=["ask"])
    assert live.client.post("/mcp", json=call, headers={**accept, "authorization": f"Bearer {key}"}).status_code == 403
    let_in = live.client.post("/mcp", json=call, headers={**accept, "x-api-key": "a-key-of-some-length"})
    assert let_in.status_code == 200
    assert isinstance(let_in, httpx.Response)


def test_every_listed_resource_can_be_read() -> None:
    server = build_server("0")

    async def work(client: Client) -> None:
        for resource in (await client.list_resources()).resources:
            found = await client.read_resource(resource.uri)
            assert found.contents[0].mime_type == resource.mime_type
            assert len(found.contents[0].text) > 40  # type: ignore[union-attr]
        gpu = await client.read_resource("advisor://gpus/4090")
        assert json.loads(gpu.contents[0].text)["id"].startswith("RTX-4090")  # type: ignore[union-attr]
        for uri in (
            "advisor://gpus/nonsense-9000",
            "advisor://secrets",
            "file:///etc/passwd",
            "advisor://articles/../x",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    assert len(listing()) > 10
    talk(server, work)


def test_a_prompt_is_filled_and_what_it_lacks_is_named() -> None:
    async def work(client: Client) -> None:
        filled = await client.get_prompt("size_training_job", {"model": "llama-3.1-8b", "goal": "LoRA on {x}"})
        text = filled.messages[0].content.text  # type: ignore[union-attr]
        assert "llama-3.1-8b: LoRA on {x}" in text
        for name, arguments in (("size_training_job", {"model": "x"}), ("unknown", {})):
            with pytest.raises(MCPError):
                await client.get_prompt(name, arguments)
        with pytest.raises(MCPError, match="estimate_vram"):
            await client.call_tool("estimate_ram", {})

    talk(build_server("0"), work)


def test_a_tool_that_breaks_tells_no_detail() -> None:
    async def work(client: Client) -> None:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("toy_price", {"gpu": "boom"})
        assert "sk-123" not in str(caught.value)

    talk(build_server("0"), work)
