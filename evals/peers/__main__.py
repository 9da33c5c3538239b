"""``python -m evals.peers [--python PEERS_PYTHON] [--heavy] [--out FILE.json]``: the benchmark and its table.

Without ``--python`` an environment is made in a temporary folder from the package index (``--heavy`` adds the peers
that need torch, several GB). All peers and we see the same rows: the packaged published measurements that are flagged
sound, in the terms each was measured in for us, as one number of bytes per GPU for peers, which know no such terms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.accuracy_memory import flags, predict, read_csv
from evals.measured_models import Row
from evals.measured_rows import Case, read_row
from knowledge.errors import InputProblem
from knowledge.gpus import find_gpu

LIGHT = (
    "ftuneai==0.4.1", "canifinetune==0.4.1", "llmcalculator==0.2.3", "ml-memguard==0.5.0", "vram-check==0.1.1",
    "train-in-silence==0.1.6", "huggingface-hub>=0.25",
)  # fmt: skip
# llm-analysis pins a hub client that the others refuse, so it is installed without its pins.
UNPINNED = ("llm-analysis==0.2.2", "fire")
HEAVY = ("torch", "transformers", "accelerate==1.15.0", "deepspeed==0.19.8")
FEATURES = {
    "this advisor": "full, LoRA, QLoRA, DPO, GRPO; ZeRO, FSDP, TP, PP, CP, EP; logits; range; time, price, network",
    "ftuneai": "full, LoRA, QLoRA; ZeRO, FSDP; time, cost; no logits", "canifinetune": "one GPU; logits; recipes",
    "llmcalculator": "one GPU; rank not asked", "ml-memguard": "one GPU", "vram-check": "full, one GPU, from the count",
    "llm-analysis": "full; ZeRO, TP, PP, EP; latency", "train-in-silence": "one GPU; offers and Pareto plans",
    "deepspeed": "full; model states only; host RAM", "accelerate": "full; batch 1",
    "rule of thumb": "16, 2, 0.5 B/param",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """A sound row: what was measured, our prediction, and the job as peers are told it."""

    id: str
    source: str
    method: str
    bytes_per_gpu: float
    ours: float
    seconds: float
    job: dict[str, Any]


def measured_rows() -> list[Measured]:
    """The packaged rows that are flagged sound and are measurements of one GPU, not bounds."""
    flagged = flags()
    found = []
    for row in read_csv(None, "measured_memory.csv"):
        if flagged.get(row["id"]) != "use" or row.get("kind") in ("fits", "oom"):
            continue
        try:
            case = read_row(row)
            started = time.perf_counter()
            ours = predict(case)[0]
            seconds = time.perf_counter() - started
        except (InputProblem, ValueError, KeyError, ArithmeticError):
            continue
        value = float(row["measured_peak_gb"]) * case.unit_bytes
        found.append(
            Measured(row["id"], row["source_repo_or_paper"], case.job.method, value, ours, seconds, _job(case, row))
        )
    return found


def _job(case: Case, row: Row) -> dict[str, Any]:
    job, arch = case.job, case.job.arch
    moe = arch.moe
    try:
        gib = find_gpu(row.get("gpu") or "A100 80GB").value.memory_bytes / 2**30
    except InputProblem:
        gib = 80.0
    return {
        "id": case.id, "params": arch.total_params, "active_params": arch.active_params, "layers": arch.n_layers,
        "hidden": arch.hidden_size, "heads": arch.n_heads, "kv_heads": arch.n_kv_heads, "head_dim": arch.head_dim,
        "ffn": arch.ffn_size, "vocab": arch.vocab_size, "tied": arch.tied_embeddings, "gated": arch.gated_mlp,
        "experts": moe.n_experts if moe else 0, "top_k": moe.experts_per_token if moe else 0, "method": "full" if job.method in ("pretrain", "continued_pretrain") else job.method,
        "fp32_weights": case.recipe.weight == 4.0, "optimizer": job.optimizer, "seq_len": job.seq_len,
        "micro_batch": job.micro_batch, "checkpointing": job.checkpointing, "attention": job.attention,
        "sharding": job.sharding, "n_gpus": job.n_gpus, "tp": job.tp, "pp": job.pp, "cp": job.cp,
        "lora_rank": job.lora_rank, "all_linear": len(job.lora_targets) > 4, "fused_loss": job.fused_loss,
        "gpu_gib": gib, "live": case.kind == "allocated",
    }  # fmt: skip


def ask_peers(python: str, rows: list[Measured], less_overhead: bool) -> list[dict[str, Any]]:
    """What each peer of that environment says of the rows; ``less_overhead`` as ``adapters`` says of ``live``."""
    script = Path(__file__).with_name("adapters.py")
    lines = "\n".join(json.dumps({**row.job, "live": less_overhead and row.job["live"]}) for row in rows)
    done = subprocess.run([python, str(script)], input=lines, capture_output=True, text=True, check=True, timeout=3600)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def scores(rows: list[Measured], answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line a peer, us first: rows covered, errors with each source weighted equally, and time.

    A peer was asked twice, for its total and less the overhead it lists apart; the better reading counts.
    """
    table = [_line("this advisor", rows, {row.id: row.ours for row in rows}, statistics.fmean(r.seconds for r in rows))]
    for answer in answers:
        if "missing" in answer:
            if all(line["peer"] != answer["peer"] for line in table):
                table.append({"peer": answer["peer"], "missing": answer["missing"]})
            continue
        values = {item["id"]: item["bytes"] for item in answer["answers"] if item["bytes"]}
        line = _line(answer["peer"], rows, values, answer["mean_seconds"])
        reasons: dict[str, int] = {}
        for item in answer["answers"]:
            if item["why"]:
                reasons[item["why"]] = reasons.get(item["why"], 0) + 1
        line["cannot"] = dict(sorted(reasons.items(), key=lambda pair: -pair[1])[:5])
        known = next((number for number, other in enumerate(table) if other["peer"] == line["peer"]), None)
        if known is None:
            table.append(line)
        elif (line["median_error_pct"] or 1e9) < (table[known].get("median_error_pct") or 1e9):
            table[known] = line
    return table


def _line(peer: str, rows: list[Measured], values: dict[str, float], seconds: float | None) -> dict[str, Any]:
    errors = [(abs(values[row.id] / row.bytes_per_gpu - 1), row) for row in rows if row.id in values]
    ours = [abs(row.ours / row.bytes_per_gpu - 1) for _, row in errors]
    sources = [row.source for _, row in errors]
    return {
        "peer": peer,
        "rows": len(errors),
        "covered_pct": round(100 * len(errors) / len(rows), 1),
        "median_error_pct": _weighted([error for error, _ in errors], sources, 0.5),
        "p90_error_pct": _weighted([error for error, _ in errors], sources, 0.9),
        "within_10_pct": round(100 * sum(error <= 0.1 for error, _ in errors) / len(errors), 1) if errors else None,
        "our_median_on_the_same_rows_pct": _weighted(ours, sources, 0.5),
        "by_method": {
            method: _weighted(
                [error for error, row in errors if row.method == method],
                [row.source for _, row in errors if row.method == method],
                0.5,
            )
            for method in sorted({row.method for _, row in errors})
        },
        "milliseconds": round(1000 * seconds, 3) if seconds else None,
        "features": FEATURES.get(peer, ""),
    }


def _weighted(errors: list[float], sources: list[str], share: float) -> float | None:
    """The quantile in per cent with every source of equal weight, so that one large source does not decide."""
    if not errors:
        return None
    weights = [1 / sources.count(source) for source in sources]
    total, run = sum(weights), 0.0
    for error, weight in sorted(zip(errors, weights, strict=True)):
        run += weight
        if run >= share * total:
            return round(100 * error, 1)
    return None


def print_table(table: list[dict[str, Any]]) -> None:
    """Print the table of ``scores`` for a person, 170 columns wide, errors in percent."""
    from rich.console import Console
    from rich.table import Table

    shown = Table(title="Predicted against published memory per GPU", title_justify="left")
    heads = ("peer", "rows", "covered", "median error", "90th", "within 10 %", "ours there", "ms", "can express")
    for head in heads:
        shown.add_column(head, justify="left" if head in ("peer", "can express") else "right")
    for line in table:
        if "missing" in line:
            shown.add_row(line["peer"], *["–"] * 7, f"not installed: {line['missing']}")
            continue
        cells = [f"{line[key]} %" if line[key] is not None else "–" for key in
                 ("covered_pct", "median_error_pct", "p90_error_pct", "within_10_pct", "our_median_on_the_same_rows_pct")]  # fmt: skip
        shown.add_row(line["peer"], str(line["rows"]), *cells, str(line["milliseconds"] or "–"), line["features"])
    shown.caption = "Our few overhead constants were fitted on these rows; no peer saw them. Sources weigh equally."
    Console(width=170).print(shown)


def make_environment(folder: Path, heavy: bool) -> str:
    """Make an environment in ``folder`` and install the peers into it over the network; the path of its Python. Raises
    CalledProcessError where pip fails.
    """
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *LIGHT, *(HEAVY if heavy else ())], check=True)
    subprocess.run([*pip, "--no-deps", *UNPINNED], check=True)
    return python


def main() -> None:
    """Run the benchmark and print its table, with --out also as JSON; installs the peers where no Python is given."""
    parser = argparse.ArgumentParser(prog="python -m evals.peers", description=__doc__)
    parser.add_argument("--python", action="append", help="Python of an environment that holds peers; may be repeated.")
    parser.add_argument("--heavy", action="store_true", help="Also install the peers that need torch.")
    parser.add_argument("--out", type=Path, help="Write the table as JSON.")
    given = parser.parse_args()
    rows = measured_rows()
    with tempfile.TemporaryDirectory() as folder:
        pythons = given.python or [make_environment(Path(folder) / "peers", given.heavy)]
        answers: dict[str, dict[str, Any]] = {}
        for python in pythons:
            for less_overhead in (False, True):
                for answer in ask_peers(python, rows, less_overhead):
                    key = f"{answer['peer']}|{less_overhead}"
                    if "missing" not in answer or key not in answers:
                        answers[key] = answer
    table = scores(rows, list(answers.values()))
    print_table(table)
    if given.out:
        given.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
