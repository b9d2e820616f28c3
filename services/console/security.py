"""What every answer carries and every request must satisfy, before any page: headers, host, origin, CSRF token.

- Host: a page elsewhere whose name was made to resolve to this address (DNS rebinding) is refused.
- Origin, Sec-Fetch-Site: a form of another site is refused, also with the session's cookie.
- CSRF token: HMAC of the cookie that the browser has, which scripts cannot read. A form that this console did not
  make for this session has none. Nothing is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from http import HTTPMethod
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

CSRF_FIELD = "csrf"
_FORM = "application/x-www-form-urlencoded"
_CHARSET = "utf-8"
FORM_SECONDS = 10.0
"""A form that has not arrived after this time is a 408."""
_CSRF_PURPOSE = b"bankside console form"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
STRICT_TRANSPORT = "max-age=31536000"
SAFE_METHODS = frozenset({HTTPMethod.GET, HTTPMethod.HEAD})


def headers(*, encrypted: bool) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """A signal for `on_response_prepare`: it reaches answers that are streamed, and errors, too."""

    async def add(_: web.Request, response: web.StreamResponse) -> None:
        for name, value in HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Cache-Control", "no-store")
        if encrypted:
            response.headers["Strict-Transport-Security"] = STRICT_TRANSPORT
        response.headers.popall("Server", None)

    return add


def same_origin_only(
    origins: frozenset[str],
) -> Middleware:
    """A middleware: requests for this host alone, and changes from its own pages alone.

    Args:
        origins: scheme, host and port under which browsers reach the console.
    """
    hosts = frozenset(urlsplit(origin).netloc for origin in origins)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.getall("Host", []) != [request.host] or request.host not in hosts:
            raise web.HTTPMisdirectedRequest(text="The console is not known by this host name.")
        if request.method not in SAFE_METHODS:
            origin = request.headers.get("Origin")
            site = request.headers.get("Sec-Fetch-Site")
            if origin not in origins or site not in (None, "same-origin"):
                raise web.HTTPForbidden(text="The form was not sent by a page of this console.")
        return await handler(request)

    return check


async def form_of(request: web.Request) -> dict[str, str]:
    """What a form sends, as forms of this console send it. Raises HTTPException for everything else."""
    # A form may come from any client: inflating a body, and some charsets, would cost seconds.
    if request.content_type != _FORM or "Content-Encoding" in request.headers:
        raise web.HTTPUnsupportedMediaType(text="This is not sent by a form of the console.")
    if (request.charset or _CHARSET).lower() != _CHARSET:
        raise web.HTTPBadRequest(text="The form cannot be read.")
    try:
        async with asyncio.timeout(FORM_SECONDS):
            form = await request.post()
    except (TimeoutError, ConnectionError):  # of the latter the browser is gone
        raise web.HTTPRequestTimeout(text="The form did not arrive in time.") from None
    except (ValueError, web.RequestPayloadError):  # bytes that are no text, or broken framing
        raise web.HTTPBadRequest(text="The form cannot be read.") from None
    return {name: text for name, text in form.items() if isinstance(text, str)}


def csrf_token(cookie: str) -> str:
    """The token of forms for the browser that has this cookie."""
    return hmac.new(cookie.encode(), _CSRF_PURPOSE, hashlib.sha256).hexdigest()


def is_csrf_token(candidate: object, cookie: str | None) -> bool:
    return (
        isinstance(candidate, str)
        and candidate.isascii()
        and cookie is not None
        and hmac.compare_digest(candidate, csrf_token(cookie))
    )
