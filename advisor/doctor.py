"""A self-check of settings, data, tools, store and model, in words that say what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from advisor.llm.door import PLANNER, open_model
from advisor.llm.protocol import ModelFailed
from advisor.redaction import Redaction, secret_values, without_password
from advisor.settings import Settings, database_place, get_settings
from tools.errors import InputProblem

# Releases of litellm that carried stolen-credential payloads (BerriAI/litellm issues 24512 and 24518, March 2026).
BAD_LITELLM = ("1.82.7", "1.82.8")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    detail: str


def checks() -> list[Check]:
    """Every check, in the order in which a fault would be met; faults are results, nothing is raised. Reads the
    knowledge base, writes to the store, asks no provider. One check alone where the settings cannot be read.
    """
    try:
        settings = get_settings()
    except InputProblem as problem:
        return [Check("settings", False, f"{problem.message} {problem.hint or ''}".strip())]
    where = without_password(settings.database_url) or "the user's data folder"
    found = [
        Check("python", sys.version_info >= (3, 11), ".".join(map(str, sys.version_info[:3]))),
        Check("settings", True, f"model {settings.model}, conversations in {where}"),
    ]
    for name, look in (
        ("knowledge", _knowledge),
        ("tools", _tools),
        ("store", lambda: _store(settings)),
        ("planner", lambda: _planner(settings)),
    ):
        found.append(_guarded(name, look))
    if settings.model != PLANNER or settings.fallback_models:
        found.append(_guarded("litellm", _litellm))
    return found


def _guarded(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except Exception as error:
        return Check(name, False, Redaction(secret_values()).text(f"{type(error).__name__}: {error}")[:300])


def _knowledge() -> str:
    from knowledge.store import connection, kb_version

    counts = [
        f"{connection().execute(f'select count(*) from {table}').fetchone()[0]:,} {table}"
        for table in ("models", "gpus", "instances", "links", "prices")
    ]
    newest = connection().execute("select max(observed) from prices").fetchone()[0]
    return f"version {kb_version()}: {', '.join(counts)}; newest price {newest}"


def _tools() -> str:
    from tools.registry import all_tools

    return f"{len(all_tools())} tools"


def _store(settings: Settings) -> str:
    from advisor.store import open_store

    place = database_place(settings)
    store = open_store(place)
    store.ping()
    store.database.close()
    return f"{'PostgreSQL' if '://' in place else place} can be written"


def _planner(settings: Settings) -> str:
    try:
        open_model(PLANNER, settings)
    except ModelFailed as failure:
        raise LookupError(failure.message) from None
    return "ready, needs no key and no network"


def _litellm() -> str:
    try:
        found = version("litellm")
    except PackageNotFoundError:
        raise LookupError("litellm is not installed: pip install 'training-infrastructure-advisor[llm]'") from None
    if found in BAD_LITELLM:
        raise LookupError(f"litellm {found} is a compromised release: remove it and change every key on this machine")
    return f"litellm {found}"
