"""The AsyncAPI document says what travels over the broker."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from openapi_schema_validator import OAS31Validator

from libs.contracts.customer_views import ExternalAccountEventData
from libs.contracts.events import EVENT_TYPES, new_event
from libs.contracts.exact_json import decode
from libs.contracts.table import OPERATIONS
from libs.specs.asyncapi import asyncapi_document


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def target(reference: str) -> Any:
    found: Any = asyncapi_document()
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def test_every_reference_leads_somewhere() -> None:
    found = set(references(asyncapi_document()))

    assert len(found) > 100
    for reference in found:
        assert target(reference)


def test_every_operation_is_received_and_every_event_sent() -> None:
    operations = asyncapi_document()["operations"]

    assert {n for n, o in operations.items() if o["action"] == "receive"} == {
        row.name for row in OPERATIONS
    }
    assert {n for n, o in operations.items() if o["action"] == "send"} == set(EVENT_TYPES)


def test_an_operations_message_is_in_the_queue_of_its_service() -> None:
    for row in OPERATIONS:
        channel = asyncapi_document()["operations"][row.name]["channel"]["$ref"]

        kind = "queries" if row.is_query else "commands"
        assert channel == f"#/channels/{row.service}.{kind}"
        assert row.name in target(channel)["messages"]


def test_events_of_the_dispatcher_do_not_travel_over_the_broker() -> None:
    document = asyncapi_document()

    own = {name for name in EVENT_TYPES if name.startswith("webhook_subscription.")}
    assert own
    assert set(document["channels"]["bankside.events"]["messages"]) == set(EVENT_TYPES) - own
    assert set(document["channels"]["deliveries"]["messages"]) == set(EVENT_TYPES)
    for name in own:
        assert document["operations"][name]["channel"]["$ref"] == "#/channels/deliveries"


def test_every_payload_is_a_schema() -> None:
    for message in asyncapi_document()["components"]["messages"].values():
        OAS31Validator.check_schema(message["payload"])


def test_what_is_sensitive_is_sealed_on_the_broker() -> None:
    schemas = asyncapi_document()["components"]["schemas"]
    sealed = {"type": "string", "description": "Sealed", "x-sensitive": True}

    assert schemas["Person"]["properties"]["tin"] == sealed
    assert schemas["Person"]["properties"]["date_of_birth"] == sealed
    assert schemas["Business"]["properties"]["ein"] == sealed
    assert schemas["ExternalAccount"]["properties"]["external_account_number"] == sealed
    assert schemas["SubscriptionSecret"]["properties"]["secret"] == sealed


def test_an_event_is_valid_by_its_schema() -> None:
    data = ExternalAccountEventData(
        external_account_id="ext_1",
        customer_id="c-1",
        bank_name="First Harbor Bank",
        name_on_account="Tidewater Goods LLC",
        routing_number="021000021",
        account_number="3210",
        primary=True,
    )
    event = new_event(
        EVENT_TYPES["external_account.created"],
        data,
        tenant="tenant",
        customer_id="c-1",
        resource_id="ext_1",
        sequence=1,
        at=datetime.now(UTC),
    )
    document = asyncapi_document()
    payload = document["components"]["messages"][event.type]["payload"]

    OAS31Validator({**payload, "components": document["components"]}).validate(decode(event.body))
