"""How much is trained on: tokens, sequence lengths, rows, passes, steps."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import ModelMention
from advisor.llm.planner.page import READ, Page, length, number, number_word, scaled, sign

_LONGEST_SAMPLE = 20_000_000  # tokens; nobody trains on longer ones
_SHORTEST_DATA_SET = 300_000  # tokens; a smaller figure is the length of a sample


def read_tokens(page: Page, values: dict[str, Any]) -> None:
    """Training tokens, or a sample's length where the figure is one."""
    per_second = page.take("tokens_per_second")
    if per_second:
        values["tokens_per_second"] = scaled(per_second[1], per_second[2])
    sample = page.take("sample_length")
    if sample and sample[1] and scaled(sample[1], sample[2]) >= _SHORTEST_DATA_SET:
        values["tokens"] = scaled(sample[1], sample[2])  # "15M tokens each": of each run, not of each row
        return
    if sample and sample[1]:
        values["seq_len"] = length(sample[1], sample[2])
    elif sample:
        values["tokens_per_sample"] = int(sample[3])
    spoken = page.take("spoken_tokens")
    if spoken:
        *heads, scale = re.split(r"[\s\-]+", spoken[1])
        head = 0.5 if heads[:1] == ["half"] else float(number_word(heads[0]) or 1)
        values["tokens"] = head * (100 if "hundred" in heads[1:] else 1) * grammar.data("numbers")["scales"][scale]
        return
    given = page.take("tokens_given") or page.take("tokens_of_text") or page.take("tokens_flag")
    if given:
        values["tokens"] = scaled(given[1], given[2])
        return
    match = page.take("tokens")
    if not match:
        return
    _read_passes(page, match.end(), values)
    amount = scaled(match[1], match[2])
    short = amount < _LONGEST_SAMPLE and grammar.named("at_before").search(page.text[: match.start()]) is not None
    short = short or (
        amount < _SHORTEST_DATA_SET and (not match[2] or (match[2] == "k" and not page.has("of_a_data_set")))
    )
    if short:
        values.setdefault("seq_len", length(match[1], match[2]))
    else:
        values["tokens"] = amount


def _read_passes(page: Page, end: int, values: dict[str, Any]) -> None:
    """How often the data set named up to ``end`` is gone over: "200M tokens x3"."""
    match = grammar.named("passes_after").match(page.text, end)
    if match:
        values.setdefault("epochs", {"twice": 2, "thrice": 3}.get(match[3]) or int(match[1] or match[2]))
        page.blank(*match.span())


def read_late_tokens(page: Page, models: list[ModelMention], values: dict[str, Any]) -> None:
    """In "1.3b on 26B" the second of two sizes after "on" is the data. The model list is edited in place."""
    if "tokens" in values or len(models) < 2:
        return
    for before, after in pairwise(models):
        between = page.text[before.start + len(before.text) : after.start].replace(READ, "")
        if after.kind == "size" and grammar.named("on_data").fullmatch(between):
            values["tokens"] = scaled(str(after.size)[:-1], str(after.size)[-1].lower())
            models.remove(after)
            return


def read_lengths(page: Page, values: dict[str, Any]) -> tuple[int, int] | None:
    """A sequence length with its word, in any order; gives the place of the two."""
    both = page.take("batch_by_length")
    if both:
        values["global_batch"], values["seq_len"] = int(both[1]), length(both[2], both[3])
        return both.span()
    spoken = page.take("spoken_length")
    if spoken:
        head, _, scale = spoken[1].replace("-", " ").partition(" ")
        values["seq_len"] = int((number_word(head) or 1) * float(grammar.data("numbers")["scales"][scale]))
        return spoken.span()
    for name in ("length_wanted", "length_after", "length_before", "length_of_text", "length_at"):
        match = page.take(name)
        if match:
            values["seq_len"] = sign(match, 1) * length(match[1], match[2])
            return match.span()
    return None


def read_bare_length(page: Page, models: list[ModelMention], values: dict[str, Any]) -> None:
    """A usual sequence length without its word ("2048 ok, 3072 OOM", "24k runs, 32k dies"): the last one named."""
    meant = bool(models) or "micro_batch" in values
    if not meant or "seq_len" in values:
        return
    other = grammar.named("no_length_before")
    usual = [match for match in page.all("usual_length") if not other.search(page.text[: match.start()][-12:])]
    if usual:
        values["seq_len"] = int(usual[-1][1])
        return
    usual = [match for match in page.all("usual_length_k") if not other.search(page.text[: match.start()][-12:])]
    if usual and not page.has("price_words"):
        values["seq_len"] = length(usual[-1][1], "k")


def read_variants(page: Page, values: dict[str, Any]) -> None:
    """Two values of one choice, to be computed side by side: "rank 64 vs 16"."""
    for name, index in grammar.names("variants"):
        match = page.take(name, "variants", index)
        if not match:
            continue
        if name == "seq_len":
            scale = match[2] or match[4]
            pair = [length(match[1], match[2] or scale), length(match[3], match[4] or scale)]
        else:
            pair = [int(match[1]), int(match[2])]
        if pair[0] != pair[1] and min(pair) > 0:
            values["variants"] = (name, pair)
            values[name] = pair[0]
            return


def read_data_set(page: Page, values: dict[str, Any]) -> None:
    """Rows, hours of audio, passes and steps of a data set, as counts, into ``values``."""
    match = page.take("samples") or page.take("samples_of_a_kind") or page.take("samples_given")
    if match:
        values["samples"] = int(min(scaled(match[1], match[2]), 1e15))
        _read_passes(page, match.end(), values)
    audio = page.take("audio")
    if audio:
        values["audio_hours"] = number(audio[1])
    match = page.take("epochs") or page.take("epochs_given")
    if match:
        passes = number_word(match[1]) or (float(match[1]) if re.fullmatch(r"\d{1,9}\.\d+", match[1]) else None)
        if passes or re.fullmatch("0+", match[1]):  # none at all is refused by the tools, in their words
            values["epochs"] = passes or 0
    match = page.take("steps") or page.take("steps_given")
    if match and not re.search(rf"(?:for|after|at|step)\s+{re.escape(match[1])}", page.text):
        values["steps"] = int(min(scaled(match[1], match[2]), 1e15))
