"""The knowledge base as MCP resources: articles, checked claims, GPUs and models, each with source and date.

advisor://articles            advisor://articles/{id}
advisor://claims              advisor://claims/{id}
advisor://gpus                advisor://gpus/{name}      any name that people use
advisor://models              advisor://models/{name}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

from mcp_types import Resource, ResourceTemplate

from knowledge.gpus import all_gpus, find_gpu
from knowledge.models import all_models, find_model
from knowledge.search import article, claim
from knowledge.store import connection
from tools.errors import UnknownName, nearest

JSON, MARKDOWN = "application/json", "text/markdown"
PREFIX = "advisor://"
Document = tuple[str, str]  # MIME type and text


def listing() -> list[Resource]:
    """The four lists, then every article by its own address in the order of ids; read from the knowledge base."""
    lists = [Resource(uri=f"{PREFIX}{kind}", name=kind, title=title, mime_type=JSON) for kind, title in _TITLES.items()]
    articles = [
        Resource(uri=f"{PREFIX}articles/{row['id']}", name=row["id"], title=row["title"], mime_type=MARKDOWN,
                 description=row["summary"])
        for row in connection().execute("select id, title, summary from articles order by id")
    ]  # fmt: skip
    return [*lists, *articles]


def templates() -> list[ResourceTemplate]:
    """Addresses with an {id} to fill in, one a kind: article, claim, GPU, model."""
    return [
        ResourceTemplate(
            uri_template=f"{PREFIX}{kind}/{{id}}", name=kind, title=f"One of: {title}", mime_type=_KINDS[kind]
        )
        for kind, title in _TITLES.items()
    ]


def read(uri: str) -> Document:
    """(MIME type, text) of the resource at this address: JSON or Markdown. Raises UnknownName, with the nearest, for an
    address or a name that is none.
    """
    kind, _, name = uri.removeprefix(PREFIX).partition("/")
    if not uri.startswith(PREFIX) or kind not in _TITLES:
        raise UnknownName(
            "unknown_resource", f"There is no resource {uri[:120]!r}.", field="uri", hint="See resources/list.",
            candidates=[f"{PREFIX}{name}" for name in nearest(kind, _TITLES)],
        )  # fmt: skip
    if not name:
        return JSON, _json(_LISTS[kind]())
    return _ONE[kind](unquote(name))


def _article(name: str) -> Document:
    found = article(name)
    if found is None:
        raise _unknown("article", name, "articles")
    sources = ", ".join(found.sources)
    return MARKDOWN, f"# {found.title}\n\n{found.text}\n\nSources, as of {found.as_of}: {sources}\n"


def _claim(name: str) -> Document:
    found = claim(name)
    if found is None:
        raise _unknown("claim", name, "claims")
    return JSON, _json(asdict(found))


def _gpu(name: str) -> Document:
    return JSON, _json(asdict(find_gpu(name).value))


def _model(name: str) -> Document:
    return JSON, _json(asdict(find_model(name).value))


def _rows(table: str, columns: str) -> list[dict[str, Any]]:
    return [dict(row) for row in connection().execute(f"select {columns} from {table} order by id")]


def _unknown(what: str, name: str, table: str) -> UnknownName:
    ids = [row["id"] for row in connection().execute(f"select id from {table}")]
    return UnknownName(
        f"unknown_{what}", f"There is no {what} {name[:80]!r}.", field="uri", candidates=nearest(name[:80], ids)
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


_TITLES = {
    "articles": "Curated articles on machines for training models",
    "claims": "Common claims, checked, with the sum behind each verdict",
    "gpus": "Data sheets of GPUs and other accelerators",
    "models": "Shapes of known models",
}
_KINDS = {"articles": MARKDOWN, "claims": JSON, "gpus": JSON, "models": JSON}
_LISTS: dict[str, Callable[[], Any]] = {
    "articles": lambda: _rows("articles", "id, title, summary, as_of"),
    "claims": lambda: _rows("claims", "id, claim, verdict, as_of"),
    "gpus": lambda: [
        {"id": gpu.id, "memory_bytes": gpu.memory_bytes, "bandwidth_bytes_per_s": gpu.bandwidth_bytes_per_s}
        for gpu in all_gpus()
    ],
    "models": lambda: [{"id": model.id, "total_params": model.total_params} for model in all_models()],
}
_ONE: dict[str, Callable[[str], Document]] = {"articles": _article, "claims": _claim, "gpus": _gpu, "models": _model}
