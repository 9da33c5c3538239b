"""The list of tools, in the order in which surfaces show them, each with the module that declares it.

A new tool: write its module, add one line here. A module is imported when its tool is first asked for, so that a
question pays only for the tools it needs.
"""

MODULES: dict[str, str] = {
    "estimate_vram": "tools.estimate_vram",
    "select_gpu": "tools.cost.select_gpu",
    "estimate_run": "tools.cost.estimate_run",
    "check_interconnect": "tools.network.check_interconnect",
    "lookup_prices": "tools.lookup_prices",
    "plan_parallelism": "tools.network.plan_parallelism",
    "plan_checkpoints": "tools.cost.plan_checkpoints",
    "compare_ownership": "tools.cost.compare_ownership",
    "estimate_power": "tools.cost.estimate_power",
    "compare_gpus": "tools.compare_gpus",
    "check_compatibility": "tools.compatibility.check_compatibility",
    "launch_plan": "tools.launch.launch_plan",
    "diagnose_oom": "tools.diagnose.diagnose_oom",
    "check_speed": "tools.diagnose.check_speed",
    "search_knowledge": "tools.search_knowledge",
}
