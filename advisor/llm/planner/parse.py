"""A message into slots: spans are read in an order that keeps "8k", "80GB", "8B" and "8 GPUs" apart.

What is read first is blanked out, so that nothing is read twice: cards, then models, then rates, money, tokens, times
and memory, each with the words that make it one.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from typing import Any

from advisor.llm.planner import entities, grammar
from advisor.llm.planner.clean import Cleaned, clean
from advisor.llm.planner.intents import read_cues, read_intents
from advisor.llm.planner.slots import Slots

# Word characters and borders are ASCII here: in "70b全参微调" the size ends before the next word.
_search, _match, _fullmatch, _finditer, _findall = (
    partial(getattr(re, name), flags=re.ASCII) for name in ("search", "match", "fullmatch", "finditer", "findall")
)
_NUM = r"(\d[\d,_]*(?:\.\d+)?(?:e\+?\d+)?|\d+(?:,\d+)?)"


def parse(message: str) -> Slots:
    """The slots of one message. Never raises on any text."""
    return read(clean(message))


def read(cleaned: Cleaned) -> Slots:
    """The slots of a cleaned message."""
    # A count's "x" becomes a sign of its own, and a line's end a border that no pattern reads across.
    flat = re.sub(r"(?<=\d)x(?=[a-z])(?!xtx?\b|xlarge)", "×", cleaned.lower).replace("\n", " ; ")
    lower = entities.fix_spelling(_join_numbers(flat))
    page = _Page(lower)
    values: dict[str, Any] = {}
    _read_versions(page, values)
    gpus = entities.find_gpus(page.text)
    for machine, provider in entities.find_machines(lower):
        gpus = [gpu for gpu in gpus if not machine.start <= gpu.start < machine.end]
        gpus.append(machine)
        values.setdefault("instance", machine.text)
        values.setdefault("instance_providers", []).append(provider)
    gpus.sort(key=lambda gpu: gpu.start)
    for gpu in gpus:
        page.blank(gpu.start, gpu.end)
    _read_tokens(page, values)
    _read_lengths(page, values)
    _read_data(page, values)
    _read_rates_and_links(page, values)
    _read_money(page, values)
    _read_workload_numbers(page, values)
    models = entities.find_models(page.text)
    for model in models:
        page.blank(model.start, model.start + len(model.text))
    models = _drop_echoes(models)
    _late_tokens(page, models, values)
    _bare_length(page, models, values)
    methods = _methods(lower)
    if not methods and "lora_rank" in values:
        methods = ("qlora",) if _search(r"(?<!\d)4[\s\-]?bit|nf4", lower) else ("lora",)
    _read_choices(lower, methods, values)
    _read_counts(page, values, gpus)
    _read_memory(page, values)
    _read_times(page, values)
    _read_log(cleaned.log, values)
    providers = tuple(dict.fromkeys(value for value, _match in grammar.found("names", "providers", lower)))
    providers = tuple(dict.fromkeys([*values.pop("instance_providers", []), *providers]))
    region = grammar.first("names", "regions", lower)
    if region:
        values["region"] = region
    _read_nodes(page, values, gpus)
    cues = read_cues(lower, cleaned.log)
    bare = Slots(
        values=values, models=tuple(models), gpus=tuple(gpus), methods=methods, providers=providers, cues=cues,
        log=cleaned.log, text=cleaned.prose, lower=lower, language=cleaned.language, secrets=cleaned.secrets,
        links=cleaned.links,
    )  # fmt: skip
    return Slots(
        **{name: getattr(bare, name) for name in bare.__slots__ if name != "intents"}, intents=read_intents(bare)
    )


class _Page:
    """Text that forgets what was read."""

    def __init__(self, text: str) -> None:
        self.text = text

    def blank(self, start: int, end: int) -> None:
        self.text = self.text[:start] + "\x1f" * (end - start) + self.text[end:]

    def take(self, pattern: str) -> re.Match[str] | None:
        """The first match, blanked out."""
        match: re.Match[str] | None = _search(pattern, self.text)
        if match:
            self.blank(*match.span())
        return match

    def take_all(self, pattern: str) -> list[re.Match[str]]:
        matches = list(_finditer(pattern, self.text))
        for match in matches:
            self.blank(*match.span())
        return matches


def _join_numbers(text: str) -> str:
    """Thousands and decimals of other conventions: "1 000 000", "1.000.000" and "1,5" become what Python reads."""
    text = re.sub(r"(?<![\d.,])(\d{1,3})(?:[\u00a0\u202f'](\d{3}))+(?!\d)", lambda m: re.sub(r"\D", "", m[0]), text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.,])", lambda m: m[0].replace(".", ""), text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)", lambda m: m[0].replace(",", ""), text)
    return re.sub(
        r"(?<![\d.,])(\d+),(\d{1,2})(?=\s?(?:[bmkt]\b|gb|go|mrd|milliard|h\b|€|eur|usd|\$|%))", r"\1.\2", text
    )


def number(text: str) -> float:
    """A float from digits, separators and an exponent."""
    return float(text.replace(",", "").replace("_", ""))


def scaled(digits: str, suffix: str | None) -> float:
    """A count such as 20B, 41k, 1.5 trillion, 200亿."""
    scale = grammar.data("numbers")["scales"].get((suffix or "").strip().rstrip("."), 1.0)
    return number(digits) * float(scale)


_SCALE = r"(k|m|b|bn|t|thousand|million|millionen|millions|millones|billion|milliarden?|milliards?|mrd\.?|mio\.?|trillion|billionen|万|萬|亿|億|百万|十亿|百亿|千亿|兆|만|억|g)?"  # noqa: E501


def _read_tokens(page: _Page, values: dict[str, Any]) -> None:
    per_second = page.take(rf"{_NUM}\s?{_SCALE}\s?tok(?:en)?s?\s?(?:/|per\s|p)\s?s(?:ec\w*)?")
    if per_second:
        values["tokens_per_second"] = scaled(per_second[1], per_second[2])
    length = page.take(
        rf"{_NUM}\s?{_SCALE}[\s\-]?tok(?:en)?s?[\s\-]{{1,2}}(?:long\s)?(?:per\s(?:sample|row|example|doc\w*|seq\w*)|each\b|docs?\b|documents?|records?|samples?|"
        r"rows?|seq\w*|context|ctx|window|long\b|on (?:one|a single|1) gpu|prompts?)|(?:avg|average|mean|about|~)\s?(\d+)\s?tok(?:en)?s?(?:/|\sper\s|\sa\s|\seach)"  # noqa: E501
    )
    if length and length[1]:
        values["seq_len"] = _length(length[1], length[2])
    elif length:
        values["tokens_per_sample"] = int(length[3])
    match = page.take(
        rf"(?<![\w.]){_NUM}\s?{_SCALE}[\s\-]?(?:(?:training|train|trainings)[\s\-])?(?:de\s|di\s|of\s|von\s|个)?(?:tok(?:en|s)?s?|トークン|词元|令牌|토큰|jetons|fichas)(?![a-z])(?!\s?/)"
    )
    if match:
        amount = scaled(match[1], match[2])
        if amount < 300_000 and not match[2]:
            values.setdefault("seq_len", int(amount))
        elif amount < 300_000 and match[2] == "k" and not _search(r"dataset|total|epoch|corpus|data", page.text):
            values.setdefault("seq_len", _length(match[1], match[2]))
        else:
            values["tokens"] = amount


def _late_tokens(page: _Page, models: list[entities.ModelMention], values: dict[str, Any]) -> None:
    """In "1.3b on 26B" the second of two sizes after "on" is the data. The model list is edited in place."""
    if "tokens" in values or len(models) < 2:
        return
    for before, after in pairwise(models):
        between = page.text[before.start + len(before.text) : after.start]
        if after.kind == "size" and _fullmatch(
            r"\s?(?:model\s)?(?:on|with|over|for|auf|sur|con|mit)\s", between.replace("\x1f", "")
        ):
            values["tokens"] = scaled(str(after.size)[:-1], str(after.size)[-1].lower())
            models.remove(after)
            return


def _bare_length(page: _Page, models: list[entities.ModelMention], values: dict[str, Any]) -> None:
    """A usual sequence length without its word ("2048 ok, 3072 OOM"): the last one named."""
    if models and "seq_len" not in values:
        usual = _findall(
            r"(?<![\w.$€])(512|1024|1536|2048|3072|4096|6144|8192|16384|32768|65536|131072)(?![\w.%]|\s?x)", page.text
        )
        if usual:
            values["seq_len"] = int(usual[-1])


def _signed(page: _Page, match: re.Match[str], group: int) -> int:
    """-1 where a minus stands before the number and is no dash: "len -100"."""
    before = match.string[max(0, match.start(group) - 2) : match.start(group)]
    return -1 if before.endswith("-") and (len(before) < 2 or before[0] in " =:") else 1


def _length(digits: str, suffix: str | None) -> int:
    """Sequence lengths count in 1024s where people mean a power of two: 8k is 8192, 120k is 120000."""
    value = number(digits)
    if (suffix or "").strip() == "k":
        whole = int(value)
        return int(value * (1024 if value == whole and whole & (whole - 1) == 0 else 1000))
    return int(value * float(grammar.data("numbers")["scales"].get((suffix or "").strip(), 1.0)))


_SEQ_WORD = r"(?:max[_ ]?)?(?:seq(?:uence)?(?:[\s_\-]?(?:len(?:gth)?|size))?|seqlen|sl|ctx(?:[\s_\-]?(?:len(?:gth)?|size))?|context(?:[\s_\-]?(?:len(?:gth)?|size|window))?|max[\s_\-]?(?:seq[\s_\-]?)?len(?:gth)?|block[\s_\-]?size|cutoff(?:[\s_\-]?len)?|model[\s_\-]?max[\s_\-]?length|kontext\w*|sequenzlänge|contexte|contexto|longueur|上下文(?:长度)?|序列(?:长度)?|コンテキスト(?:長)?|系列長|시퀀스|컨텍스트)"  # noqa: E501


def _read_lengths(page: _Page, values: dict[str, Any]) -> None:
    words = "|".join(w for w in grammar.data("numbers")["words"] if len(w) > 2)
    spoken = page.take(rf"{_SEQ_WORD}[\s:=]*((?:{words})[\s\-](?:thousand|million|billion|trillion))")
    if spoken:
        head, _, scale = spoken[1].replace("-", " ").partition(" ")
        values["seq_len"] = int((entities.number_word(head) or 1) * float(grammar.data("numbers")["scales"][scale]))
        return
    for pattern in (
        rf"(?<![a-z]){_SEQ_WORD}(?:\s?(?:of|is|to|at|=|:|de|von|は|是|为|が|を))*[\s=:]*-?(?<![\d.]){_NUM}(?:\s?(k|m)(?![a-z]))?(?!\s?[gt]i?b|\d|%)",
        rf"(?<![\w.]){_NUM}[\s\-]?(k|m)?[\s\-]?(?:tok(?:en)?s?[\s\-])?(?:of\s)?{_SEQ_WORD}(?![a-z])",
        rf"(?:(?<![a-z])(?:at|to|w/|with|and at|@)\s?|@){_NUM}\s?(k)(?:\s?(?:tok(?:en)?s?|length|long))?(?![\w$/])(?!\s?(?:rows|samples|examples|images|usd|eur|steps|/))",  # noqa: E501
    ):
        match = page.take(pattern)
        if match:
            values["seq_len"] = _signed(page, match, 1) * _length(match[1], match[2])
            return


def _read_data(page: _Page, values: dict[str, Any]) -> None:
    adjective = r"(?:\s(?:instruction|training|labeled|labelled|chat|custom|synthetic|sft|short|long|text|total))?"
    match = page.take(
        rf"(?<![\w.]){_NUM}\s?{_SCALE}{adjective}\s?-?(?:rows?|samples?|examples?|imgs?|images?|pairs?|records?|conversations?|convos?|prompts?|instructions?|dialog(?:ue)?s?|questions?|data ?points?|entries|lignes|zeilen|beispiele|exemples|ejemplos|filas|条(?:数据)?|样本|件|サンプル|샘플)(?![a-z])"  # noqa: E501
    )
    if match:
        values["samples"] = int(scaled(match[1], match[2]))
    hours = page.take(rf"{_NUM}\s?(?:h|hrs?|hours?|hour)\s?(?:of\s)?(?:audio|speech|recordings?)")
    if hours:
        values["audio_hours"] = number(hours[1])
    words = "|".join(w for w in grammar.data("numbers")["words"] if len(w) > 2)
    match = page.take(
        rf"(?<![\w.])(\d+(?:\.\d+)?|{words})\s?-?(?:epochs?|eps?|epochen?|époques?|épocas?|epocas?|轮|エポック|에폭)(?![a-z])"
    ) or page.take(r"(?:num_train_epochs|epochs?)\s?[=:]\s?(\d+)()")
    if match:
        value = entities.number_word(match[1]) or (float(match[1]) if _fullmatch(r"\d+\.\d+", match[1]) else None)
        if value:
            values["epochs"] = value
    match = page.take(
        rf"(?<![\w.]){_NUM}\s?{_SCALE}\s?(?:steps?|iters?|iterations?|updates|步|ステップ|schritte|étapes|pasos)(?![a-z])"
    ) or page.take(rf"(?:max_steps|num_steps)\s?[=:]\s?{_NUM}\s?{_SCALE}")
    if match and not _search(rf"(?:for|after|at|step)\s+{re.escape(match[1])}", page.text):
        values["steps"] = int(scaled(match[1], match[2]))


def _read_rates_and_links(page: _Page, values: dict[str, Any]) -> None:
    links = [(value, match) for value, match in grammar.found("names", "links", page.text)]
    links += [("InfiniBand", m) for m in _finditer(r"(?<![a-z])(?:infiniband|ib)(?![a-z])", page.text)]
    links += [("Ethernet", m) for m in _finditer(r"(?<![a-z])(?:ethernet|roce(?: ?v2)?|tcp)(?![a-z0-9])", page.text)]
    links += [("EFA", m) for m in _finditer(r"(?<![a-z])efa(?![a-z])", page.text)]
    links += [("PCIe", m) for m in _finditer(r"(?<![a-z])pcie?(?![a-z0-9])(?! ?(?:gen)? ?\d)", page.text)]
    names = list(dict.fromkeys(value for value, _match in links))
    values_list = [name for name in names if not any(other != name and other.startswith(name + "-") for other in names)]
    if values_list:
        values["links"] = values_list
        inter = [
            n
            for n in values_list
            if n.startswith(("InfiniBand", "RoCE", "Ethernet", "EFA", "10GbE", "1GbE", "40GbE", "50GbE"))
        ]
        exact = [n for n in inter if n not in ("InfiniBand", "Ethernet", "EFA")]
        if len(exact) == 1 or (len(inter) == 1):
            values["inter_link"] = (exact or inter)[0]
        intra = [n for n in values_list if n.startswith(("NVLink", "PCIe"))]
        if len(intra) == 1:
            negated = _search(
                r"(?:no|without|sans|ohne|sin|没有|なし|w/o)\s?nv ?link|nv ?link\s?(?:なし|없)", page.text
            )
            values["intra_link"] = "PCIe" if negated and intra[0] == "NVLink" else intra[0]
    rates = page.take_all(rf"(?<![\w.]){_NUM}\s?([tgm])(i?)(b|bit|bits|byte|bytes)?(?:/s(?:ec)?|ps)(?![a-z])")
    if rates:
        values["rates"] = [match[0] for match in rates]
    for _value, match in links:
        page.blank(*match.span())


_CURRENCY = {"$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "bucks": "USD", "dólares": "USD", "美元": "USD", "ドル": "USD",  # noqa: E501
             "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "£": "GBP", "gbp": "GBP", "quid": "GBP", "pounds": "GBP",  # noqa: E501
             "¥": "JPY", "jpy": "JPY", "円": "JPY", "元": "CNY", "rmb": "CNY", "cny": "CNY", "₹": "INR", "inr": "INR", "rs": "INR", "원": "KRW"}  # fmt: skip  # noqa: E501
_PRE, _POST = (
    r"(\$|€|£|¥|₹|us\$)",
    r"(\$|€|£|usd|eur|euros?|gbp|dollars?|bucks|dólares|pounds|quid|inr|rmb|cny|jpy|美元|ドル|円|元|원)",
)
_PER_HOUR = r"\s?(?:/|per|an|a|pro|por|par|la|le|每|毎)\s?(?:gpu[\s\-/]?)?(?:card[\s\-/]?)?(?:h(?:r|our)?s?|stunde|heure|hora|小时|時間|시간)(?![a-z])"  # noqa: E501


def _read_money(page: _Page, values: dict[str, Any]) -> None:
    power = page.take(
        rf"(?:{_PRE}\s?)?(\d*\.?\d+)\s?(?:{_POST}|ct|cents?|c)?\s?(?:/|per|pro|a)\s?kwh?(?![a-z/])(?!\s?/?\s?mo)"
    )
    if power:
        value = float(power[2])
        values["power_price"] = value / 100 if _search(r"ct|cent|\dc", power[0]) or value > 3 else value
        values["power_currency"] = _CURRENCY.get((power[1] or power[3] or "$").strip(), "USD")
    colo = page.take(rf"{_PRE}?\s?{_NUM}\s?{_POST}?\s?(?:/|per|a)\s?kw\s?(?:/|per|a)?\s?(?:mo(?:nth)?)?")
    if colo:
        values["colo_usd_per_kw_month"] = number(colo[2])
    rate = page.take(rf"{_PRE}\s?{_NUM}{_PER_HOUR}") or page.take(rf"(){_NUM}\s?{_POST}{_PER_HOUR}")
    if rate:
        values["price_usd"] = number(rate[2])
        symbol = rate[1] or rate[3] if rate.re.groups >= 3 else rate[1]
        if symbol:
            values["price_currency"] = _CURRENCY.get(symbol, "USD")
    amount = page.take(rf"{_PRE}\s?{_NUM}\s?(k|m|mil|tsd|mio|万)?(?![\w])") or page.take(
        rf"(){_NUM}\s?(k|m|mil|tsd|万)?\s?{_POST}(?![a-z])"
    )
    if amount:
        currency = _CURRENCY.get((amount[1] or amount[4] if amount.re.groups >= 4 else amount[1]).strip(), "USD")
        value = number(amount[2]) * {"k": 1e3, "m": 1e6, "mil": 1e3, "tsd": 1e3, "mio": 1e6, "万": 1e4}.get(
            amount[3] or "", 1.0
        )
        if not rate and value < 20 and _search(r"budget|spend", page.text) is None:
            values.setdefault("price_usd", value)
            values.setdefault("price_currency", currency)
        else:
            values["budget_usd" if currency == "USD" else "budget_other"] = value
            values["budget_currency"] = currency


def _read_workload_numbers(page: _Page, values: dict[str, Any]) -> None:
    match = page.take(
        r"(?:lora[\s_\-]?)?(?<![a-z])(?:rank|r|lora[\s_\-]?r(?:ank)?|ranks)\s?(?:of\s|=|:)?\s?(\d{1,12})(?![\w%]|\.\d)"
    )
    if match:
        values["lora_rank"] = int(match[1])
    match = page.take(
        r"(?:grad(?:ient)?[\s_\-]?acc(?:um(?:ulation)?)?(?:[\s_\-]?steps)?|(?<![a-z])ga)\s?(?:of\s|=|:)?\s?(\d{1,6})(?![\w%]|\.\d)"
    )
    if match:
        values["grad_accum"] = int(match[1])
    match = page.take(
        r"(?:global|effective|total)[\s_\-](?:batch(?:[\s_\-]?size)?|bs|bsz)\s?(?:of\s|=|:|is\s)?\s?(\d{1,7})"
    )
    if match:
        values["global_batch"] = int(match[1])
    match = page.take(
        r"(?:per[\s_\-]device(?:[\s_\-](?:train|eval))?[\s_\-]batch[\s_\-]size|micro[\s_\-]?batch(?:[\s_\-]?size)?|batch[\s_\-]?size|batch|mbs|bsz|(?<![a-z])bs|批(?:次)?大小|バッチ(?:サイズ)?|배치)\s?(?:of\s|=|:|is\s|は|是)*\s?(\d{1,9}|nan)(?![\w%]|\.\d)"
    )
    if match:
        values["micro_batch"] = int(match[1]) if match[1].isdecimal() else match[1]
    for name in ("tp", "pp", "cp", "ep"):
        words = {"tp": "tensor", "pp": "pipeline", "cp": "context|sequence", "ep": "expert"}[name]
        match = page.take(
            rf"(?<![a-z])(?:{name}|(?:{words})[\s\-]parallel(?:ism)?)\s?(?:size|degree)?\s?(?:of\s|=|:)?\s?(\d{{1,5}})(?![\w%]|\.\d)"
        )
        if match:
            values[name] = int(match[1])
    match = page.take(
        r"(\d{1,3}(?:\.\d+)?)\s?%\s?(?:mfu)|(?<![a-z])mfu\s?(?:of\s|=|:|at\s)?\s?(\d{1,3}(?:\.\d+)?)\s?%?|(?:at|@)\s?(\d{1,3}(?:\.\d+)?)\s?%(?=[^.]{0,40}(?:how long|hours|days|time|tok))"  # noqa: E501
    )
    if match:
        value = float(match[1] or match[2] or match[3])
        values["mfu"] = value / 100 if value > 1 else value
    match = page.take(
        r"(\d{1,3}(?:\.\d+)?)\s?%\s?(?:util\w*|busy|usage|used|duty|auslastung|d'utilisation|uso|utiliza\w*|利用率|稼働率)|(?:util\w*|usage|auslastung|利用率|稼働率)\s?(?:of\s|is\s|shows\s|at\s|=|:|~)*\s?(\d{1,3}(?:\.\d+)?)\s?%"
    )
    if match:
        values["utilisation"] = float(match[1] or match[2]) / 100
    match = page.take(r"(\d{1,3}(?:\.\d+)?)\s?%\s?(?:idle)")
    if match:
        values["idle_share"] = float(match[1]) / 100
    match = page.take(r"(\d{1,2}(?:\.\d+)?)\s?%\s?(?:vat|tax|mwst|tva|iva)|(?:vat|tax)\s?(?:of\s)?(\d{1,2})\s?%")
    if match:
        values["tax"] = float(match[1] or match[2]) / 100
    match = page.take(r"(\d{1,2})\s?(?:[\s\-])?(?:yrs?|years?|jahre?|ans|años|年|년)(?![a-z])")
    if match and 1 <= int(match[1]) <= 20:
        values["years"] = int(match[1])


_ADAPTERS = ("lora", "qlora", "dora")


def _methods(lower: str) -> tuple[str, ...]:
    """Methods named, most telling first; "dpo lora" and "grpo qlora" keep both."""
    found = list(dict.fromkeys(value for value, _match in grammar.found("workload", "methods", lower)))
    negated = _search(
        r"(?:no|not|without|sans|ohne|instead of|不用|なし)\s+(?:a\s)?(?:peft|lora|qlora|adapters?)", lower
    )
    if negated:
        found = [value for value in found if value not in _ADAPTERS] or ["full"]
    if (
        "full" in found
        and _search(
            r"full[\s\-_](?:state|shard|stack|speed|throttle|node|price|time|day|week|month|rack|precision|gpu|on\b|load)|fullstate",
            lower,
        )
        and not _search(r"full[\s\-]?(?:ft|fine|param|sft|train|bf16)|全参|全量", lower)
    ):
        found.remove("full")
    if (
        "pretrain" in found
        and any(value in found for value in ("lora", "qlora", "full"))
        and "from scratch" not in lower
    ):
        found.remove("pretrain")
    if (
        "lora" in found
        and ("qlora" in found or "dora" in found)
        and not _search(r"(?<![a-z])(?:lora (?:or|vs|and|/)|(?:vs|or|and|/|than)\s?lora)", lower)
    ):
        found.remove("lora")
    if "lora" in found and "qlora" not in found and _search(r"(?<!\d)(?:4[\s\-]?bits?|nf4|int4|gptq|awq)(?!\d)", lower):
        found[found.index("lora")] = "qlora"
    if (
        not found
        and _search(r"(?<!\d)4[\s\-]?bit|load in 4|(?<![a-z])nf4|bnb", lower)
        and grammar.matcher("workload", "finetune").search(lower)
    ):
        found = ["qlora"]
    return tuple(found)


def _read_choices(lower: str, methods: tuple[str, ...], values: dict[str, Any]) -> None:
    for key, name in (
        ("optimizers", "optimizer"),
        ("sharding", "sharding"),
        ("attention", "attention"),
        ("frameworks", "framework"),
        ("launchers", "launcher"),
    ):
        value = grammar.first("workload", key, lower)
        if value:
            values[name] = value
    precisions = list(dict.fromkeys(value for value, _match in grammar.found("workload", "precisions", lower)))
    if "qlora" in methods and "int4" in precisions:
        precisions.remove("int4")
    if "optimizer" in values and values["optimizer"].endswith("8bit") and "int8" in precisions:
        precisions.remove("int8")
    if precisions:
        values["precision"] = precisions[0]
        values["precisions"] = precisions
    if grammar.matcher("workload", "checkpointing_off").search(lower):
        values["activation_checkpointing"] = "none"
    elif grammar.matcher("workload", "checkpointing_on").search(lower):
        values["activation_checkpointing"] = "full"
    if grammar.matcher("workload", "offload").search(lower) and not _search(
        r"(?:no|without|sans|ohne)\s+(?:cpu\s)?offload", lower
    ):
        values["cpu_offload"] = (
            "nvme"
            if _search(r"nvme|ssd", lower)
            else "optimizer"
            if _search(r"zero[\s\-_]?2|optimi[sz]er off", lower)
            else "all"
        )
        if "sharding" not in values and _search(r"zero[\s\-]?(?:offload|infinity)", lower):
            values["sharding"] = "zero3" if "infinity" in lower else "zero2"
    if grammar.matcher("workload", "fused_loss").search(lower):
        values["fused_loss"] = True
    if values.get("framework") == "unsloth":
        values.setdefault("fused_loss", True)
    if not methods and not _search(r"vllm_gpu|use_vllm", lower):
        trains = any(grammar.matcher("workload", key).search(lower) for key in ("finetune", "train"))
        stored = values.get("precision") in ("int4", "int8", "nf4", "fp4", "mxfp4")
        if grammar.matcher("workload", "inference").search(lower) or (stored and not trains):
            values["task"] = "inference"
    billing = _search(
        r"(?<![a-z])(spot|preempt\w*|interruptible)|(reserved|commit(?:ted|ment)?|savings plan)|(on[\s\-]?demand)",
        lower,
    )
    if billing:
        years = _search(r"(1|one|3|three)[\s\-]?(?:y|yr|year)", lower)
        term = "3y" if years and years[1] in ("3", "three") else "1y"
        values["billing"] = "spot" if billing[1] else f"reserved_{term}" if billing[2] else "on_demand"


def _drop_echoes(models: list[entities.ModelMention]) -> list[entities.ModelMention]:
    """A bare size beside a name that already has it is no second model ("Qwen2.5-7B ... the 7B")."""
    named = [mention for mention in models if mention.kind in ("known", "unknown", "unmodelled")]
    kept: list[entities.ModelMention] = []
    for mention in models:
        if mention.kind == "size" and any(str(mention.size).lower() in other.text for other in named):
            continue
        if any(
            other.kind == mention.kind and other.argument == mention.argument and mention.argument for other in kept
        ):
            continue
        kept.append(mention)
    return kept


def _read_counts(page: _Page, values: dict[str, Any], gpus: list[entities.GpuMention]) -> None:
    """GPUs counted without a name ("64 gpu", "3 gpus"), then those of the cards named."""
    before, _after = entities._counts()
    for match in _finditer(
        r"(?<![a-z])(?:gpus?|cards?|karten?|cartes?|tarjetas?|placas?|显卡|張|グラボ)(?![a-z])", page.text
    ):
        head = before.search(page.text[max(0, match.start() - 40) : match.start()])
        if not head:
            continue
        count = entities.number_word(head["count"])
        if count and not (count == 1 and head["count"] in ("a", "an")):
            nodes = entities.number_word(head["nodes"]) if head["nodes"] else None
            if _match(
                r"\s?(?:per|a|each|/|pro|par|por)\s?(?:node|machine|box|server)",
                page.text[match.end() : match.end() + 20],
            ):
                values["gpus_per_node"] = count
            else:
                minus = _search(r"(?:^|\s)-$", page.text[: match.start() - len(head[0].lstrip())])
                values.setdefault("n_gpus", count * (nodes or 1) * (-1 if minus else 1))
            break
    counted = [mention for mention in gpus if mention.count]
    if counted:
        chosen = counted[0]
        values["n_gpus"] = int(chosen.count or 1) * (chosen.nodes or 1)
        if chosen.nodes:
            values["n_nodes"], values["gpus_per_node"] = chosen.nodes, chosen.count
    elif gpus and "n_gpus" not in values:
        single = _search(
            r"(?<![a-z])(?:a single|single|one|just one|a lone|1x|单卡|单张|一张|1枚|eine einzige|une seule|una sola|sola)(?=[^.,;?!]{0,12}\x1f)",  # noqa: E501
            page.text,
        )
        if single:
            values["n_gpus"] = 1
    if "n_gpus" not in values:
        some = _search(
            r"(?:on|of|get|use|with|and|add)\s(\d{1,4}|two|four|eight)\s(?:of (?:them|those|these)|of 'em)|(\d{1,4}) of (?:them|those|these)",  # noqa: E501
            page.text,
        )
        if some:
            values["n_gpus"] = entities.number_word(some[1] or some[2])


def _read_nodes(page: _Page, values: dict[str, Any], gpus: list[entities.GpuMention]) -> None:
    if "n_nodes" in values:
        return
    words = "|".join(w for w in grammar.data("numbers")["words"] if len(w) > 2)
    cjk = "".join(key for key in grammar.data("numbers")["cjk"] if len(key) == 1)
    match = _search(
        rf"(?<![\w.])(\d{{1,5}}|{words}|[{cjk}])\s?(?:x\s)?(?:nodes?|machines?|servers?|hosts?|节点|台(?:机器|服务器)?|ノード|knoten|nœuds?|noeuds?|nodos?|노드)(?:\s?(?:x|×|\*|of|with|à|mit|con|de|each)\s?(\d{{1,3}})(?:\s?(?:gpus?|cards?))?)?(?![\w])",
        page.text,
    )
    out_of = _search(r"\d+\s(?:of|out of)\s(\d{1,5})\s(?:nodes|machines)", page.text)
    if out_of:
        values["n_nodes"] = int(out_of[1])
        return
    if not match:
        return
    nodes = entities.number_word(match[1])
    if not nodes:
        return
    values["n_nodes"] = nodes
    if match[2]:
        values["gpus_per_node"] = int(match[2])
        values["n_gpus"] = nodes * int(match[2])
    elif (
        gpus
        and gpus[0].count
        and not gpus[0].nodes
        and _search(r"(?:nodes?|machines?|servers?)\s?(?:of|with|x|×|à|mit|con)?\s?[\dx×\s]*\x1f", page.text)
    ):
        values["gpus_per_node"] = gpus[0].count
        values["n_gpus"] = nodes * gpus[0].count
    elif values.get("gpus_per_node"):
        values["n_gpus"] = nodes * values["gpus_per_node"]


def _read_memory(page: _Page, values: dict[str, Any]) -> None:
    boxes = page.take(r"(?<![\w.])(\d{1,4})\s?[x×*]\s?(12|16|24|32|40|48|64|80|96|141|180|192)\s?(?:gi?b|g)?(?![\w.])")
    if boxes:  # "4x80": that many cards of that size
        values.setdefault("n_gpus", int(boxes[1]))
        values["gpu_memory_gb"] = float(boxes[2])
    ram = page.take(
        r"(\d{1,5}(?:\.\d+)?)\s?(gb|gib|tb|tib|go|g|t)(?:\s?of)?\s?(?:cpu\s|host\s|system\s|sys\s|ddr\d\s)*(?:ram|memory|mem|内存|メモリ|arbeitsspeicher|hauptspeicher)(?![a-z])|(?<!v)(?:ram|内存|host memory)\s?(?:of\s|is\s|=|:)?\s?(\d{1,5})\s?(gb|gib|tb|g)(?![\w/])"  # noqa: E501
    )
    if ram and not _search(r"gpu|v ?ram", ram[0]) and not _search(r"(?:gpu|card|vram)\s*$", page.text[: ram.start()]):
        amount, unit = (ram[1], ram[2]) if ram[1] else (ram[3], ram[4])
        values["ram_gb"] = float(amount) * (1000 if unit.startswith("t") else 1)
    for match in _finditer(
        r"(?<![\w.=+*/$])(\d{1,4}(?:\.\d+)?)\s?-?(gib|gigs?|gb|go|g|gigabytes?|gigabits?|gbit|vram)(?:\s?(?:of\s)?(?:v?ram|gpu|card|cards|karte|carte|显存|显卡|laptop|mac\w*|memory|machine|unified))*(?![\w/*=])",
        page.text,
    ):
        if (
            _search(
                r"(?:=|need\w*|wants?|want to|requires?|takes?|uses?|eats?|says|said|alloc\w*|at like|at|was only|weights (?:r|are)(?: only)?|is|just|>|\bof\b|about)\s*$",  # noqa: E501
                page.text[: match.start()],
            )
            and not _search(r"card|gpu|laptop|vram|显存|mac", match[0])
        ):
            values.setdefault("quoted_gb", float(match[1]))
            continue
        values.setdefault("gpu_memory_gb", float(match[1]))
        if _search(r"gigabit|gbit", match[0]):
            values["gigabit"] = True
    if "gpu_memory_gb" in values and values["gpu_memory_gb"] > 300:
        values["quoted_gb"] = values.pop("gpu_memory_gb")
    if (
        "gpu_memory_gb" not in values
        and "quoted_gb" in values
        and 4 <= values["quoted_gb"] <= 192
        and _search(r"enough|fit|suffi|reicht|passt|够", page.text)
    ):
        values["gpu_memory_gb"] = values.pop("quoted_gb")


_DURATION = r"(\d+(?:\.\d+)?|{words}|[一两二三四五六七八九十半]+)\s?-?(minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|wks?|months?|stunden?|tage?n?|wochen?|monate?n?|heures?|jours?|semaines?|mois|horas?|d[ií]as?|semanas?|mes(?:es)?|分钟|小时|天|周|个月|時間|日間|日|週間|週|시간|일|주)(?![a-z])"  # noqa: E501
_HOURS = {"min": 1 / 60, "分钟": 1 / 60, "h": 1, "stu": 1, "heu": 1, "hor": 1, "小时": 1, "時間": 1, "시간": 1, "d": 24, "tag": 24, "jou": 24, "dí": 24, "día": 24,  # noqa: E501
          "天": 24, "日": 24, "일": 24, "w": 168, "woc": 168, "sem": 168, "周": 168, "週": 168, "주": 168, "mon": 730, "moi": 730, "mes": 730, "个月": 730}  # fmt: skip  # noqa: E501


def _read_times(page: _Page, values: dict[str, Any]) -> None:
    weekday = _weekdays(page.text)
    if weekday:
        values["deadline_hours"] = weekday
    clock = page.take(r"(?<![\w.])(\d{1,3})\s?h\s?(\d{2})(?!\w)")
    if clock:
        values["hours"] = int(clock[1]) + int(clock[2]) / 60
    words = "|".join(w for w in grammar.data("numbers")["words"] if len(w) > 2 or w == "a")
    hour_range = page.take(r"(?<![\w.])(\d+(?:\.\d+)?)\s?(?:-|–|to)\s?(\d+(?:\.\d+)?)\s?(?:h|hrs?|hours?)(?!\w)")
    if hour_range:
        values["hours_low"], values["hours"] = float(hour_range[1]), float(hour_range[2])
    gpu_hours = page.take(
        r"(\d+(?:\.\d+)?)\s?(k)?\s?(?:\x1f+\s?|gpu[\s\-]?)(?:hours?|hrs?|h)(?!\w)|(\d+(?:\.\d+)?)\s?(k)?\s?gpu[\s\-]?h(?:ou)?rs?"
    )
    if gpu_hours and (gpu_hours[1] or gpu_hours[3]):
        values["gpu_hours"] = float(gpu_hours[1] or gpu_hours[3]) * (1e3 if gpu_hours[2] or gpu_hours[4] else 1)
    for match in _finditer(rf"(?<![\w.$€]){_DURATION.format(words=words)}", page.text):
        unit = match[2]
        scale = next(
            (scale for head, scale in sorted(_HOURS.items(), key=lambda item: -len(item[0])) if unit.startswith(head)),
            None,
        )
        amount = float(match[1]) if match[1][0].isdigit() else float(entities.number_word(match[1]) or 0)
        if not scale or not amount:
            continue
        hours = amount * float(scale)
        before = page.text[max(0, match.start() - 24) : match.start()]
        after = page.text[match.end() : match.end() + 14]
        if _search(
            r"(?:within|in under|under|deadline\w*|by|only have|have|finish\w* in|in|less than|max|innerhalb|dans|en menos de|以内|until|there'?s)\s(?:the next\s|about\s|just\s)?$",  # noqa: E501
            before,
        ) or _match(r"\s?(?:deadline|left|max|以内)", after):
            values.setdefault("deadline_hours", hours)
        else:
            values.setdefault("hours", hours)
    rental = _search(r"(?:for|over)\s(?:a|one)\s(week|month|day)", page.text)
    if "hours" not in values and rental:
        values["hours"] = {"week": 168.0, "month": 730.0, "day": 24.0}[rental[1]]
    if _search(r"(?<![a-z])(?:this |the |over the )weekend", page.text):
        values.setdefault("deadline_hours", 60.0)
    if _search(r"(?<![a-z])overnight", page.text):
        values.setdefault("deadline_hours", 12.0)


def _weekdays(text: str) -> float | None:
    """Hours between two week days with clock times ("deadline is friday 5pm, its weds noon")."""
    days = grammar.data("numbers")["weekdays"]
    clock = grammar.data("numbers")["hours_words"]
    found = _findall(
        rf"(?<![a-z])({'|'.join(sorted(days, key=len, reverse=True))})(?![a-z])\s?(?:at\s)?(?:(\d{{1,2}})(?::(\d{{2}}))?\s?(am|pm)?|({'|'.join(clock)}))?",  # noqa: E501
        text,
    )
    if len(found) != 2:
        return None

    def hour(entry: tuple[str, ...]) -> float:
        if entry[1]:
            return (int(entry[1]) % 12 + (12 if entry[3] == "pm" else 0) if entry[3] else int(entry[1])) + int(
                entry[2] or 0
            ) / 60
        return float(clock.get(entry[4], 12))

    first, second = (days[entry[0]] * 24 + hour(entry) for entry in found)
    later_first = _search(r"(?:now|it'?s|its|today|currently)\s+(?:is\s)?" + found[1][0], text)
    gap = first - second if later_first else second - first
    return float(gap % 168) or None


def _read_versions(page: _Page, values: dict[str, Any]) -> None:
    """Driver, CUDA and torch versions; blanked so that "535" is no card and "12.8" no size."""
    patterns = (
        ("torch", r"(?:py)?torch(?:[\s_\-]*version)?[\s=:v]*(\d\.\d{1,2}(?:\.\d{1,2})?)(?:\+(cu\d{2,3}|rocm[\d.]+|cpu))?"),  # noqa: E501
        ("cuda_tag", r"(?<![a-z])cu(\d{2,3})(?!\d)"),
        ("driver", r"(?:driver(?:[\s_\-]*version)?|nvidia[\s\-]driver|(?<![a-z])r(?=[3-9]\d\d\b))[\s=:]*(?:is\s)?(?<!\d)(\d{3}(?:\.\d{1,3}){0,2})(?![\d.]*\w)"),  # noqa: E501
        ("driver", r"(?<![\d.])(\d{3}(?:\.\d{2,3}){1,2})\s?(?:driver|treiber)"),
        ("cuda", r"cuda(?:[\s_\-]*(?:version|toolkit))?[\s=:v]*(\d{2}(?:\.\d{1,2})?)(?!\d)(?:\s?(?:->|→|to)\s?(\d{2}\.\d))?"),  # noqa: E501
        ("nvcc", r"nvcc(?:[\s_\-]*version)?[\s=:v]*(\d{2}\.\d{1,2})"),
        ("rocm", r"rocm[\s=:v]*(\d\.\d{1,2}(?:\.\d)?)"),
        ("compute_capability", r"sm[_\s]?(\d{2,3})(?!\d)"),
        ("python", r"python[\s=:v]*(3\.\d{1,2})"),
    )  # fmt: skip
    for name, pattern in patterns:
        match = page.take(pattern)
        if not match:
            continue
        value = match[1]
        if name == "cuda_tag":
            name, value = "cuda_wheel", f"{match[1][:-1]}.{match[1][-1]}"
        values.setdefault(name, value)
        if name == "torch" and match[2] and match[2].startswith("cu"):
            values["cuda_wheel"] = f"{match[2][2:-1]}.{match[2][-1]}"
        if name == "cuda" and match[2]:
            values["cuda_from"], values["cuda"] = value, match[2]
    if "cuda" not in values and "cuda_wheel" in values:
        values["cuda"] = values["cuda_wheel"]


def _read_log(log: str, values: dict[str, Any]) -> None:
    """The card's size and the versions that a pasted log shows."""
    if not log:
        return
    total = _search(r"total capacity of (\d+(?:\.\d+)?) GiB", log)
    if total:
        values.setdefault("log_capacity_gib", float(total[1]))
    torch = _search(r"torch[\s=:-]*(\d\.\d+\.\d+)(?:\+cu(\d{3}))?", log.lower())
    if torch:
        values.setdefault("torch", torch[1])
