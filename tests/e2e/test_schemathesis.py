"""What Schemathesis makes of the document: what it allows is accepted, and no answer is one that it does not have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import FlakyStrategyDefinition
from requests.auth import AuthBase
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from libs.contracts.exact_json import encode as encode_exactly
from tests.support.api import Api, Key, signed_headers
from tests.support.documents import openapi_document
from tests.support.live import Live
from tests.support.pace import pace
from tests.support.receivers import receiver

UNLIMITED = tuple(
    part for kind in ("reads", "writes", "wires") for part in (f"--{kind}-per-minute", "1000000")
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ACCEPTED = {200, 403, 409}
"""Of a request that is right; 403 when the key that asked for a wire decides on it, 409 of the state of things."""
BOUNDED = settings(
    max_examples=2,
    stateful_step_count=8,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[*HealthCheck],
)
"""Always the same requests, but for ids."""
SCENARIOS = 25
RUNS = 3
"""Hypothesis wants sequences that begin alike to go on alike. They go on along links, of which a list has none before
its first row, and the bank adds rows at moments of its own: such a run says nothing of answers, and is done again.
"""

Values = dict[str, Any]


@dataclass(frozen=True)
class Signing(AuthBase):
    """Signs what is sent as it is sent, with the key of the route's family."""

    partner: Key
    customer: Key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        body = request.body or b""
        target = request.path_url
        key = self.customer if target.startswith("/customer") else self.partner
        assert isinstance(body, str | bytes), "only what is whole in memory can be signed"
        sent = body.encode() if isinstance(body, str) else body
        request.headers.update(signed_headers(key, request.method or "", target, sent))
        return request


@dataclass(frozen=True)
class Generated:
    """The document with a customer to try it on.

    Args:
        ids: by family, path parameters of what exists.
        rules: by field, values that keep the rules which descriptions name and no schema can say.
    """

    schema: Any
    signing: Signing
    ids: dict[str, Values]
    rules: Values

    def send(self, case: Case[Any], session: requests.Session) -> Response:
        response = case.call(auth=self.signing, session=session)
        case.validate_response(response, checks=CHECKS)
        return response

    def keeping_rules(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.keeping_rules(item) for item in value]
        if not isinstance(value, dict):
            return value
        kept = {name: self.rules.get(name, self.keeping_rules(value[name])) for name in value}
        if "zip_code" in kept:
            kept |= {"state": "NY"}
        if "date_of_birth" in kept:
            kept |= {"controller": True}
        return kept


async def subscribed(api: Api, family: str, url: str) -> Values:
    """The ids of a subscription, of its test, and of that one's event."""
    body = {"event_types": "*", "callback_url": url}
    made = (await api.post(f"{family}/webhooks/subscriptions", body)).data["subscription_id"]
    test = (await api.post(f"{family}/webhooks/subscriptions/{made}/test", None)).data
    event = (await api.get(f"{family}/events?limit=1")).data[0]["id"]
    return {"subscription_id": made, "delivery_id": test["delivery_id"], "event_id": event}


@asynccontextmanager
async def generated(live: Live) -> AsyncIterator[Generated]:
    partner_key = await live.deployment.key("generated", *UNLIMITED)
    partner = live.api(partner_key)
    made = await live.onboarded(api=partner)
    business, account_id = made["business"], made["business"]["account_id"]
    await live.bank.deposit(account_id, Decimal("1000.00"))
    customer_key = await live.deployment.customer_key(business["customer_id"], *UNLIMITED)
    customer = live.api(customer_key)
    linked = (await customer.get("/customer/external-accounts")).data[0]["external_account_id"]
    wire = {"sending_account_id": account_id, "external_account_id": linked, "amount": 0.25}
    sent = (await customer.post("/customer/wire", wire | {"purpose": "Rent"})).data
    # As the gateway serves it, which integration/gateway/test_gateway_documents.py compares: it would make it first.
    schema = schemathesis.openapi.from_dict(json.loads(encode_exactly(openapi_document())))
    schema.config.update(base_url=live.stack.base_url, request_timeout=40 * pace())
    now = datetime.now(UTC)
    since, until = (now - timedelta(hours=1)).isoformat(), now.isoformat()
    async with receiver() as endpoint:
        ids = {
            "partner": {
                "customer_id": business["customer_id"],
                "person_id": made["persons"][0]["customer_id"],
                "account_id": account_id,
                "external_bank_account_id": made["external_bank_account"][
                    "external_bank_account_id"
                ],
                **await subscribed(partner, "/partner/reseller", endpoint.url()),
            },
            "customer": {
                "account_id": account_id,
                "transaction_id": sent["transaction_id"],
                **await subscribed(customer, "/customer", endpoint.url()),
            },
        }
        rules = wire | {
            "callback_url": endpoint.url(),
            "ownership_percentage": 10,
            "date_of_birth": "1980-04-01",
            "formation_date": "2015-04-01",
            "routing_number": "021000021",
            "email": "office@anvil-hardware.com",
            "per_wire_limit": 500,
            "daily_limit": 900.5,
            "approval_threshold": 250,
            "phone": "+12125550123",
            "phone_mobile": "+12125550124",
            "after": ids["customer"]["event_id"],
            "zip_code": "10001",
            "since": since,
            "until": until,
            "start_date": "2026-01-01",
            "end_date": "2026-01-31",
        }
        yield Generated(schema, Signing(partner_key, customer_key), ids, rules)


def tried_alone(made: Generated) -> list[str]:
    """Operations by method, deletions last: what is not accepted of each."""
    wrong: list[str] = []
    operations = [result.ok() for result in made.schema.get_all_operations()]
    with requests.Session() as session:
        for operation in sorted(operations, key=lambda found: found.method == "delete"):
            known = made.ids[operation.path.split("/")[1]]
            taken = {name: known[name] for name in known if f"{{{name}}}" in operation.path}

            @BOUNDED
            @given(operation.as_strategy(GenerationMode.POSITIVE, path_parameters=taken))
            def accepts(case: Case[Any]) -> None:
                case.body = made.keeping_rules(case.body)
                case.query = made.keeping_rules(case.query)
                response = made.send(case, session)
                is_gone = case.method == "DELETE" and response.status_code == 404
                if response.status_code not in ACCEPTED and not is_gone:
                    wrong.append(f"{case.operation.label} {response.status_code} {response.text}")

            accepts()
    return wrong


async def test_what_the_document_allows_is_accepted(live: Live) -> None:
    async with generated(live) as made:
        wrong = await asyncio.to_thread(tried_alone, made)
    assert not wrong, "\n".join(wrong)


def followed(made: Generated) -> set[int]:
    """Sequences of operations along the links, right and wrong values: the statuses of the answers."""
    statuses: set[int] = set()
    with requests.Session() as session:

        class Sequences(made.schema.as_state_machine()):  # type: ignore[misc]
            def call(self, case: Case[Any], **_: Any) -> Response:
                case.body = made.keeping_rules(case.body)
                return case.call(auth=made.signing, session=session)

            def validate_response(self, response: Any, case: Case[Any], *_: Any, **__: Any) -> None:
                statuses.add(response.status_code)
                case.validate_response(response, checks=CHECKS)

        for runs_left in reversed(range(RUNS)):
            try:
                Sequences.run(settings=settings(BOUNDED, max_examples=SCENARIOS))
                break
            except FlakyStrategyDefinition:
                if not runs_left:
                    raise
    return statuses


async def test_no_answer_is_one_that_the_document_does_not_have(live: Live) -> None:
    async with generated(live) as made:
        statuses = await asyncio.to_thread(followed, made)
    assert statuses >= {200, 404, 422}
