"""The list of tool modules, in the order in which surfaces show them. Importing this registers them all.

A new tool: write its module, add one line here.
"""

import tools.compatibility.check_compatibility
import tools.cost.estimate_run
import tools.cost.select_gpu
import tools.network.check_interconnect
import tools.network.plan_parallelism  # noqa: F401
from tools import compare_gpus, estimate_vram, lookup_prices, search_knowledge  # noqa: F401
