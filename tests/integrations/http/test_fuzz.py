"""Whatever the OpenAPI document allows is never answered with a fault of ours (schemathesis, a few cases a route).

The whole of it: `schemathesis run http://127.0.0.1:8080/openapi.json --checks not_a_server_error` on a running server.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from advisor.llm.planner import Planner
from advisor.settings import Settings
from advisor.store import SqliteConversations
from advisor.turn import Desk
from integrations.http.app import create_app
from integrations.http.settings import ServiceSettings
from tests.integrations.http.conftest import Live

SERVICE = ServiceSettings(auth="open", turns_per_caller=64)


def desk() -> Desk:
    return Desk(Settings(), SqliteConversations(":memory:"), lambda _name: Planner())


schema = schemathesis.openapi.from_dict(create_app(SERVICE, desk()).openapi())


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    found = Live(SERVICE, desk())
    yield found
    found.stop()


@schema.parametrize()
@settings(
    max_examples=5, derandomize=True, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
def test_no_request_is_answered_with_a_fault_of_ours(live: Live, case: schemathesis.Case) -> None:
    sent = case.as_transport_kwargs(base_url=live.url)
    sent.pop("cookies", None)
    if "data" in sent:  # the argument's name in another client
        sent["content"] = sent.pop("data")
    assert live.client.request(**sent).status_code < 500
