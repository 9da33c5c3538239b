"""How many tokens a run trains on, from what people say: tokens, samples and epochs, or nothing."""

from __future__ import annotations

from tools.errors import BadValue
from tools.result import Assumption
from tools.units import parse_count
from tools.workload import Job

CHINCHILLA_TOKENS_PER_PARAM = 20.0  # Hoffmann et al. 2022, arXiv:2203.15556, table 3
FINE_TUNING_TOKENS = 10e6
MAX_TOKENS = 1e16
_SEQUENCES = {"dpo": 2, "orpo": 2, "reward": 2}  # a preference pair is two sequences


def training_tokens(
    job: Job,
    tokens: float | str | None,
    samples: float | str | None = None,
    epochs: float | None = None,
    tokens_per_sample: float | None = None,
) -> tuple[float, list[Assumption]]:
    """Tokens over the whole run, with what was assumed. Raises BadValue for none, negative or absurd amounts."""
    assumed: list[Assumption] = []
    passes = 1.0 if epochs is None else epochs
    if passes <= 0:
        raise BadValue("out_of_range", "A run needs more than 0 epochs.", field="epochs", candidates=["1", "3"])
    if tokens is not None:
        amount = parse_count(tokens, "tokens")
        if amount <= 0:
            raise BadValue(
                "out_of_range",
                "A run on 0 tokens trains nothing." if amount == 0 else "Tokens cannot be negative.",
                field="tokens",
                hint="Tokens in the dataset, e.g. 100M or 20B; epochs multiply it.",
                candidates=["10M", "1B"],
            )
    elif samples is not None:
        count = parse_count(samples, "samples")
        if count <= 0:
            raise BadValue("out_of_range", "A dataset needs samples.", field="samples", candidates=["10000"])
        each = tokens_per_sample
        if each is None:
            each = float(job.seq_len)
            assumed.append(
                Assumption(
                    name="tokens_per_sample",
                    value=each,
                    unit="tokens",
                    argument="tokens_per_sample",
                    why="every sample filled to the sequence length; packing reaches this, padding bills it",
                )
            )
        sequences = _SEQUENCES.get(job.method, 1) * job.group_size
        if sequences > 1:
            what = "chosen and rejected answer" if job.method in _SEQUENCES else "completions of its prompt"
            assumed.append(
                Assumption(name="sequences_per_sample", value=sequences, why=f"a sample's {what} are trained on")
            )
        amount = count * each * sequences
    elif job.method in ("pretrain",):
        amount = CHINCHILLA_TOKENS_PER_PARAM * job.arch.active_params
        assumed.append(
            Assumption(
                name="tokens",
                value=amount,
                unit="tokens",
                argument="tokens",
                why="20 tokens a parameter (Hoffmann et al. 2022)",
            )
        )
    else:
        amount = FINE_TUNING_TOKENS
        assumed.append(
            Assumption(
                name="tokens",
                value=amount,
                unit="tokens",
                argument="tokens",
                why="about 20,000 samples of 500 tokens; time and cost grow in proportion",
            )
        )
    total = amount * passes
    if total > MAX_TOKENS:
        raise BadValue("out_of_range", f"{total:g} tokens is beyond anything trained.", field="tokens")
    return total, assumed
