"""Results of tool calls kept for when the same call comes again, from anybody.

Tools are pure, so a result depends on nothing but the tool, its arguments, the knowledge base, and the price book with
its day; who asks and in which conversation is no part of it. Not kept: errors, and results for which a model was
looked for elsewhere (the hub), since that may answer otherwise next time.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from knowledge import models, prices
from knowledge.store import kb_version

if TYPE_CHECKING:
    from advisor.llm.protocol import ToolCall
    from advisor.tool_runner import Outcome

MOST = 64  # about a tenth of a megabyte each; many more would make the collector's pauses felt
Key = tuple[str, str, str, int]


class KeptResults:
    """The results used last; safe for several threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Key, Outcome] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Key) -> Outcome | None:
        """What the call gave before, None where it is not kept; safe for several threads. The outcome is shared: do not
        change it.
        """
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: Key, outcome: Outcome) -> None:
        """Keep a result; beyond ``most`` the one not used for longest makes room. Safe for several threads."""
        with self._lock:
            self._kept[key] = outcome
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def key_of(call: ToolCall) -> Key:
    """All that the call's result depends on: tool, arguments as JSON, knowledge base, price book with its day."""
    return call.name, json.dumps(call.arguments, default=repr), kb_version(), prices.version()


class Unchanged:
    """Whether what a call rests on has stayed the same since this was made."""

    def __init__(self) -> None:
        self._before = self._now()

    def __bool__(self) -> bool:
        return self._now() == self._before

    @staticmethod
    def _now() -> tuple[int, int]:
        return prices.version(), models.asked_elsewhere()
