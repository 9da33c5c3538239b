"""What the planner asks the tools for links, versions, launch files and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from advisor.llm.planner import Planner
from advisor.llm.protocol import Message, ModelRequest, ToolCall, ToolSchema
from tools.registry import tool_names

TOOLS = tuple(ToolSchema(name, dict) for name in tool_names())
WATCHDOG = "[rank5]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1048576"
BUS = "RuntimeError: DataLoader worker (pid 4471) is killed by signal: Bus error. workers are out of shared memory."


def first_call(question: str) -> tuple[str, dict[str, Any]]:
    """The first call's name and its arguments."""
    events = list(Planner().reply(ModelRequest((Message("user", question),), TOOLS, 1e12, True)))
    call = next(event for event in events if isinstance(event, ToolCall))
    found = call.arguments if isinstance(call.arguments, dict) else json.loads(call.arguments)
    return call.name, found


@pytest.mark.parametrize(
    ("question", "tool", "wanted"),
    [
        ("Is 100GbE enough to pretrain a 7B on 64 A100?", "check_interconnect", {"inter_link": "100GbE", "n_gpus": 64}),
        ("will 100 Gb/s be enough for 13B full fine-tuning on 16 H100", "check_interconnect",
         {"inter_link": "100 Gb/s"}),
        ("4 x p4d.24xlarge, full fine-tune of llama-2-13b: is EFA the bottleneck?", "check_interconnect",
         {"n_gpus": 32, "gpus_per_node": 8}),
        ("p4d.24xlarge x 4, full fine-tune of llama-2-13b: is EFA the bottleneck?", "check_interconnect",
         {"n_gpus": 32}),
        ("make me a slurm script for llama-3-70b full fine-tuning on 32 H100", "launch_plan", {"n_gpus": 32}),
        ("can I run flash-attention 3 on an A100 with CUDA 11.8?", "check_compatibility", {"attention": "flash3"}),
        ("does bitsandbytes work on MI300X?", "check_compatibility", {"framework": "bitsandbytes"}),
        (WATCHDOG, "diagnose_oom", {"traceback": WATCHDOG}),
        (BUS, "diagnose_oom", {}),
        ("starts w/ 41 GB then slowly climbs, oom at step 1300. a100-80. var len data no packing", "diagnose_oom", {}),
    ],
)  # fmt: skip
def test_the_tool_and_what_it_is_given(question: str, tool: str, wanted: dict[str, Any]) -> None:
    name, found = first_call(question)
    assert name == tool
    if tool != "diagnose_oom":
        assert {key: found.get(key) for key in wanted} == wanted
    else:
        assert all(value in found[key] for key, value in wanted.items())
