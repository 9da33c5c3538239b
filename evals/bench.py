"""What a question costs: ``python -m evals.bench`` prints JSON and exits 1 when a limit is passed.

Cold: processor time of a whole ``advisor ask`` in a process of its own, best of several (the machine may be shared).
Warm: processor time of a turn inside a running process, by thread and children, median of several.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

QUESTIONS = (
    "what GPU for 70B QLoRA?",
    "can I full fine-tune Llama 3.1 8B on one H100?",
    "how long and how much to train a 1B model on 20B tokens on 8xA100?",
    "do I need InfiniBand for 2 nodes of 8xH100 training a 7B?",
    "cheapest H100 per hour right now?",
)
COLD_SECONDS = 0.7
WARM_SECONDS = 0.020
ROOT = Path(__file__).parent.parent


def main() -> int:
    """Measure, print JSON (seconds cold, milliseconds warm, both processor time); 0, or 1 when a limit is passed."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        os.environ.pop("ADVISOR_MODEL", None)
        cold = {question: round(_cold(question), 3) for question in QUESTIONS}
        warm = {question: round(_warm(question) * 1e3, 1) for question in QUESTIONS}
    passed = max(cold.values()) < COLD_SECONDS and max(warm.values()) < WARM_SECONDS * 1e3
    found: dict[str, Any] = {
        "cold_cpu_seconds": cold,
        "cold_limit_seconds": COLD_SECONDS,
        "warm_cpu_milliseconds": warm,
        "warm_limit_milliseconds": WARM_SECONDS * 1e3,
        "passed": passed,
    }
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0 if passed else 1


def _cold(question: str, tries: int = 3) -> float:
    times = []
    for _number in range(tries):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "advisor", "ask", question]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def _warm(question: str, tries: int = 9) -> float:
    from advisor.turn import answer  # imported here, so that the cold runs are not measured beside it

    answer(question)
    times = []
    for _number in range(tries):
        begun = time.process_time()
        answer(question)
        times.append(time.process_time() - begun)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
