"""Who may call: this machine alone by default, keys with scopes and rates, tokens of an issuer, nobody else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from advisor.accounts import Limits
from advisor.llm.protocol import Finish, TextDelta, Usage
from integrations.http import auth
from integrations.http.settings import ServiceSettings
from tests.advisor.conftest import Scripted, says
from tests.integrations.http.conftest import Live, Serve
from tests.integrations.http.test_ask import ASK, weighing
from tools.errors import BadValue, MissingValue

KEY = "a-key-of-the-environment"


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def status(live: Live, path: str = "/v1/tools", **headers: str) -> int:
    return live.client.get(path, headers=headers).status_code


def test_this_machine_needs_no_key_until_there_is_one(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REMEMBERED_SECONDS", 0.0)
    live = serve()
    assert status(live) == 200
    key = live.service.accounts.create_key("team")
    refused = live.client.get("/v1/tools")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthorized")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert status(live, **bearer(key)) == 200
    assert live.client.get("/v1/tools", headers={"x-api-key": key}).status_code == 200


def test_a_name_that_is_not_of_this_machine_is_not_let_in_without_a_key(serve: Serve) -> None:
    live = serve()
    assert status(live, host="evil.example:80") == 401
    assert status(live, host="localhost") == 200
    assert status(live, host="[::1]:8080") == 200


def test_another_machine_is_not_let_in_without_a_key(serve: Serve) -> None:
    live = serve()
    assert status(live, **{"x-forwarded-for": "203.0.113.9"}) == 401  # as a proxy on this machine would pass it on


def test_only_the_listed_names_are_answered_to(serve: Serve) -> None:
    live = serve(api_keys=KEY, allowed_hosts=["advisor.example"])
    assert status(live, host="advisor.example", **bearer(KEY)) == 200
    assert status(live, host="other.example", **bearer(KEY)) == 403


def test_keys_of_the_environment_have_owners(serve: Serve) -> None:
    live = serve(weighing(2), api_keys=f"ann:{KEY}-1, bob:{KEY}-2")
    assert status(live) == 401
    assert status(live, **bearer("wrong" * 5)) == 401
    for owner, key in (("ann", f"{KEY}-1"), ("bob", f"{KEY}-2")):
        assert live.client.post("/v1/ask", json=ASK, headers=bearer(key)).status_code == 200
        assert len(live.service.desk.store.recent(owner)) == 1


def test_a_short_key_is_refused_at_the_start(serve: Serve) -> None:
    with pytest.raises(BadValue, match="16"):
        serve(api_keys="short")


def test_a_key_does_only_what_its_scopes_say(serve: Serve) -> None:
    live = serve(weighing())
    key = live.service.accounts.create_key("team", scopes=["tools"])
    assert status(live, **bearer(key)) == 200
    refused = live.client.post("/v1/ask", json=ASK, headers=bearer(key))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")


def test_a_revoked_key_ends_and_its_use_was_noted(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "REMEMBERED_SECONDS", 0.0)
    live = serve()
    accounts = live.service.accounts
    key = accounts.create_key("team")
    accounts.create_key("other")
    assert status(live, **bearer(key)) == 200
    (used,) = [found for found in accounts.all_keys() if found.owner == "team"]
    assert used.last_used_at
    accounts.revoke_key(used.id)
    assert status(live, **bearer(key)) == 401


def test_a_rate_is_held_and_says_when_to_come_back(serve: Serve) -> None:
    live = serve()
    key = live.service.accounts.create_key("team", limits=Limits(requests_per_minute=2))
    got = [live.client.get("/v1/tools", headers=bearer(key)) for _ in range(3)]
    assert [found.status_code for found in got] == [200, 200, 429]
    assert got[2].json()["error"]["code"] == "too_many_requests"
    assert 1 <= int(got[2].headers["retry-after"]) <= 30
    assert 'advisor_refusals_total{code="too_many_requests"} 1.0' in live.client.get("/metrics").text


def priced(turns: int) -> Scripted:
    moves = [says("Hello there.", finish=Finish(usage=Usage(1000, 500))) for _ in range(turns)]
    return Scripted(*moves, name="prov/priced")


PRICES = {"usd_per_million_input_tokens": 10.0, "usd_per_million_output_tokens": 20.0}


def planner() -> Scripted:
    return Scripted(*[says("From the planner.") for _ in range(5)], name="planner")


def test_a_call_is_charged_what_it_used(serve: Serve) -> None:
    live = serve(priced(2), planner(), **PRICES)
    key = live.service.accounts.create_key("team", limits=Limits(tokens_per_day=100_000, usd_per_day=5.0))
    (made,) = live.service.accounts.all_keys()
    answer = live.client.post("/v1/ask", json=ASK, headers=bearer(key)).json()
    assert answer["model"] == "prov/priced"
    for subject in (f"key:{made.id}", "*"):
        # 1000 × 10e-6 + 500 × 20e-6 USD
        assert live.service.accounts.spent(subject) == (1500, pytest.approx(0.02))


def test_when_a_budget_is_spent_the_planner_answers_and_says_so(serve: Serve) -> None:
    live = serve(priced(2), planner(), **PRICES)
    key = live.service.accounts.create_key("team", limits=Limits(usd_per_day=1e-4))
    answer = live.client.post("/v1/ask", json=ASK, headers=bearer(key)).json()
    assert (answer["model"], answer["degraded"]) == ("planner", True)
    assert "the day's budget is spent" in answer["answer"]


def test_a_price_that_nobody_knows_fits_no_budget(serve: Serve) -> None:
    live = serve(priced(2), planner())
    key = live.service.accounts.create_key("team", limits=Limits(usd_per_day=100.0))
    answer = live.client.post("/v1/ask", json=ASK, headers=bearer(key)).json()
    assert (answer["model"], answer["degraded"]) == ("planner", True)
    free = live.service.accounts.create_key("team")
    assert live.client.post("/v1/ask", json=ASK, headers=bearer(free)).json()["model"] == "prov/priced"


def test_a_call_that_breaks_off_is_charged_in_full(serve: Serve) -> None:
    broken = Scripted([TextDelta("Half an")], name="prov/broken")  # no Finish: nobody says what it cost
    live = serve(broken, planner(), **PRICES)
    key = live.service.accounts.create_key("team", limits=Limits(tokens_per_day=1_000_000))
    live.client.post("/v1/ask", json=ASK, headers=bearer(key))
    tokens, _usd = live.service.accounts.spent("*")
    assert tokens > live.service.desk.settings.max_output_tokens


class Issuer:
    """An OpenID Connect issuer on loopback with one signing key."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body: Any = {"keys": [{**jwk, "kid": "k1", "use": "sig", "alg": "RS256"}]}
                if self.path.endswith("openid-configuration"):
                    body = {"jwks_uri": f"{issuer.url}/keys"}
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def token(self, key: rsa.RSAPrivateKey | None = None, algorithm: str = "RS256", **changes: object) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": "advisor", "sub": "ann", "exp": now + 60, "email": "ann@x.example", **changes}
        claims = {name: value for name, value in claims.items() if value is not None}
        secret: Any = "x" * 32 if algorithm == "HS256" else key or self.key
        return jwt.encode(claims, secret, algorithm, headers={"kid": "k1"})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    found = Issuer()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_a_token_of_the_issuer_is_its_subjects(serve: Serve, issuer: Issuer) -> None:
    live = serve(weighing(), oidc_issuer=issuer.url, oidc_audience="advisor", oidc_owner_claim="email")
    assert live.client.post("/v1/ask", json=ASK, headers=bearer(issuer.token())).status_code == 200
    assert len(live.service.desk.store.recent("oidc:ann@x.example")) == 1


def test_a_token_that_proves_nothing_is_refused(serve: Serve, issuer: Issuer) -> None:
    live = serve(oidc_issuer=issuer.url, oidc_audience="advisor")
    assert status(live, **bearer(issuer.token())) == 200
    past = int(time.time()) - 120
    forged = {
        "expired": issuer.token(exp=past),
        "without an end": issuer.token(exp=None),
        "for another service": issuer.token(aud="other"),
        "of another issuer": issuer.token(iss="https://evil.example"),
        "signed by another": issuer.token(rsa.generate_private_key(65537, 2048)),
        "signed with a shared secret": issuer.token(algorithm="HS256"),
        "unsigned": jwt.encode({"sub": "ann"}, None, "none"),
        "without a subject": issuer.token(sub=None),
        "junk": "a.b.c",
    }
    for name, token in forged.items():
        assert status(live, **bearer(token)) == 401, name
    assert status(live) == 401


def test_an_issuer_without_an_audience_is_refused_at_the_start() -> None:
    with pytest.raises(MissingValue, match="audience"):
        auth.Oidc(ServiceSettings(oidc_issuer="https://issuer.example"))


def test_open_for_all_is_only_by_saying_so(serve: Serve) -> None:
    live = serve(auth="open")
    assert status(live, host="anything.example") == 200
    assert status(serve(auth="required")) == 401


def test_pages_and_probes_need_no_key(serve: Serve) -> None:
    live = serve(api_keys=KEY)
    assert [status(live, path) for path in ("/livez", "/readyz", "/docs", "/openapi.json")] == [200] * 4
