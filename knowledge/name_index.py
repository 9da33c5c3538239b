"""The rows of the name tables, made once when the knowledge base is built (see ``names`` for how they are read).

``how`` says what a row is: the id itself, an exact alias, a variant with the same architecture, a name with something
left out (size, version), or an ambiguous name (the first row is what we take, the others are the alternatives).
"""

from __future__ import annotations

import re
from typing import Any

from knowledge.name_keys import GRAMMAR, ModelKey, fold, gpu_key, looser_model_keys, model_key, squash

Keyed = list[tuple[str, dict[str, Any]]]


def rows(kind: str, keyed: Keyed) -> list[dict[str, Any]]:
    """Rows (kind, name, id, how, size, year, text) of one kind for the table ``names``, exact names before what leaves
    something out, since the first that matches is taken.
    """
    return {"models": _model_rows, "gpus": _gpu_name_rows}.get(kind, lambda found: _squashed_rows(kind, found))(keyed)


def gpu_rows(keyed: Keyed) -> list[dict[str, Any]]:
    """One row for each way of writing each card, with its memory and form."""
    out: list[dict[str, Any]] = []
    for gpu_id, row in keyed:
        aliases = [gpu_id, *row["aliases"], *GRAMMAR["gpus"]["aliases"].get(gpu_id, [])]
        cards = dict.fromkeys(gpu_key(alias).card for alias in aliases)
        short = {re.sub(r"^[rg]tx", "", card) for card in cards if re.match(r"[rg]tx(\d{4}|a\d|pro)", card)}
        facts = {"memory": row["memory_gb"], "form": _form(gpu_id, row), "memory_type": row.get("memory_type")}
        facts["socket"] = row.get("form")
        for card in dict.fromkeys([*cards, *sorted(short)]):
            out.append({"card": card, "id": gpu_id, **facts, "how": "exact"})
    by_id = {row["id"]: row for row in out}
    for item in GRAMMAR["gpus"]["ambiguous"]:
        for gpu_id in (item["id"], *item["also"]):
            out.append({**by_id[gpu_id], "card": gpu_key(item["name"]).card, "how": "ambiguous"})
    return out


def _form(gpu_id: str, row: dict[str, Any]) -> str | None:
    form = str(row.get("form") or "")
    if "NVL" in gpu_id:
        return "nvl"
    for word, name in (("SXM", "sxm"), ("OAM", "oam"), ("PCIe", "pcie"), ("SoC", "soc")):
        if word in form:
            return name
    return None


def _row(kind: str, name: str, key: str, how: str, size: float = 0, year: int = 0, text: bool = True) -> dict[str, Any]:
    return {"kind": kind, "name": name, "id": key, "how": how, "size": size, "year": year, "text": int(text)}


def _model_rows(keyed: Keyed) -> list[dict[str, Any]]:
    exact: dict[str, dict[str, Any]] = {}
    out, variants, loose = [], [], []
    for model_id, row in keyed:
        size = float(row.get("total_params") or row.get("published_params") or 0)
        about = (size, int(row.get("release_year") or 0), row["modality"] == "text")
        out.append(_row("models", fold(model_id), model_id, "id", *about))
        keys = [model_key(name) for name in (model_id.rsplit("/", 1)[-1], *row["aliases"])]
        for key in keys:
            exact.setdefault(key.text, _row("models", key.text, model_id, "exact", *about))
        variants += [(model_key(name), model_id, about) for name in row.get("variants_same_architecture") or ()]
        loose += [(key.stripped(), model_id, about) for key in keys]
    for key, model_id, about in loose:  # the short form of "Qwen3-VL-8B-Instruct" is a name too, if still free
        for name in (key.text, key.with_size_last().text):
            exact.setdefault(name, _row("models", name, model_id, "exact", *about))
    exact.pop("", None)
    out += exact.values()
    for key, model_id, about in variants:
        for tried in dict.fromkeys((key, key.stripped())):
            if _names_a_model(tried) and tried.text not in exact:
                out.append(_row("models", tried.text, model_id, "variant", *about))
    for key, model_id, about in dict.fromkeys(loose):
        for name, left_out in looser_model_keys(key).items():
            if name not in exact:
                out.append(_row("models", name, model_id, left_out, *about))
    for item in GRAMMAR["models"]["ambiguous"]:
        for model_id in (item["id"], *item["also"]):
            out.append(_row("models", model_key(item["name"]).text, model_id, "ambiguous"))
    return out


def _names_a_model(key: ModelKey) -> bool:
    """Whether a remark in the variants list is a name and not a sentence."""
    return 1 < len(key.tokens) <= 8 and any(t[0].isdigit() for t in key.tokens)


def _gpu_name_rows(keyed: Keyed) -> list[dict[str, Any]]:
    return [_row("gpus", fold(alias), gpu_id, "exact") for gpu_id, row in keyed for alias in (gpu_id, *row["aliases"])]


def _squashed_rows(kind: str, keyed: Keyed) -> list[dict[str, Any]]:
    out = []
    families: dict[str, list[tuple[int, str]]] = {}
    for key, row in keyed:
        written = [key, row.get("instance_type") or key, *row["aliases"]]
        for name in dict.fromkeys(squash(alias, kind) for alias in written):
            out.append(_row(kind, name, key, "exact"))
        if kind == "instances":
            for family in _families(row):
                families.setdefault(squash(family, kind), []).append((-row["gpu_count"], key))
    taken = {row["name"] for row in out}
    for family, members in families.items():
        if family not in taken:
            out += [_row(kind, family, key, "version") for _count, key in sorted(members, key=lambda m: m[0])]
    for item in GRAMMAR[kind].get("ambiguous", ()):
        name = squash(item["name"], kind)
        out = [row for row in out if row["name"] != name]
        out += [_row(kind, name, key, "ambiguous") for key in (item["id"], *item["also"])]
    return out


def _families(row: dict[str, Any]) -> list[str]:
    """The "p5" of p5.48xlarge; "a3" and "a3 highgpu" of a3-highgpu-8g."""
    name = str(row["instance_type"])
    if row["provider"] == "AWS":
        return [name.split(".")[0]]
    if row["provider"] == "GCP":
        parts = re.split(r"-", name)
        return [parts[0], " ".join(parts[:2])]
    return []
