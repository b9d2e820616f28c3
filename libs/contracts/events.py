"""The table of events: every type, who emits it, what its data looks like (interface §8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from uuid_utils import uuid7

from libs.contracts import (
    accounts,
    ach,
    customer_views,
    deposit_locations,
    statements,
    transactions,
    webhook_views,
    wires,
)
from libs.contracts.exact_json import encode
from libs.contracts.model import Model

API_VERSION = "0.1.0"


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of event. `emitter` is the only service that may record it."""

    name: str
    emitter: str
    data: type[Model]

    @property
    def kind(self) -> str:
        return self.name.partition(".")[0]


def _kind(kind: str, emitter: str, data: type[Model], *names: str) -> tuple[EventType, ...]:
    return tuple(EventType(f"{kind}.{name}", emitter, data) for name in names)


EVENT_TYPES: dict[str, EventType] = {
    event.name: event
    for event in (
        *_kind(
            "customer",
            "onboarding",
            customer_views.CustomerEventData,
            *("created", "updated", "approved", "denied", "pending_review", "documents_required"),
        ),
        *_kind("person", "onboarding", customer_views.PersonEventData, "created", "updated"),
        *_kind(
            "external_account",
            "onboarding",
            customer_views.ExternalAccountEventData,
            *("created", "primary_changed"),
        ),
        *_kind(
            "account",
            "ledger_read",
            accounts.AccountEventData,
            *("opened", "restricted", "unrestricted", "closed"),
        ),
        *_kind("transaction", "ledger_read", transactions.TransactionEventData, "created"),
        *_kind(
            "ach",
            "ledger_read",
            ach.AchEventData,
            *("created", "submitted", "settled", "returned"),
        ),
        *_kind("statement", "ledger_read", statements.StatementEventData, "available"),
        *_kind(
            "deposit_locations",
            "ledger_read",
            deposit_locations.DepositLocationsEventData,
            "updated",
        ),
        *_kind(
            "wire",
            "payments",
            wires.WireEventData,
            *("created", "approval_requested", "approved"),
            *("submitted", "completed", "rejected", "returned", "canceled"),
        ),
        *_kind(
            "webhook_subscription",
            "webhook_dispatcher",
            webhook_views.SubscriptionEventData,
            *("test", "unavailable"),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Event:
    """A fact about one resource of one tenant's customer, with the bytes that subscribers will receive.

    `customer_id` is empty for what is the partner's own.
    """

    event_id: str
    type: str
    tenant: str
    customer_id: str
    resource_id: str
    sequence: int
    body: bytes


def new_event(
    event_type: EventType,
    data: Model,
    *,
    tenant: str,
    customer_id: str,
    resource_id: str,
    sequence: int,
    at: datetime,
) -> Event:
    """Make the event and its body, once; from here on the body is bytes.

    Args:
        sequence: grows per resource; assigned under the lock of the resource's row.
    """
    if type(data) is not event_type.data:
        raise TypeError(f"{event_type.name} carries {event_type.data.__name__}")
    event_id = f"evt_{uuid7()}"
    envelope: Mapping[str, Any] = {
        "id": event_id,
        "type": event_type.name,
        "timestamp": at,
        "api_version": API_VERSION,
        "sequence": sequence,
        "data": data.model_dump(),
    }
    return Event(
        event_id, event_type.name, tenant, customer_id, resource_id, sequence, encode(envelope)
    )
