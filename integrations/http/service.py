"""What the routes share: settings, the desk that answers, who may call, turns, figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from advisor.accounts import EVERYBODY, Accounts, Budget
from advisor.database import Database
from advisor.kept_results import KeptResults
from advisor.llm.client import price_of
from advisor.llm.door import ladder, open_model
from advisor.settings import database_place, get_settings
from advisor.store import SqlConversations, open_store
from advisor.turn import Desk
from integrations.http.auth import Authenticator, Caller
from integrations.http.metering import Meter, Price
from integrations.http.metrics import Metrics
from integrations.http.settings import ServiceSettings
from integrations.http.turns import Ask, Turns
from tools.errors import UnknownName, nearest


@dataclass
class Service:
    """One server process."""

    settings: ServiceSettings
    desk: Desk
    metrics: Metrics
    accounts: Accounts
    auth: Authenticator
    turns: Turns

    @property
    def models(self) -> tuple[str, ...]:
        """The models that callers may name: those the operator set up, and the planner. Any other could cost money."""
        return ladder(None, self.desk.settings)

    def ask(
        self, caller: Caller, surface: str, question: str, conversation_id: str | None = None, model: str | None = None
    ) -> Ask:
        """A question of this caller, with the budgets that pay for it: the caller's and everybody's, tokens and USD a
        day (UTC). Nothing is reserved yet. Raises UnknownName for a model that callers may not name.
        """
        limits = caller.limits
        budgets = [
            Budget(caller.subject, limits.tokens_per_day, limits.usd_per_day),
            Budget(EVERYBODY, usd=self.settings.total_usd_per_day),
        ]
        refuse = self.settings.over_budget == "refuse"
        meter = Meter(self.accounts, budgets, self.price_of, self.metrics, refuse)
        asked = self.check_model(model)
        return Ask(question, conversation_id, asked, caller.owner, surface, self.desk, meter)

    def price_of(self, model: str) -> Price | None:
        """(USD per input token, USD per output token): as litellm's list has it, else as the operator says per million.
        None where neither does.
        """
        listed = price_of(model)
        ours = self.settings
        taken, given = ours.usd_per_million_input_tokens, ours.usd_per_million_output_tokens
        if listed is None and taken is not None and given is not None:
            return taken / 1e6, given / 1e6
        return listed

    def check_model(self, name: str | None) -> str | None:
        """``name`` if callers may ask for it, None for None. Raises UnknownName, with the nearest, for any other: it
        could cost money.
        """
        if name is not None and name not in self.models:
            raise UnknownName(
                "unknown_model",
                f"There is no model named {name[:80]!r} here.",
                field="model",
                hint="GET /v1/models lists them.",
                candidates=nearest(name[:80], self.models) or list(self.models[:3]),
            )
        return name


def build_service(settings: ServiceSettings, desk: Desk | None = None) -> Service:
    """What every surface of a server process shares; what is not given is as the environment says."""
    desk = desk or open_desk()
    metrics = Metrics()
    accounts = Accounts(database_of(desk))
    auth = Authenticator(settings, accounts, metrics)
    return Service(settings, desk, metrics, accounts, auth, Turns(settings, metrics))


def database_of(desk: Desk) -> Database:
    """Keys, budgets and jobs are kept where the conversations are. Raises TypeError for a store that is
    in no database.
    """
    if not isinstance(desk.store, SqlConversations):
        raise TypeError("the server needs a store that is in a database")
    return desk.store.database


def open_desk() -> Desk:
    """The desk that the environment describes, its store opened: SQLite or PostgreSQL, whose tables are made if need
    be. Raises InputProblem for settings that cannot be and for a store of a newer release.
    """
    settings = get_settings()
    store = open_store(database_place(settings))
    return Desk(settings, store, lambda name: open_model(name, settings), KeptResults())


async def _service(request: Request) -> Service:  # async, since FastAPI hands plain functions to another thread
    found: Service = request.app.state.service
    return found


Here = Annotated[Service, Depends(_service)]
