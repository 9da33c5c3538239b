"""The tables of ``evals/notes/throughput.md``, so that the notes cannot drift from what the model does.

python -m evals.throughput_notes      rewrites the part of the notes between its two marks
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from evals.accuracy_throughput import Outcome, held_out_outcomes, scores, summary
from tools.throughput.efficiency import compute_bits, peak_flops

NOTES = Path(__file__).parent / "notes" / "throughput.md"
BEGIN, END = "<!-- tables: python -m evals.throughput_notes -->", "<!-- end of tables -->"
SEEDS = (0, 1, 2)


def tables() -> str:
    """Every table, as Markdown, from constants fitted anew without the rows that they are tried on."""
    splits = [held_out_outcomes(seed) for seed in SEEDS]
    strange = held_out_outcomes(by_source=True)
    first = summary(splits[0])
    lines = [
        "| what | rows | median error | 90th percentile | interval covers |",
        "|---|---:|---:|---:|---:|",
    ]
    for seed, outcomes in zip(SEEDS, splits, strict=True):
        lines.append(_line(f"constants fitted without the row's group (split {seed})", outcomes))
    lines.append(_line("constants fitted without the row's whole source", strange))
    dense = [one for one in splits[0] if one.case and one.case.job.method == "pretrain" and not one.case.job.arch.is_moe
             and one.case.job.arch.total_params >= 1e9 and one.case.job.seq_len <= 8192]  # fmt: skip
    lines.append(_line("of split 0: dense pretraining of 1B and more, up to 8k tokens", dense))
    moe = [one for one in splits[0] if one.case and one.case.job.arch.is_moe]
    lines.append(_line("of split 0: mixtures of experts", moe))
    rule = [six_nd(one) for one in splits[0]]
    lines.append(_line("the rule 6·N·D at 40 % of peak, for comparison", rule))
    lines += [
        "",
        f"The faster of two cards at the same job is named rightly in {first['faster_card_right_percent']} % of "
        f"{first['faster_card_pairs']} pairs that differ by 20 % or more; the rule names {_pairs(rule)} %.",
        "",
    ]
    for title, key in (("GPU", "by_gpu"), ("Precision", "by_precision"), ("Method", "by_method"),
                       ("GPUs", "by_scale"), ("Software", "by_software"), ("Source", "by_source")):  # fmt: skip
        lines += [f"| {title} | rows | median error | 90th percentile | bias |", "|---|---:|---:|---:|---:|"]
        for name, row in first[key].items():
            lines.append(
                f"| {name} | {row['rows']} | {row['median_percent']} % | {row['p90_percent']} % | "
                f"{row['bias_percent']:+} % |"
            )
        lines.append("")
    worst = sorted(splits[0], key=lambda one: -abs(one.error))[:12]
    lines.append("Worst twelve: " + ", ".join(f"{one.id} {100 * one.error:+.0f} %" for one in worst) + ".")
    return "\n".join(lines)


def six_nd(one: Outcome) -> Outcome:
    """The same row by the rule of thumb: 6 FLOPs a parameter and token at 40 % of the precision's peak."""
    assert one.case is not None
    job, gpu = one.case.job, one.case.gpu
    peak = peak_flops(gpu, compute_bits(job.precision, gpu, job.method != "qlora"))
    predicted = 0.4 * peak / (6.0 * job.arch.active_params)
    return replace(one, predicted=predicted, low=predicted, high=predicted)


def write() -> None:
    """Write fresh tables between the marks of the notes."""
    text = NOTES.read_text(encoding="utf-8")
    before, _mark, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    NOTES.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{after}", encoding="utf-8")


def _line(what: str, outcomes: list[Outcome]) -> str:
    found = scores(outcomes)
    covered = "" if all(one.low == one.high for one in outcomes) else f"{found['coverage_percent']} %"
    return f"| {what} | {len(outcomes)} | {found['median_percent']} % | {found['p90_percent']} % | {covered} |"


def _pairs(outcomes: list[Outcome]) -> Any:
    return summary(outcomes)["faster_card_right_percent"]


if __name__ == "__main__":
    write()
