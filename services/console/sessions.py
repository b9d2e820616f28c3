"""Sessions of operators: they are at the gateway, and the browser has the token.

What the gateway said of one is cached for seconds. That decides only what is shown: each request of the console names
the session, and the gateway looks at it again.

A token that was good is proven by a cookie beside it, and always looked up. Of other tokens a bounded number a minute
may turn out not to be good, by address and in all: else made-up tokens would use up the rates of the console's key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from cachetools import TTLCache

from libs.contracts.errors import SessionEnded
from libs.contracts.operating.sessions import GET_SESSION, GetSession, LogOut, SessionView
from libs.contracts.operating.sessions import LOG_OUT as END_SESSION
from libs.runtime.addresses import Network, address_of, counted_as
from libs.runtime.connections import CONNECTION
from services.console.attempts import Attempts
from services.console.cookies import Cookies
from services.console.gateway import Gateway
from services.console.security import CSRF_FIELD, SAFE_METHODS, form_of, is_csrf_token
from services.console.shares import Shares
from services.console.visits import VISIT, Visit

LOG_IN = "/login"
ENROL = "/login/enrol"
LOG_OUT = "/logout"
CSV = ".csv"
"""How the paths of exports end."""
NOT_DONE = "not_done"
"""In the query of the log-in: a form was sent without a session."""
OPEN = (LOG_IN, LOG_OUT, "/static/")
"""Where paths begin that need no session; those that change something check their forms themselves."""
CACHED = 1024
CACHED_SECONDS = 5.0
ENDED_SECONDS = 60.0
"""A token that is not good never becomes good."""
UNKNOWN_PER_MINUTE = 60
"""Tokens of one address that are not good and never were."""
UNKNOWN_IN_ALL = 100
"""In one process: a sixth of the smallest rate that they count against, which enrolments share with log-ins, so that
several consoles leave room for these.
"""
OF_ANOTHER_SESSION = "The form is not of this session: load the page again."
_EVERYWHERE = "everywhere"


class MustEnrol(Exception):
    """The operator has not yet set a password and enrolled an authenticator."""


class Sessions:
    """Looks up operators' sessions at the gateway, by the browser's token.

    Args:
        proxies: whose X-Forwarded-For is believed.
    """

    def __init__(self, gateway: Gateway, cookies: Cookies, proxies: Sequence[Network]) -> None:
        self._gateway = gateway
        self._cookies = cookies
        self._proxies = proxies
        self._known: TTLCache[bytes, SessionView] = TTLCache(CACHED, CACHED_SECONDS)
        self._ended: TTLCache[bytes, bool] = TTLCache(CACHED, ENDED_SECONDS)
        self._of_address = Attempts(UNKNOWN_PER_MINUTE)
        self._in_all = Attempts(UNKNOWN_IN_ALL)
        self._shares = Shares()

    @contextmanager
    def looking_up(self, request: web.Request, token: str) -> Iterator[None]:
        """Around a question to the gateway that names the browser's token.

        Raises:
            SessionEnded: the gateway has said so of this token.
            RateLimited: the token is not proven, and too many such were not good.
        """
        digest = _digest(token)
        if digest in self._ended:
            raise SessionEnded
        try:
            if self._cookies.is_proven(request, token):
                yield
                return
            address = counted_as(address_of(request, self._proxies))
            with self._of_address.attempt(address), self._in_all.attempt(_EVERYWHERE):
                yield
        except SessionEnded:
            self._ended[digest] = True
            raise

    async def visit(self, request: web.Request, token: str) -> Visit:
        """
        Raises:
            SessionEnded, RateLimited: as `looking_up`.
            MustEnrol: the session is good for the enrolment alone.
            BanksideError: as the gateway answered.
        """
        operators = self._gateway.of(token, address_of(request, self._proxies))
        digest = _digest(token)
        session = self._known.get(digest)
        if session is None:
            with self.looking_up(request, token):
                session = await operators.ask(GET_SESSION, GetSession(session=token))
            self._known[digest] = session
        if session.enrolment_needed:
            raise MustEnrol
        own_share = self._shares.of(session.name, operators)
        return Visit(session.name, session.role, token, own_share)

    async def end(self, request: web.Request, token: str) -> None:
        """End the session of the browser's token. It is not of the operator's share, which may be used up.

        Raises:
            SessionEnded, RateLimited, BanksideError: as `visit`. The session may go on at the gateway, unless it had
                ended.
        """
        try:
            # An unknown token is looked up first, which is bounded: a log-out of no session would succeed.
            with suppress(MustEnrol):
                await self.visit(request, token)
        finally:
            self.forget(token)
        operators = self._gateway.of(token, address_of(request, self._proxies))
        await operators.ask(END_SESSION, LogOut(session=token))

    def forget(self, token: str) -> None:
        self._known.pop(_digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def logged_in(sessions: Sessions, cookies: Cookies) -> Middleware:
    """A middleware: pages are for operators with a session, and changes for forms that were made for it."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith(OPEN):
            return await handler(request)
        token = cookies.token(request)
        if token is None:
            # Cookies of SameSite=Strict do not come with a link from another site: there may be a session.
            return to_log_in(request)
        try:
            request[VISIT] = await sessions.visit(request, token)
            if request.method not in SAFE_METHODS:
                form = await form_of(request)
                if not is_csrf_token(form.get(CSRF_FIELD), token):
                    raise web.HTTPForbidden(text=OF_ANOTHER_SESSION)
            # Once the form is there: a body that never ends must not hold its connection for ever.
            if (connection := request.get(CONNECTION)) is not None:
                connection.authenticated()
            response = await handler(request)
            is_page = request.method in SAFE_METHODS and not response.prepared
            if is_page and not cookies.is_proven(request, token):
                # The session began before a new secret, or before there were proofs.
                cookies.prove(response, token)
            return response
        except MustEnrol:
            return see_other(ENROL)
        except SessionEnded:
            sessions.forget(token)
            if request.writer.output_size:  # a second answer would stand in the middle of the first
                raise
            response = to_log_in(request)
            cookies.end(response)
            return response

    return check


def to_log_in(request: web.Request) -> web.Response:
    """The way back to this page leads over the log-in, which says of a form that nothing was done."""
    if "HX-Request" in request.headers:
        return web.Response(status=204, headers={"HX-Redirect": LOG_IN})
    query = {} if request.path == "/" else {"next": own_path(request.path_qs)}
    if request.method not in SAFE_METHODS:
        query[NOT_DONE] = "yes"
    return see_other(f"{LOG_IN}?{urlencode(query)}" if query else LOG_IN)


def see_other(path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": path})


def own_path(candidate: str) -> str:
    """A page of this console to go on at: of a CSV export its list, since a log-in that leads to a download leaves its
    own page standing. `/` for everything else, such as another site's address.
    """
    is_own = candidate.startswith("/") and not candidate.startswith(("//", "/\\", LOG_IN))
    if not (is_own and candidate.isprintable() and "\\" not in candidate):
        return "/"
    path, mark, query = candidate.partition("?")
    return f"{path.removesuffix(CSV)}{mark}{query}"
