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
from libs.contracts import fields as f
from libs.contracts.exact_json import encode
from libs.contracts.model import Model

API_VERSION = "0.1.0"


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of event. `emitter` is the only service that may record it; `description` says when it does."""

    name: str
    emitter: str
    data: type[Model]
    description: str

    @property
    def kind(self) -> str:
        return self.name.partition(".")[0]


def _kind(
    kind: str, emitter: str, data: type[Model], names: Mapping[str, str]
) -> tuple[EventType, ...]:
    """`names`: what happened, with the sentence that says when."""
    return tuple(
        EventType(f"{kind}.{name}", emitter, data, description)
        for name, description in names.items()
    )


EVENT_TYPES: dict[str, EventType] = {
    event.name: event
    for event in (
        *_kind(
            "customer",
            "onboarding",
            customer_views.CustomerEventData,
            {
                "created": "A partner has onboarded a business; its verification may go on.",
                "updated": "A business was changed, or its application was canceled.",
                "approved": "The business is approved: its account is opened and its external bank account linked.",
                "denied": "Verification has denied the business: it gets no account, and keeps one that it has.",
                "pending_review": "A person at the identity provider is looking at the business.",
                "documents_required": "Verification needs documents or corrections: `issues` says which.",
            },
        ),
        *_kind(
            "person",
            "onboarding",
            customer_views.PersonEventData,
            {
                "created": "A person of a business was recorded; `person.updated` tells its verdict.",
                "updated": "A person's data or status was changed.",
            },
        ),
        *_kind(
            "external_account",
            "onboarding",
            customer_views.ExternalAccountEventData,
            {
                "created": "An external bank account was linked.",
                "primary_changed": "The external bank account has become the primary one of its business. Its"
                " others are not primary from then, without an event of their own.",
            },
        ),
        *_kind(
            "account",
            "ledger_read",
            accounts.AccountEventData,
            {
                "opened": "An account was opened: it can be paid into and from.",
                "restricted": "The bank has restricted an account: no wire can be sent from it.",
                "unrestricted": "The bank has lifted the restriction of an account.",
                "closed": "An account was closed.",
            },
        ),
        *_kind(
            "transaction",
            "ledger_read",
            transactions.TransactionEventData,
            {"created": "A transaction was posted to an account."},
        ),
        *_kind(
            "ach",
            "ledger_read",
            ach.AchEventData,
            {
                "created": "An ACH request was made at the bank.",
                "submitted": "An ACH request was submitted to the ACH network.",
                "settled": "An ACH request has settled.",
                "returned": "An ACH request was returned: `return_code` says why.",
            },
        ),
        *_kind(
            "statement",
            "ledger_read",
            statements.StatementEventData,
            {"available": "A statement was made; the list of statements has its download URL."},
        ),
        *_kind(
            "deposit_locations",
            "ledger_read",
            deposit_locations.DepositLocationsEventData,
            {"updated": "A new load says which program banks hold an account's swept deposits."},
        ),
        *_kind(
            "wire",
            "payments",
            wires.WireEventData,
            {
                "created": "A wire was asked for and recorded.",
                "approval_requested": "A wire waits for the approval of another key.",
                "approved": "Another key has approved a wire: it is being sent.",
                "submitted": "The bank has accepted a wire; its amount is held.",
                "completed": "A wire has reached the receiving bank; its amount is debited.",
                "rejected": "A wire was refused: no money has moved, and what was held is released.",
                "returned": "A completed wire was sent back; a transaction credits its amount.",
                "canceled": "A wire was canceled, declined or not approved in time; nothing was sent.",
            },
        ),
        *_kind(
            "webhook_subscription",
            "webhook_dispatcher",
            webhook_views.SubscriptionEventData,
            {
                "test": "A test was asked for; it is delivered to that subscription alone.",
                "unavailable": "The endpoint of a subscription was given up: its deliveries are held. Make the"
                " subscription active, then `recover` them.",
            },
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Event:
    """A fact about one resource of one tenant's customer, with the bytes that subscribers will receive.

    `customer_id` is empty for what is the partner's own. `request_id` is of the request that caused it, and `trace` the
    span (`libs.tracing`): None where that is not known.
    """

    event_id: str
    type: str
    tenant: str
    customer_id: str
    resource_id: str
    sequence: int
    body: bytes
    request_id: str | None = None
    trace: str | None = None


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
        at: when it happened, where a bank tells that, else now.
    """
    if type(data) is not event_type.data:
        raise TypeError(f"{event_type.name} carries {event_type.data.__name__}")
    event_id = f"evt_{uuid7()}"
    envelope: Mapping[str, Any] = {
        "id": event_id,
        "type": event_type.name,
        "timestamp": f.utc_text(f.in_utc(at)),
        "api_version": API_VERSION,
        "sequence": sequence,
        "data": data.model_dump(),
    }
    return Event(
        event_id, event_type.name, tenant, customer_id, resource_id, sequence, encode(envelope)
    )
