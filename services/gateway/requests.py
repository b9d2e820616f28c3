"""Reading what a request is, within bounds, before anything is believed of it."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache
from uuid import NAMESPACE_URL, UUID, uuid5

from aiohttp import web
from uuid_utils import uuid7

from libs.contracts.errors import (
    BodyTooLarge,
    ErrorDetail,
    MalformedJson,
    RequestTimeout,
    UnsupportedMediaType,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal

MAX_BODY_BYTES = 256 * 1024
ADDRESSES_KEPT = 4096

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_IDEMPOTENCY_KEY = re.compile(r"[\x20-\x7e]{1,255}")
_JSON_TYPE = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def request_id_of(request: web.Request) -> str:
    """The caller's X-Request-Id when it is one, else a new one."""
    sent = request.headers.get("X-Request-Id", "")
    return sent if _REQUEST_ID.fullmatch(sent) else str(uuid7())


def address_of(request: web.Request, trusted: Sequence[Network]) -> str:
    """Where the request came from: the last hop that is not a trusted proxy."""
    address = _address(request.remote or "")
    # A proxy may add a header of its own behind one that the caller made up.
    forwarded = ",".join(request.headers.getall("X-Forwarded-For", ()))
    hops = [_address(hop.strip()) for hop in forwarded.split(",")]
    while address and hops and any(address in network for network in trusted):
        hop = hops.pop()
        if hop is None:
            break
        address = hop
    return str(address or request.remote or "")


@lru_cache(maxsize=ADDRESSES_KEPT)  # parsing one takes 2 µs, and callers come again
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address, an IPv4 one also where it is written as IPv6; None when it is none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


async def read_body(request: web.Request, seconds: float) -> bytes:
    """The whole body.

    Raises:
        BodyTooLarge: more than 256 KiB, as announced or as sent.
        RequestTimeout: not there in time.
    """
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise BodyTooLarge
    if not request.body_exists:
        return b""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            while chunk := await request.content.readany():
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    raise BodyTooLarge
                chunks.append(chunk)
    except TimeoutError:
        raise RequestTimeout from None
    return b"".join(chunks)


def check_media_type(operation: Operation, request: web.Request, body: bytes) -> None:
    """Raises UnsupportedMediaType, or MalformedJson for a body where there is none to send."""
    if request.headers.get("Content-Encoding") and (body or operation.takes_body):
        raise UnsupportedMediaType("A body with a Content-Encoding is not taken.")
    media_type = request.headers.get("Content-Type", "").strip()
    if (operation.takes_body or body) and not _JSON_TYPE.fullmatch(media_type):
        raise UnsupportedMediaType
    if operation.is_query and body:
        raise MalformedJson("This operation takes no body.")


def idempotency_key_of(
    operation: Operation, request: web.Request
) -> tuple[str | None, list[ErrorDetail]]:
    """The Idempotency-Key of a command, and what is wrong with it."""
    if operation.is_query:
        return None, []
    sent = request.headers.getall("Idempotency-Key", ())
    if not sent:
        return None, []
    if len(sent) == 1 and _IDEMPOTENCY_KEY.fullmatch(sent[0]):
        return sent[0], []
    message = "Value error, one Idempotency-Key of 1 to 255 printable ASCII characters"
    return None, [{"loc": ["header", "Idempotency-Key"], "msg": message, "type": "value_error"}]


def command_id_of(principal: Principal, request: web.Request, idempotency_key: str | None) -> UUID:
    """The command's id: the same for every request with this key on this path by this tenant and customer."""
    if idempotency_key is None:
        return UUID(bytes=uuid7().bytes)
    path = request.raw_path.partition("?")[0]
    scope = (principal.tenant, principal.customer_id or "", request.method, path, idempotency_key)
    return uuid5(NAMESPACE_URL, "\n".join(scope))
