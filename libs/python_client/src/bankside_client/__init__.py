"""Client of Bankside: signed calls, retries that repeat nothing, pages as iterators, verified webhooks.

with Client("http://127.0.0.1:8080", subscription_key, secret) as bankside:
    for wire in bankside.list_wires(state="completed"):
        print(wire.transaction_id, wire.amount)

The methods are the operations of the interface's document: `sendWire` is `send_wire`.
"""

from bankside_client.answers import Answer, AsyncPage, Page
from bankside_client.async_client import AsyncClient
from bankside_client.client import Client
from bankside_client.errors import (
    AuthenticationFailed,
    BanksideError,
    Conflict,
    InvalidRequest,
    NotFound,
    OutcomeUnknown,
    PermissionDenied,
    RateLimited,
    ServerError,
    Unavailable,
)
from bankside_client.events import Event, verify_webhook
from bankside_client.webhook_signature import WebhookSecretError, WebhookSignatureError

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncPage",
    "AuthenticationFailed",
    "BanksideError",
    "Client",
    "Conflict",
    "Event",
    "InvalidRequest",
    "NotFound",
    "OutcomeUnknown",
    "Page",
    "PermissionDenied",
    "RateLimited",
    "ServerError",
    "Unavailable",
    "WebhookSecretError",
    "WebhookSignatureError",
    "verify_webhook",
]
