"""Money, shares, memory, times and versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import GpuMention
from advisor.llm.planner.page import Page, number, number_word
from advisor.llm.planner.read_dates import read_due

_MOST_CARD_GB = 300  # no card holds more: a larger figure is a sum or somebody's claim
_NIGHT_HOURS = 12.0
_SHORTEST_CONTEXT_K = 8
_SCALES = {"k": 1e3, "m": 1e6, "mil": 1e3, "tsd": 1e3, "mio": 1e6, "万": 1e4}


def read_money(page: Page, values: dict[str, Any], gpus: Iterable[GpuMention] = (), language: str = "en") -> None:
    """Prices by the hour, of single cards and by the kWh, and a budget."""
    currencies = grammar.data("numbers")["currencies"]
    if language == "zh":  # one sign stands for the yen and for the yuan
        currencies = {**currencies, "¥": "CNY"}
    power = page.take("power_price")
    if power:
        value = float(power[2])
        cents = grammar.named("in_cents").search(power[0]) or value > 3
        values["power_price"] = value / 100 if cents else value
        values["power_currency"] = currencies.get((power[1] or power[3] or "$").strip(), "USD")
    colo = page.take("colo_price")
    if colo:
        values["colo_usd_per_kw_month"] = number(colo[2])
    of_cards: dict[str, float] = {}
    bare_price = None
    for card in gpus:
        priced = grammar.named("price_of_card").match(page.text[card.end : card.end + 32])
        if priced and card.argument:
            of_cards[card.argument] = number(priced[2])
        elif card.argument and (bare := grammar.named("price_at_card").match(page.text[card.end : card.end + 32])):
            of_cards[card.argument] = bare_price = number(bare[1])
    if len(of_cards) > 1:
        values["card_prices"] = of_cards
    span = page.take("hourly_range")
    if span:
        values["price_usd"], values["price_high"] = number(span[2]), number(span[3])
        values["price_currency"] = currencies.get(span[1], "USD")
    rate = page.take("hourly_price") or page.take("hourly_price_after") or page.take("hourly_price_first")
    if rate:
        capped = grammar.named("price_cap").search(rate.string[: rate.start()])
        capped = None if page.has("owning") else capped  # "is owning cheaper than $2.2/h": what renting costs
        values["price_cap_usd" if capped else "price_usd"] = number(rate[2])
        if capped and page.has("of_a_machine"):
            values["cap_of_machine"] = True
        values["price_currency"] = currencies.get(rate[1] or rate[rate.re.groups], "USD")
    while page.take("hourly_price") or page.take("hourly_price_after"):
        pass  # further prices by the hour are no budgets
    amount = page.take("amount") or page.take("amount_after")
    if not rate and bare_price and len(of_cards) == 1:  # "h100s @ 1.99"
        values["price_usd"] = bare_price
    if not rate and (bare := page.take("hourly_bare")):
        values["price_usd"] = number(bare[1] or bare[2])
    if not amount:
        bought = page.has("bought_for") if gpus else None
        if bought and (page.has("price_words") or not _is_length(bought[1])):
            page.blank(*bought.span())
            values["budget_usd"], values["budget_currency"] = number(bought[1]) * _SCALES["k"], "USD"
            values["budget_each"] = grammar.named("each").search(bought[0]) is not None
        return
    values["budget_each"] = grammar.named("each").match(page.text[amount.end() : amount.end() + 12]) is not None
    currency = currencies.get((amount[1] or amount[amount.re.groups] or "").strip(), "USD")
    value = number(amount[2]) * _SCALES.get(amount[3] or "", 1.0)
    if not rate and value < 20 and not page.has("a_budget"):
        values.setdefault("price_usd", value)
        values.setdefault("price_currency", currency)
    else:
        values["budget_usd" if currency == "USD" else "budget_other"] = value
        values["budget_currency"] = currency


def _is_length(thousands: str) -> bool:
    """Whether a bare "128k" is rather a context length than money: a power of two from 8k on."""
    value = int(number(thousands))
    return value >= _SHORTEST_CONTEXT_K and value & (value - 1) == 0


def read_shares(page: Page, values: dict[str, Any]) -> None:
    """MFU, utilisation, idle share and tax as shares of 1, watts, and years, into ``values``."""
    match = page.take("mfu")
    if match:
        value = float(match[1] or match[2] or match[3])
        values["mfu"] = value / 100 if value > 1 else value
    for name in ("utilisation", "idle", "tax"):
        match = page.take(name)
        if match:
            share = next(group for group in match.groups() if group)
            values["idle_share" if name == "idle" else name] = float(share) / 100
    if page.has("round_the_clock"):
        values.setdefault("utilisation", 1.0)
    match = page.take("hours_a_day")
    if match and 1 <= int(match[1] or match[2]) <= 24:
        values.setdefault("utilisation", int(match[1] or match[2]) / 24)
    watts = page.take("watts")
    if watts:
        values["watts"] = int(watts[1])
    match = page.take("years")
    if match and 1 <= int(match[1]) <= 20:
        values["years"] = int(match[1])


def read_memory(page: Page, values: dict[str, Any]) -> None:
    """A card's memory, the machine's, or a figure that is only quoted ("needs 48 GB")."""
    boxes = page.take("boxes") or page.take("boxes_in_words") or page.take("boxes_of_any_size")
    turned = None if boxes else page.take("boxes_turned")
    if boxes or turned:  # "4x80", "80G*4": that many cards of that size
        count, size = (boxes[1], boxes[2]) if boxes else (turned[2], turned[1]) if turned else ("1", "0")
        values.setdefault("n_gpus", number_word(count) or 1)
        values["gpu_memory_gb"] = float(size)
    ram = page.take("ram")
    of_card = ram and (
        grammar.named("of_a_card").search(ram[0])
        or grammar.named("after_a_card").search(ram.string[: ram.start()])
        or grammar.named("each_of_them").match(ram.string, ram.end())
    )
    if ram and of_card:
        values.setdefault("gpu_memory_gb", float(ram[1] or ram[3]))
    if ram and not of_card:
        amount, unit = (ram[1], ram[2]) if ram[1] else (ram[3], ram[4])
        values["ram_gb"] = float(amount) * (1000 if unit.startswith("t") else 1)
    for match in page.all("memory"):
        quoted = grammar.named("quoted_memory").search(page.text[: match.start()])
        quoted = quoted or grammar.named("of_a_part").match(page.text, match.end())
        if quoted and not grammar.named("memory_of_a_card").search(match[0]):
            values.setdefault("quoted_gb", float(match[1]))
            continue
        if "gpu_memory_gb" not in values or grammar.named("memory_of_a_card").search(match[0]):
            values["gpu_memory_gb"] = float(match[1])
        if grammar.named("in_bits").search(match[0]):
            values["gigabit"] = True
    if values.get("gpu_memory_gb", 0) > _MOST_CARD_GB:
        values["quoted_gb"] = values.pop("gpu_memory_gb")
    if "gpu_memory_gb" not in values and 4 <= values.get("quoted_gb", 0) <= 192 and page.has("enough"):
        values["gpu_memory_gb"] = values.pop("quoted_gb")


def read_times(page: Page, values: dict[str, Any]) -> None:
    """A duration, a stock of GPU-hours or a deadline into ``values``, in hours; a day as a ``Due``."""
    weekday = _between_weekdays(page)
    if weekday:
        values["deadline_hours"] = weekday
    elif day := read_due(page):
        values["due"] = day
    failing = page.take("mtbf")
    if failing:
        values["mtbf_hours"] = float(failing[1]) * _hours_of(failing[2])
    clock = page.take("clock")
    if clock:
        values["hours"] = int(clock[1]) + int(clock[2]) / 60
    span = page.take("hour_range")
    if span:
        values["hours_low"], values["hours"] = float(span[1]), float(span[2])
    stock = page.take("gpu_hours")
    if stock:
        values["gpu_hours"] = float(stock[1] or stock[3]) * (1e3 if stock[2] or stock[4] else 1)
    for match in page.all("duration"):
        amount = float(match[1]) if match[1][0].isdigit() else float(number_word(match[1]) or 0)
        hours = amount * _hours_of(match[2])
        if not hours:
            continue
        before, after = page.text[max(0, match.start() - 24) : match.start()], page.text[match.end() :][:14]
        if match[1] == "a" and grammar.named("counted_per").search(before):
            continue
        is_due = grammar.named("deadline_before").search(before) or grammar.named("deadline_after").match(after)
        values.setdefault("deadline_hours" if is_due else "hours", hours)
    rental = page.has("rental")
    if rental:
        values.setdefault("hours", {"week": 168.0, "month": 730.0, "day": 24.0}[rental[1]])
    since = page.has("since")
    if since:
        values["since"] = since[1]
    if page.has("weekend") and "due" not in values:
        values.setdefault("deadline_hours", 60.0)
    if page.has("overnight"):
        named = page.has("hours_in_brackets")
        values.setdefault("deadline_hours", float(named[1]) if named else _NIGHT_HOURS)


def _hours_of(unit: str) -> float:
    table = grammar.data("numbers")["hours"]
    heads = [head for head in table if unit.startswith(head)]
    return float(table[max(heads, key=len)]) if heads else 0.0


def _between_weekdays(page: Page) -> float | None:
    """Hours between two week days with clock times ("deadline is friday 5pm, its weds noon")."""
    table = grammar.data("numbers")
    found = page.all("weekday")
    if len(found) != 2:
        return None
    times = []
    for match in found:
        hour = float(table["hours_words"].get(match[5], 12))
        if match[2]:
            hour = int(match[2]) % 12 + (12 if match[4] == "pm" else 0) if match[4] else int(match[2])
            hour += int(match[3] or 0) / 60
        times.append(table["weekdays"][match[1]] * 24 + hour)
    now_is_second = grammar.named("today_is").search(page.text[: found[1].start()])
    gap = times[0] - times[1] if now_is_second else times[1] - times[0]
    return float(gap % 168) or None


def read_versions(page: Page, values: dict[str, Any]) -> None:
    """Driver, CUDA and torch versions, as dotted text, into ``values``."""
    for name, index in grammar.names("versions"):
        match = page.take(name, "versions", index)
        if not match:
            continue
        if name == "cuda_tag":
            values.setdefault("cuda_wheel", _dotted(match[1]))
        else:
            values.setdefault(name, match[1])
        if name == "torch" and match[2] and match[2].startswith("cu"):
            values["cuda_wheel"] = _dotted(match[2][2:])
        if name == "cuda" and match[2]:
            values["cuda_from"], values["cuda"] = match[1], match[2]
    if "cuda_wheel" in values:
        values.setdefault("cuda", values["cuda_wheel"])


def _dotted(tag: str) -> str:
    """A wheel's tag as a version: 121 is 12.1."""
    return f"{tag[:-1]}.{tag[-1]}"


def read_log(log: str, values: dict[str, Any]) -> None:
    """The card's size (GiB) and the versions that a pasted log shows, where the words state none."""
    total = grammar.named("log_capacity").search(log)
    if total:
        values.setdefault("log_capacity_gib", float(total[1] or total[2]))
    torch = grammar.named("log_torch").search(log.lower())
    if torch:
        values.setdefault("torch", torch[1])
