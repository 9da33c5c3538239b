"""Plants the fault that FAULTS_SEED names, in whatever Python process has this folder on its path.

Not in pytest's own, which wants to be first to import; there ``tests/faults/conftest.py`` does it.
"""

import os
import sys

if os.environ.get("FAULTS_SEED") and "pytest" not in sys.orig_argv:
    from tests.faults.mutations import plant

    plant(os.environ["FAULTS_SEED"])
