"""Cutting a growing text into whole paragraphs, so that each can be checked before anyone sees it."""

from __future__ import annotations


def complete_blocks(pending: str) -> tuple[list[str], str]:
    """The paragraphs of ``pending`` that are finished, and the rest. A code fence counts as one paragraph."""
    blocks: list[str] = []
    start = position = 0
    while (position := pending.find("\n\n", position)) != -1:
        piece = pending[start:position]
        if piece.count("```") % 2 == 0:
            if piece.strip():
                blocks.append(piece)
            start = position + 2
        position += 2
    return blocks, pending[start:]
