"""An event as a message of the broker: the body is the event's, its other fields are properties and headers."""

from __future__ import annotations

import re

from aiormq.abc import FieldValue

from libs import tracing
from libs.contracts.events import Event
from libs.messaging.envelope import VERSION
from libs.messaging.publishing import PERSISTENT, Properties
from libs.messaging.refusing import WRONG_SENDER
from libs.messaging.senders import EMITTING_SERVICES, is_of_another, may_emit

TEXT_LENGTH = 255
NOT_ITS_TO_EMIT = "its sender does not emit events of this kind"
GREATEST_SEQUENCE = 2**63 - 1

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_TYPE = re.compile(r"[a-z_]{1,64}\.[a-z_]{1,64}")


class NotAnEvent(ValueError):
    """The message is not an event of this version; the text says why, without quoting the message."""

    reason = "unreadable"


class ForgedEvent(NotAnEvent):
    """Its sender is not the service that emits events of this kind."""

    reason = WRONG_SENDER


class NewerEvent(NotAnEvent):
    """The `version` among the message's headers is above `VERSION`: only a later release understands it."""

    reason = "newer_version"


def encode_event(event: Event, trace: str | None) -> Properties:
    """The properties of the event's message.

    Args:
        trace: the span that sends it, as `libs.tracing` has it; None: no span does.
    """
    headers: dict[str, FieldValue] = {
        "tenant": event.tenant,
        "customer_id": event.customer_id,
        "resource_id": event.resource_id,
        "sequence": event.sequence,
    }
    if event.request_id is not None:
        headers["request_id"] = event.request_id
    if trace is not None:
        headers.update(tracing.headers_of(trace))
    return Properties(
        content_type="application/json",
        delivery_mode=PERSISTENT,
        message_id=event.event_id,
        message_type=event.type,
        headers=headers,
    )


def decode_event(properties: Properties, body: bytes) -> Event:
    """The event that `EventPublisher` published. Types and headers that this release does not know are accepted, since
    the emitter may be newer.

    Raises:
        NotAnEvent
    """
    headers = properties.headers or {}
    event_type = properties.message_type or ""
    is_type = _TYPE.fullmatch(event_type) is not None
    # The sender comes first: one that emits no such events tells nothing about later releases. Who emits a kind that
    # only a later release has is not known.
    sender = properties.user_id
    if sender not in EMITTING_SERVICES or (is_type and is_of_another(sender, event_type)):
        raise ForgedEvent(NOT_ITS_TO_EMIT)
    version = headers.get("version", 1)
    if type(version) is not int or version > VERSION:
        raise NewerEvent("its version is not known")
    if not is_type:
        raise NotAnEvent("its type is not one of an event")
    if not may_emit(sender, event_type):
        raise ForgedEvent(NOT_ITS_TO_EMIT)
    sequence = headers.get("sequence")
    if type(sequence) is not int or not 0 <= sequence <= GREATEST_SEQUENCE:
        raise NotAnEvent("its sequence is no number")
    if not body:
        raise NotAnEvent("it is empty")
    return Event(
        event_id=_text("message_id", properties.message_id),
        type=event_type,
        tenant=_text("tenant", headers.get("tenant")),
        customer_id=_text("customer_id", headers.get("customer_id"), may_be_empty=True),
        resource_id=_text("resource_id", headers.get("resource_id")),
        sequence=sequence,
        body=body,
        request_id=_request_id(headers.get("request_id")),
        trace=tracing.from_headers(headers.get("traceparent"), headers.get("tracestate")),
    )


def _request_id(value: object) -> str | None:
    """It proves nothing, so it is no reason to refuse an event."""
    return value if isinstance(value, str) and _REQUEST_ID.fullmatch(value) else None


def _text(name: str, value: object, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or len(value) > TEXT_LENGTH or "\0" in value:
        raise NotAnEvent(f"its {name} is not a text")
    if not value and not may_be_empty:
        raise NotAnEvent(f"its {name} is empty")
    return value
