"""The list of tool modules, in the order in which surfaces show them. Importing this registers them all.

A new tool: write its module, add one line here.
"""

import tools.cost.estimate_run
import tools.cost.select_gpu  # noqa: F401
from tools import estimate_vram  # noqa: F401
