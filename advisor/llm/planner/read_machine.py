"""How many cards and nodes, and the links between them."""

from __future__ import annotations

from typing import Any

from advisor.llm.planner import grammar
from advisor.llm.planner.mentions import GpuMention
from advisor.llm.planner.page import Page, number_word
from advisor.llm.planner.read_gpus import count_before

BETWEEN_NODES = ("InfiniBand", "RoCE", "Ethernet", "EFA", "10GbE", "1GbE", "40GbE", "50GbE", "100GbE")
_DESK_LINKS = ("1GbE", "2.5GbE", "5GbE", "10GbE")  # of machines with one card each, where none are counted
VAGUE_LINKS = ("InfiniBand", "Ethernet", "EFA")  # a family, not a rate


_MANY = 10_000_000
_PORT_PER_GPU = 200  # Gbit/s; ports this wide are RoCE, one a GPU, in the tables of links


def read_networks(page: Page, values: dict[str, Any]) -> None:
    """Rates beside a word for a network, read before cards and memory: "a 10 gig link" is no A10 and no 10 GB."""
    for name in ("network_rate", "network_rate_after"):
        if grammar.seen(name, page.text, "patterns") is None:
            continue
        for match in page.all(name):
            if grammar.named("infiniband").search(page.text[match.end() : match.end() + 12]):
                continue  # "100 gbit link, infiniband": read with its family
            ports, rate = match[1], match[2]
            link = f"RoCE-{rate}GbE" if float(rate) >= _PORT_PER_GPU else f"{rate}GbE"
            values.setdefault("inter_link", f"{ports}x{rate}GbE" if ports else link)
            values.setdefault("links", []).append(values["inter_link"])
            page.blank(*match.span())


def read_links(page: Page, values: dict[str, Any]) -> None:
    """Named links inside and between machines, and quoted rates (GB/s), into ``values``."""
    found = [(value, match) for value, match in grammar.found("names", "links", page.text)]
    for name, value in (("infiniband", "InfiniBand"), ("ethernet", "Ethernet"), ("efa", "EFA"), ("pcie", "PCIe")):
        found += [(value, match) for match in page.all(name)]
    names = list(dict.fromkeys(value for value, _match in found))
    # "InfiniBand NDR" names one link, not a family and a link.
    links = [name for name in names if not any(other != name and other.startswith(name + "-") for other in names)]
    if links:
        values["links"] = list(dict.fromkeys([*values.get("links", []), *links]))
        inter = [name for name in links if name.startswith(BETWEEN_NODES)]
        exact = [name for name in inter if name not in VAGUE_LINKS]
        if "inter_link" not in values and (len(exact) == 1 or len(inter) == 1):
            values["inter_link"] = (exact or inter)[0]
        intra = [name for name in links if name.startswith(("NVLink", "PCIe"))]
        if len(intra) == 1:
            values["intra_link"] = "PCIe" if intra[0] == "NVLink" and page.has("no_nvlink") else intra[0]
    rates = page.all("rate")
    if rates:
        values["rates"] = [match[0] for match in rates]
        bits = [match[0] for match in rates if "ps" in match[0] or "bit" in match[0]]
        if len(bits) == 1:
            values.setdefault("inter_link", bits[0])
    for match in [*rates, *(match for _value, match in found)]:
        page.blank(*match.span())


def read_counts(page: Page, values: dict[str, Any], gpus: list[GpuMention]) -> None:
    """GPUs counted without a name ("64 gpu", "3 gpus"), then those of the cards named."""
    for match in page.all("card_word"):
        head = count_before(page.text, match.start())
        if not head or (head.word in ("a", "an") and "single" not in page.text[head.start : match.start()]):
            continue
        each = grammar.named("per_node").match(page.text[match.end() : match.end() + 24])
        if each:
            values["gpus_per_node"] = head.count
            if each[1]:  # "8 gpus/node x 4"
                values["n_nodes"], values["n_gpus"] = int(each[1]), head.count * int(each[1])
        else:
            minus = grammar.named("minus").search(page.text[: head.start])
            values.setdefault("n_gpus", head.count * (head.nodes or 1) * (-1 if minus else 1))
        break
    counted = next((mention for mention in gpus if mention.count), None)
    same = {mention.argument: set[int]() for mention in gpus}
    for mention in gpus:
        same[mention.argument] |= {mention.count * (mention.nodes or 1)} if mention.count else set()
    if any(len(counts) > 1 for counts in same.values()):  # "8 h100 give ..., 32 h100 give ..."
        values["counts"] = max(same.values(), key=len)
    if not counted and "n_gpus" not in values and len(gpus) == 2 and gpus[0].argument == gpus[1].argument:
        between = page.text[gpus[0].end : gpus[1].start]
        if grammar.named("and_another").search(between):  # "my office 4090 and my home 4090"
            values["n_gpus"] = 2
    if not counted and "n_gpus" not in values and page.has("second_card"):
        values["n_gpus"] = 2
    behind = page.text[counted.end : counted.end + 32] if counted else ""
    if counted and (grammar.named("per_node").match(behind) or grammar.named("each_behind").match(behind)):
        values["gpus_per_node"] = counted.count  # "4 a100 per node, 2 nodes"; "8 a100 each"
    if counted:
        values["n_gpus"] = int(counted.count or 1) * (counted.nodes or 1)
        if counted.nodes:
            values["n_nodes"], values["gpus_per_node"] = counted.nodes, counted.count
    elif gpus and "n_gpus" not in values and page.has("single_card"):
        values["n_gpus"] = 1
    if "n_gpus" not in values:
        leans = bool(gpus) or "sharding" in values or page.has("card_word") is not None
        some = page.has("of_them") or page.has("ranks") or (page.has("leaning_count") if leans else None)
        some = some or (page.has("times_read") if gpus else None) or page.has("whole_count")
        count = number_word(next(group for group in some.groups() if group)) if some else None
        if count:
            values["n_gpus"] = count


def read_each(page: Page, values: dict[str, Any], gpus: list[GpuMention]) -> None:
    """How many are in each machine, said without them: "a100 40, 8 each", "4 nodes, 8 each"."""
    each = page.has("bare_each")
    if each and "gpus_per_node" not in values and not any(gpu.count for gpu in gpus):
        values["gpus_per_node"] = number_word(each[1])


def read_count_pair(page: Page, values: dict[str, Any]) -> None:
    """Two counts of one card to choose from, to be computed side by side: "8 or 16 h100"."""
    if "variants" in values:
        return
    found = page.has("count_pair") or page.has("count_or_count")
    pair = [number_word(found[1]), number_word(found[2])] if found else []
    if len(pair) == 2 and all(pair) and pair[0] != pair[1]:
        values["variants"], values["n_gpus"] = ("n_gpus", pair), pair[0]


def read_nodes(page: Page, values: dict[str, Any], gpus: list[GpuMention]) -> None:
    """Nodes, and the GPUs in each where they were named together, as counts into ``values``."""
    if "n_nodes" in values:
        return
    out_of = page.has("of_nodes")
    if out_of:
        values["n_nodes"] = int(out_of[1])
        return
    match = page.has("nodes")
    nodes = number_word(match[1]) if match else None
    if not match or not nodes or (nodes == 1 and values.get("n_gpus", 0) > values.get("gpus_per_node", _MANY)):
        return  # "16 ranks ... 8x slower than one node": the one node is spoken of, not used
    values["n_nodes"] = nodes
    if match[2]:
        values["gpus_per_node"] = int(match[2])
    elif values.get("gpus_per_node"):
        pass
    elif gpus and gpus[0].count and not gpus[0].nodes and page.has("nodes_of_cards"):
        values["gpus_per_node"] = gpus[0].count
    elif not gpus and "n_gpus" not in values and values.get("inter_link") in _DESK_LINKS:
        values["gpus_per_node"] = 1
    elif nodes > 1 and values.get("n_gpus", 0) > nodes and values["n_gpus"] % nodes == 0:
        values["gpus_per_node"] = values["n_gpus"] // nodes
    if values.get("gpus_per_node"):
        values["n_gpus"] = nodes * values["gpus_per_node"]
