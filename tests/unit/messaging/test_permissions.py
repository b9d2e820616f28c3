"""The generated permissions say what the tables say, no more and no less."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deploy.rabbitmq.definitions import template
from libs.contracts.table import OPERATIONS, SERVICES
from libs.messaging.permissions import permissions_of
from libs.messaging.senders import PARTICIPANTS, may_emit, senders_of_commands
from libs.messaging.topology import EVENTS, EXCHANGES
from tests.security.messages import (
    EVERYBODY,
    INTERNAL_COMMANDS,
    QUEUES,
    addresses,
    may_send,
    queues_of,
    replies_of,
)

DEFINITIONS = Path(__file__).resolve().parents[3] / "deploy" / "rabbitmq" / "definitions.json"
NAMES = (*QUEUES, *map(replies_of, EVERYBODY), *EXCHANGES, "amq.default", "amq.topic", "x")


def matches(pattern: str, name: str) -> bool:
    """As RabbitMQ does it: anywhere in the name."""
    return re.search(pattern, name) is not None


@pytest.mark.parametrize("service", PARTICIPANTS)
def test_a_service_may_publish_what_the_tables_say(service: str) -> None:
    permissions = permissions_of(service)

    allowed = {
        address
        for address in addresses()
        if address.exchange
        and matches(permissions.write, address.exchange)
        and matches(permissions.topics[address.exchange].write, address.routing_key)
    }

    assert allowed == {address for address in addresses() if may_send(service, address)}


@pytest.mark.parametrize("service", PARTICIPANTS)
def test_a_service_may_declare_and_read_its_own_queues(service: str) -> None:
    permissions = permissions_of(service)
    asks = any(service in row.senders for row in OPERATIONS)
    own = {*queues_of(service), *([replies_of(service)] if asks else [])}

    assert {name for name in NAMES if matches(permissions.configure, name)} == own
    assert {name for name in NAMES if matches(permissions.read, name)} - {*EXCHANGES} == own
    assert {name for name in NAMES if matches(permissions.write, name)} - {*EXCHANGES} == own


@pytest.mark.parametrize("service", PARTICIPANTS)
def test_an_exchange_that_a_service_reaches_has_permissions_on_its_routing_keys(
    service: str,
) -> None:
    permissions = permissions_of(service)

    reached = {
        exchange
        for exchange in EXCHANGES
        if matches(permissions.write, exchange) or matches(permissions.read, exchange)
    }

    assert permissions.topics.keys() == reached


def test_every_operation_has_a_sender_and_what_services_start_for_themselves_has_none() -> None:
    assert all(row.senders for row in OPERATIONS)
    assert {one for row in OPERATIONS for one in row.senders} <= {*PARTICIPANTS}
    assert all(row.senders == ("gateway",) for row in OPERATIONS if row.path)
    assert not any(row.asked_by for row in OPERATIONS if row.path)
    for service in SERVICES:
        assert not {*INTERNAL_COMMANDS} & senders_of_commands(service).keys()


def test_an_event_of_a_later_release_is_taken_from_the_emitter_of_its_kind() -> None:
    assert may_emit("payments", "wire.held_back")
    assert not may_emit("onboarding", "wire.held_back")
    assert not may_emit("payments", "loan.opened")
    assert not may_emit(None, "wire.completed")
    assert not may_emit("webhook_dispatcher", "webhook_subscription.test")
    assert permissions_of("webhook_dispatcher").topics[EVENTS].write == "^$"


def test_the_document_that_containers_start_with_is_the_generated_one() -> None:
    assert json.loads(DEFINITIONS.read_text()) == json.loads(template()), (
        "run: python -m deploy.rabbitmq.definitions >deploy/rabbitmq/definitions.json"
    )
