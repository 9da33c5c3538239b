"""Reading a public model's configuration from the hub: same network rules as prices, cached, honest when it cannot."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from advisor.settings import data_folder, get_settings
from integrations.hub.config import record
from knowledge.errors import InputProblem, UnknownName
from knowledge.models import architecture
from knowledge.types import Architecture

HOST = "huggingface.co"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,95}[A-Za-z0-9_])?"
HUB_ID = re.compile(rf"{_NAME}/{_NAME}")
HOSTS = {HOST: (rf"/api/models/{_NAME}/{_NAME}", rf"/{_NAME}/{_NAME}/raw/main/config\.json")}
KEEP = timedelta(days=30)  # a released model's shape hardly ever changes
DEADLINE_SECONDS, MAX_BYTES = 8.0, 4_000_000
INSTEAD = 'Give its size instead, e.g. {"params_b": 7}, with n_layers, hidden_size, n_heads and n_kv_heads if known.'


def lookup(
    name: str,
    field: str = "model",
    *,
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Architecture | None:
    """The architecture of a hub id, from the cache or the hub; None when ``name`` is no hub id.

    Raises UnknownName where the hub does not know it or cannot be asked, always saying what to give instead.
    """
    if not is_hub_id(name):
        return None
    cache = _Cache(path or data_folder() / "hub.db")
    kept = cache.get(name)
    if kept and now() - datetime.fromisoformat(kept[1]) < KEEP:
        return architecture(kept[0])
    values = os.environ if environment is None else environment
    try:
        if get_settings(values).offline:
            raise _cannot(name, field, "hub_offline", "the network is switched off (ADVISOR_OFFLINE)")
        row = record(name, *_ask(name, field, values), now().date().isoformat())
    except InputProblem:
        if kept:  # an old reading beats none
            return architecture(kept[0])
        raise
    cache.put(name, row, now().isoformat())
    return architecture(row)


def is_hub_id(name: str) -> bool:
    """Whether ``name`` can be a hub id: owner/name, no dots that climb, no address."""
    return bool(HUB_ID.fullmatch(name)) and ".." not in name and "--" not in name


def _ask(name: str, field: str, environment: Mapping[str, str]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The configuration and the hub's description."""
    from integrations.net import (  # the HTTP client is paid for only when something is asked
        Policy,
        Session,
        SourceError,
    )

    token = environment.get("HF_TOKEN", "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    policy = Policy(hosts=HOSTS, deadline_seconds=DEADLINE_SECONDS, max_body_bytes=MAX_BYTES,
                    max_inflated_bytes=4 * MAX_BYTES, attempts=2, elsewhere=_elsewhere(environment),
                    same_host_redirects=2)  # fmt: skip
    try:
        with Session(policy) as session:
            config = session.json(HOST, f"/{name}/raw/main/config.json", headers=headers)
            try:
                about = session.json(HOST, f"/api/models/{name}", headers=headers)
            except SourceError:
                about = {}  # the shape is enough; the total then comes from it
    except SourceError as err:
        if err.status == 404:
            raise _cannot(name, field, "unknown_model", "the hub has no such model, or it has no config.json") from None
        if err.status in (401, 403):  # the hub says 401 for what does not exist, too
            why = "the hub shows it to nobody without leave: it does not exist, is private, or is gated (set HF_TOKEN)"
            raise _cannot(name, field, "hub_gated", why) from None
        raise _cannot(name, field, "hub_unreachable", f"the hub could not be read ({err.code})") from None
    except Exception:  # whatever stops the network here must not stop the question
        raise _cannot(name, field, "hub_unreachable", "the hub could not be reached") from None
    if not isinstance(config, dict):
        raise _cannot(name, field, "hub_unreachable", "its config.json is no configuration")
    return config, about if isinstance(about, dict) else {}


def _cannot(name: str, field: str, code: str, why: str) -> UnknownName:
    return UnknownName(code, f"I do not know {name[:80]!r}, and {why}.", field=field, hint=INSTEAD)


def _elsewhere(environment: Mapping[str, str]) -> dict[str, str]:
    """An operator's mirror: HF_ENDPOINT, as Hugging Face's own client reads it; https or this machine only."""
    mirror = environment.get("HF_ENDPOINT", "").strip().rstrip("/")
    return {HOST: mirror} if mirror else {}


class _Cache:
    """Records by id in a small SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, name: str) -> tuple[dict[str, Any], str] | None:
        if not self.path.exists():
            return None
        with closing(self._open()) as db:
            row = db.execute("select record, at from models where id = ?", (name,)).fetchone()
        return (json.loads(row[0]), row[1]) if row else None

    def put(self, name: str, record: Mapping[str, Any], at: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._open()) as db, db:
            db.execute("insert or replace into models values (?, ?, ?)", (name, json.dumps(record), at))

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=5.0)
        db.execute("create table if not exists models (id primary key, record, at)")
        return db
