"""Which tensor a failed allocation was: its bytes against the tensors that the workload makes.

Logits of b sequences of s tokens over a vocabulary V take b·s·V·4 bytes in fp32, a block's FFN activation b·s·f·2,
eager attention scores b·h·s·s·2, one weight matrix in·out·2: each is known from the shapes, so a match within half a
percent names the tensor. (PyTorch prints two decimals and rounds large blocks up to 2 MiB.)
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.memory.shapes import shape_of
from tools.workload import Job

TOLERANCE = 0.005


@dataclass(frozen=True, slots=True)
class Match:
    """A tensor whose size is the one asked for."""

    what: str
    formula: str
    nbytes: float
    family: str  # the knob family that shrinks it: loss, attention, batch, weights, optimizer


def identify(tried: float, job: Job) -> Match | None:
    """The tensor of ``job`` of this size in bytes, within ``TOLERANCE`` and 2 MiB, the likeliest kind first; None for
    none.
    """
    for match in candidates(job):
        slack = TOLERANCE * match.nbytes + 2 * 2.0**20
        if match.nbytes > 2**20 and abs(tried - match.nbytes) <= slack:
            return match
    return None


def candidates(job: Job) -> list[Match]:
    """Tensors that a step allocates whole, with their bytes, in the order in which they usually overflow."""
    shape = shape_of(job.arch)
    b, s = job.micro_batch, job.seq_len // job.cp
    tokens, vocab = b * s, job.arch.vocab_size
    found = []
    for seqs in dict.fromkeys((b, 1)):
        rows = seqs * s
        where = f"{seqs} x {s} tokens"
        found += [
            Match("logits in fp32", f"{where} x {vocab} vocabulary x 4 B", rows * vocab * 4.0, "loss"),
            Match("logits in fp32, shifted by one", f"{seqs} x {s - 1} x {vocab} x 4 B",
                  seqs * (s - 1) * vocab * 4.0, "loss"),
            Match("logits in bf16", f"{where} x {vocab} x 2 B", rows * vocab * 2.0, "loss"),
            Match("attention scores", f"{seqs} x {shape.heads} heads x {s} x {s} x 2 B",
                  float(seqs) * shape.heads * s * s * 2, "attention"),
            Match("attention scores in fp32", f"{seqs} x {shape.heads} heads x {s} x {s} x 4 B",
                  float(seqs) * shape.heads * s * s * 4, "attention"),
        ]  # fmt: skip
    found += [
        Match("FFN activation of a block", f"{tokens} tokens x {shape.ffn} x 2 B", tokens * shape.ffn * 2.0, "batch"),
        Match("FFN activation of a block in fp32", f"{tokens} x {shape.ffn} x 4 B", tokens * shape.ffn * 4.0, "batch"),
        Match("hidden state in fp32", f"{tokens} x {shape.hidden} x 4 B", tokens * shape.hidden * 4.0, "batch"),
        Match("embedding or head weights in fp32", f"{vocab} x {shape.hidden} x 4 B",
              vocab * shape.hidden * 4.0, "weights"),
        Match("embedding or head weights in bf16", f"{vocab} x {shape.hidden} x 2 B",
              vocab * shape.hidden * 2.0, "weights"),
        Match("FFN weight matrix in bf16", f"{shape.hidden} x {shape.ffn} x 2 B",
              shape.hidden * shape.ffn * 2.0, "weights"),
        Match("FFN weight matrix in fp32 (or its moment)", f"{shape.hidden} x {shape.ffn} x 4 B",
              shape.hidden * shape.ffn * 4.0, "optimizer"),
        Match("a block gathered in bf16", f"{shape.block} weights x 2 B", shape.block * 2.0, "weights"),
        Match("all weights in bf16", f"{shape.total} x 2 B", shape.total * 2.0, "weights"),
        Match("all weights in fp32", f"{shape.total} x 4 B", shape.total * 4.0, "weights"),
    ]  # fmt: skip
    return found
