"""The embedded model: reads the question, chooses tools, fills slots from the conversation, words the answer.

It keeps no state: every step is decided from the messages alone, so the same messages give the same step.
"""

from advisor.llm.planner.model import Planner

__all__ = ["Planner"]
