"""Turn ``knowledge/data`` into one read-only SQLite file: ``python -m knowledge.build [PATH]``.

Deterministic: the same data files give the same content hash, which is the ``kb_version`` that results carry.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import sqlite_utils
import yaml

from knowledge import article_tables, name_index

DATA = Path(__file__).parent / "data"


def build(path: Path) -> str:
    """Write the knowledge base to ``path`` and return its version, 16 hex digits; atomically, so that a reader sees the
    old file or the new one. Folders are made. Raises OSError where it cannot be written.
    """
    version = data_version()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    os.close(handle)
    try:
        db = sqlite_utils.Database(partial)
        _facts(db)
        _sources(db)
        _prices(db)
        article_tables.add_articles(db)
        db["meta"].insert({"key": "version", "value": version}, pk="key")  # type: ignore[union-attr]
        db.vacuum()
        db.close()
        os.chmod(partial, 0o644)  # public facts: whoever runs the program may be another user than who installed it
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
    return version


def data_version() -> str:
    """Hash of every data file and of the builder: changes whenever the built content could."""
    digest = hashlib.sha256()
    code = [Path(__file__), Path(name_index.__file__), Path(name_index.__file__).with_name("name_keys.py")]
    ranking = ("article_tables", "topic_features", "topic_model", "words")
    code += [Path(__file__).with_name(f"{name}.py") for name in ranking]
    for file in sorted([*DATA.rglob("*"), *code]):
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def read_json(name: str) -> list[dict[str, Any]]:
    """The rows of ``data/{name}.json`` as written, units in their keys. Reads the disk each time."""
    rows: list[dict[str, Any]] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return rows


def _facts(db: Any) -> None:
    for kind in ("models", "gpus", "links", "instances"):
        rows = [row for row in read_json(kind) if not str(row.get("id", "")).startswith("_")]
        keyed = [(row.get("id") or f"{row['provider']} {row['instance_type']}", row) for row in rows]
        db[kind].insert_all(({"id": key, "record": json.dumps(row)} for key, row in keyed), pk="id")
        names = name_index.gpu_rows(keyed) if kind == "gpus" else []
        if names:
            db["gpu_names"].insert_all(names)
            db["gpu_names"].create_index(["card"])
        db["names"].insert_all(name_index.rows(kind, keyed))
    db["names"].create_index(["kind", "name"])


def _sources(db: Any) -> None:
    files = [DATA / "sources.yaml", DATA / "sources_articles.yaml"]
    rows = [row for file in files for row in yaml.safe_load(file.read_text(encoding="utf-8"))]
    db["sources"].insert_all(({"id": row["id"], "record": json.dumps(row)} for row in rows), pk="id")


def _prices(db: Any) -> None:
    """Offers and what was kept out, as ``clean_prices`` left them, and the providers."""
    for table in ("prices", "prices_rejected"):
        with (DATA / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            db[table].insert_all(csv.DictReader(file))
    providers = ({"id": row["id"], "record": json.dumps(row)} for row in read_json("providers"))
    db["providers"].insert_all(providers, pk="id")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "knowledge.db"
    sys.stdout.write(f"{target} {build(target)}\n")
