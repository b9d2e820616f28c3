"""Events, as webhooks deliver them and as they are listed; `verify_webhook` tells a genuine delivery."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from bankside_client.exact_json import decode, read
from bankside_client.models import EVENT_DATA, EventData
from bankside_client.webhook_signature import WebhookSignatureError, key_of, verify

TOLERANCE_SECONDS = 300
_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")
_PARSED = (
    "body is the bytes as they came, not what was parsed of them"
    " (Express: express.raw(); Flask: request.get_data())"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to a resource.

    Args:
        id: the same at every delivery: drop an event whose id was seen.
        sequence: grows per resource: drop an event that is older than what is known of its resource.
        data: the resource as it was then; a dict for a type that this client does not know.
    """

    id: str
    type: str
    timestamp: datetime
    api_version: str
    sequence: int
    data: EventData | dict[str, Any]

    def __post_init__(self) -> None:
        kind = EVENT_DATA.get(self.type)
        if kind is not None and isinstance(self.data, dict):
            object.__setattr__(self, "data", read(kind, self.data))


class Headers(Protocol):
    """Of a request, as web frameworks have them: those of Flask are no `Mapping`."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(
    body: bytes,
    headers: Headers,
    secret: str | Sequence[str],
    *,
    tolerance_seconds: int = TOLERANCE_SECONDS,
) -> Event:
    """The event of a genuine delivery.

    Args:
        body: as it came, byte for byte: not parsed and encoded again.
        headers: of the request; upper and lower case are the same.
        secret: `whsec_…` of the subscription; several where subscriptions share an endpoint.

    Raises:
        WebhookSignatureError: it is not signed with the secret, or too long ago. Answer 400.
        WebhookSecretError: a secret does not have its form.
        TypeError: the body is not bytes, or a secret is None.
    """
    secrets = [secret] if secret is None or isinstance(secret, str) else list(secret)
    if not isinstance(body, bytes | bytearray):
        raise TypeError(_PARSED)
    if None in secrets:
        raise TypeError("a secret is missing")
    by_name = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in _HEADERS if name not in by_name]
    if missing:
        raise WebhookSignatureError(f"{missing[0]} is missing")
    message_id, timestamp, signatures = (by_name[name] for name in _HEADERS)
    refusal = WebhookSignatureError("there is no secret to verify with")
    for key in [key_of(item) for item in secrets]:
        try:
            verify(
                key,
                message_id=message_id,
                timestamp=timestamp,
                signatures=signatures,
                body=body,
                now=time.time(),
                tolerance_seconds=tolerance_seconds,
            )
        except WebhookSignatureError as error:
            refusal = error
        else:
            event: Event = read(Event, decode(body))
            return event
    raise refusal
