"""Pages of other sites, in a browser on this machine, do not get to the endpoints for tests.

Those want no token. A page may send them requests all the same: simple ones from its own origin, and any after its name
was made to resolve to this machine.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from services.provider_sandbox.operations import Refusal

JSON = "application/json"


def for_programs(handler: Handler, public_url: str) -> Handler:
    """The handler, behind checks of `Origin`, `Host` and `Content-Type`.

    Args:
        public_url: its host is a name of ours, beside addresses and names without a dot.
    """
    own_name = urlsplit(public_url).hostname

    async def handle(request: web.Request) -> web.StreamResponse:
        origin = request.headers.get("Origin")
        if origin is not None and origin.partition("://")[2] != request.host:
            raise Refusal(403, "foreign_origin", "Pages of other sites are not served.")
        if not _is_ours(request.host, own_name):
            raise Refusal(403, "foreign_host", "The sandbox has no such name.")
        if request.body_exists and request.content_type != JSON:
            raise Refusal(415, "unsupported_media_type", f"Send the body as {JSON}.")
        return await handler(request)

    return handle


def _is_ours(host: str, own_name: str | None) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    if name is None:
        return False
    if name == own_name or "." not in name.rstrip("."):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
