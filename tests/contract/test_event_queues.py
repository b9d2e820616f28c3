"""The AsyncAPI document of `/asyncapi.json` says what a consumer of events receives, and nothing of the services."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from openapi_schema_validator import OAS31Validator

from deploy.rabbitmq.event_consumer import GREATEST_BYTES, GREATEST_EVENTS
from libs.contracts.events import EVENT_TYPES
from libs.contracts.exact_json import encode
from libs.specs.event_queues import event_queues_document


@cache
def document() -> dict[str, Any]:
    encoded: dict[str, Any] = json.loads(encode(event_queues_document()))
    return encoded


def test_every_event_that_travels_over_the_broker_is_there_and_nothing_else() -> None:
    travels = {name for name in EVENT_TYPES if not name.startswith("webhook_subscription.")}

    assert {*document()["components"]["messages"]} == travels
    (receives,) = document()["operations"].values()
    assert receives["action"] == "receive"
    assert len(receives["messages"]) == len(travels)


def test_every_example_is_an_event_of_its_type() -> None:
    for name, message in document()["components"]["messages"].items():
        (example,) = message["examples"]
        for part in ("headers", "payload"):
            schema = {**message[part], "components": document()["components"]}
            OAS31Validator.check_schema(schema)
            OAS31Validator(schema).validate(example[part])
        assert example["payload"]["type"] == name == message["bindings"]["amqp"]["messageType"]


def test_every_reference_leads_somewhere_and_no_schema_is_left_over() -> None:
    named: set[str] = set()

    def follow(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                follow(item)
        elif isinstance(value, dict):
            if isinstance(reference := value.get("$ref"), str):
                named.add(reference)
                found: Any = document()
                for step in reference.removeprefix("#/").split("/"):
                    found = found[step]
            for item in value.values():
                follow(item)

    follow(document())
    schemas = {name.rpartition("/")[2] for name in named if "/schemas/" in name}
    assert schemas == {*document()["components"]["schemas"]}
    assert "Envelope" not in schemas


def test_the_bound_of_a_queue_is_the_one_that_operators_give_it() -> None:
    described = " ".join(document()["info"]["description"].split())

    assert f"{GREATEST_EVENTS:,} events or {GREATEST_BYTES // 2**20} MiB" in described
