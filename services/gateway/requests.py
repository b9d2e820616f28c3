"""Reading what a request is, within bounds, before anything is believed of it."""

from __future__ import annotations

import re
from uuid import NAMESPACE_URL, UUID, uuid5

from aiohttp import web
from uuid_utils import uuid7

from libs.contracts.errors import (
    BodyTooLarge,
    ErrorDetail,
    MalformedJson,
    UnsupportedMediaType,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal

MAX_BODY_BYTES = 256 * 1024

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_IDEMPOTENCY_KEY = re.compile(r"[\x20-\x7e]{1,255}")
_JSON_TYPE = re.compile(r"application/json\s*(;[^,]*)?", re.IGNORECASE | re.ASCII)
"""RFC 9110, 8.3.1: a media type may have parameters. Those that JSON does not know say nothing."""
_OTHER_CHARSET = re.compile(r';\s*charset\s*=(?!\s*"?utf-?8"?\s*(;|$))', re.IGNORECASE | re.ASCII)


def request_id_of(request: web.Request) -> str:
    """The caller's X-Request-Id when it is one, else a new one."""
    sent = request.headers.get("X-Request-Id", "")
    return sent if _REQUEST_ID.fullmatch(sent) else str(uuid7())


def check_announced_size(request: web.Request) -> None:
    """Raises BodyTooLarge."""
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise BodyTooLarge


def check_media_type(operation: Operation, request: web.Request, body: bytes) -> None:
    """Raises UnsupportedMediaType, or MalformedJson for a body where there is none to send."""
    if any(request.headers.getall("Content-Encoding", ())) and (body or operation.takes_body):
        raise UnsupportedMediaType("Send the body uncompressed, without Content-Encoding.")
    media_type = request.headers.get("Content-Type", "").strip()
    is_json = _JSON_TYPE.fullmatch(media_type) and not _OTHER_CHARSET.search(media_type)
    if (operation.takes_body or body) and not is_json:
        sent = f"this one is {media_type[:80]!a}" if media_type else "it has none"
        raise UnsupportedMediaType(
            f"The body needs the header `Content-Type: application/json`; {sent}."
        )
    if operation.is_read and body:
        raise MalformedJson("This operation takes no body.")


def idempotency_key_of(
    operation: Operation, request: web.Request
) -> tuple[str | None, list[ErrorDetail]]:
    """The Idempotency-Key of a command, and what is wrong with it."""
    if not operation.takes_idempotency_key:
        return None, []
    sent = request.headers.getall("Idempotency-Key", ())
    if not sent:
        return None, []
    if len(sent) == 1 and _IDEMPOTENCY_KEY.fullmatch(sent[0]):
        return sent[0], []
    message = "one Idempotency-Key of 1 to 255 printable ASCII characters"
    return None, [{"loc": ["header", "Idempotency-Key"], "msg": message, "type": "value_error"}]


def pending_without_key(operation: Operation) -> str:
    """The detail of a pending write that had no Idempotency-Key, so that sending it again would be another request."""
    named = "" if operation.pending_id is None else f" by its `{operation.pending_id}`"
    return (
        "The request was accepted and is not finished. It had no Idempotency-Key: do not send it again, and look up"
        f" what became of it{named}."
    )


def command_id_of(principal: Principal, request: web.Request, idempotency_key: str | None) -> UUID:
    """The command's id: the same for every request with this key on this path by this tenant and customer.

    Spellings of one path that lead to the same operation, such as `%77ire` for `wire`, an absolute URL, or an id in
    capitals, are one path.
    """
    if idempotency_key is None:
        return UUID(bytes=uuid7().bytes)
    path = request.path.lower()
    scope = (principal.tenant, principal.customer_id or "", request.method, path, idempotency_key)
    return uuid5(NAMESPACE_URL, "\n".join(scope))
