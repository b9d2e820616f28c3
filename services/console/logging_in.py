"""Log-in with name, password and code.

The first one, with a one-time password, sets a password of the operator's own and enrols an authenticator.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus

import segno
from aiohttp import web
from markupsafe import Markup

from libs.contracts.errors import BanksideError, Invalid, LoginRefused, RateLimited, SessionEnded
from libs.contracts.operating import sessions as s
from libs.runtime.addresses import Network, address_of, counted_as
from libs.runtime.routes import Routes
from services.console.attempts import Attempts
from services.console.cookies import Cookies, new_visitor
from services.console.failures import sentence, wrong_values
from services.console.forms import WrongValues, command_of
from services.console.gateway import Gateway, OperatorApi
from services.console.rendering import Renderer
from services.console.security import CSRF_FIELD, csrf_token, form_of, is_csrf_token
from services.console.sessions import (
    ENROL,
    LOG_IN,
    LOG_OUT,
    NOT_DONE,
    OF_ANOTHER_SESSION,
    Sessions,
    own_path,
    see_other,
)

CONFIRM = "/login/confirm"
FAILURES_PER_MINUTE = 60
"""Of log-ins and enrolments from one address, beyond which the gateway is not asked. It locks names and addresses
before.
"""
_URI = "otpauth://totp/"
_LONGEST_URI = 500
"""Of an authenticator; a QR code has place for four bytes of each character."""
_ENDS_BY_ITSELF = "The gateway ends the session by itself when its idle time is over."
_ENDED = (
    "Your session ended, and nothing was done now. If the form was sent before, look first at what came of that: after"
    " the log-in it is shown anew."
)
_OF_ANOTHER_PAGE = "The form is not of this page any more: try again."


class LoggingIn:
    """The pages of log-in, enrolment and log-out.

    Args:
        proxies: whose X-Forwarded-For is believed.
    """

    def __init__(
        self,
        gateway: Gateway,
        sessions: Sessions,
        renderer: Renderer,
        cookies: Cookies,
        proxies: Sequence[Network],
    ) -> None:
        self._gateway = gateway
        self._sessions = sessions
        self._renderer = renderer
        self._cookies = cookies
        self._proxies = proxies
        self._attempts = Attempts(FAILURES_PER_MINUTE)

    def add(self, routes: Routes) -> None:
        routes.add_get(LOG_IN, self._form)
        routes.add_post(LOG_IN, self._log_in)
        routes.add_get(ENROL, self._password_form)
        routes.add_post(ENROL, self._enrol)
        routes.add_post(CONFIRM, self._confirm)
        routes.add_post(LOG_OUT, self._log_out)

    async def _form(self, request: web.Request) -> web.Response:
        return self._login_page(
            request,
            next_path=own_path(request.query.get("next", "/")),
            failure=_ENDED if NOT_DONE in request.query else None,
        )

    def _login_page(
        self,
        request: web.Request,
        *,
        next_path: str,
        name: str = "",
        failure: str | None = None,
        status: int = HTTPStatus.OK,
    ) -> web.Response:
        visitor = self._cookies.visitor_of(request) or new_visitor()
        response = self._renderer.page(
            request,
            "login.html",
            status=status,
            csrf=csrf_token(visitor),
            next=next_path,
            name=name,
            failure=failure,
        )
        self._cookies.welcome(response, visitor)
        return response

    async def _log_in(self, request: web.Request) -> web.Response:
        form = await form_of(request)
        name, next_path = form.get("name", ""), own_path(form.get("next", "/"))
        if not is_csrf_token(form.get(CSRF_FIELD), self._cookies.visitor_of(request)):
            return self._login_page(
                request, next_path=next_path, name=name, failure=_OF_ANOTHER_PAGE, status=403
            )
        address = address_of(request, self._proxies)
        try:
            # As it was typed: `command_of` would cut spaces off the password.
            command = s.LogIn.model_validate(
                {
                    "name": name.strip(),
                    "password": form.get("password", ""),
                    "code": form.get("code", "").strip() or None,
                    "address": address or None,
                }
            )
            with self._attempts.attempt(counted_as(address)):
                begun = await self._gateway.of(None).ask(s.LOG_IN, command)
        except (ValueError, LoginRefused, Invalid):
            status, failure = HTTPStatus.UNAUTHORIZED, LoginRefused("").detail
        except RateLimited as error:
            status, failure = HTTPStatus.TOO_MANY_REQUESTS, _locked(error)
        except BanksideError as error:
            status, failure = HTTPStatus.BAD_GATEWAY, sentence(error)
        else:
            response = see_other(ENROL if begun.enrolment_needed else next_path)
            self._cookies.begin(response, begun.token)
            return response
        return self._login_page(
            request, next_path=next_path, name=name, failure=failure, status=status
        )

    async def _password_form(self, request: web.Request) -> web.Response:
        return self._enrolment(request)

    def _enrolment(
        self,
        request: web.Request,
        *,
        uri: str | None = None,
        failure: str | None = None,
        status: int = HTTPStatus.OK,
    ) -> web.Response:
        """The form for the password; with `uri`, which is the authenticator's, that for its first code."""
        token = self._cookies.token(request)
        if token is None:
            return see_other(LOG_IN)
        return self._renderer.page(
            request,
            "enrol.html",
            status=status,
            csrf=csrf_token(token),
            uri=uri,
            code=_qr(uri) if uri else None,
            failure=failure,
            shortest=s.SHORTEST_PASSWORD,
            longest=s.LONGEST_PASSWORD,
        )

    async def _enrol(self, request: web.Request) -> web.Response:
        form = await form_of(request)
        token = self._cookies.token(request)
        if token is None or not is_csrf_token(form.get(CSRF_FIELD), token):
            return self._enrolment(request, failure=_OF_ANOTHER_PAGE, status=403)
        password = form.get("password", "")
        if password != form.get("again"):
            return self._enrolment(request, failure="The two passwords differ.", status=422)
        if not s.SHORTEST_PASSWORD <= len(password) <= s.LONGEST_PASSWORD:
            failure = f"The password has {s.SHORTEST_PASSWORD} to {s.LONGEST_PASSWORD} characters."
            return self._enrolment(request, failure=failure, status=422)
        try:
            with self._enrolling(request, token):
                answer = await self._of(request, token).ask(
                    s.ENROL, s.Enrol(session=token, password=password)
                )
        except SessionEnded:
            return self._ended()
        except Invalid as invalid:
            failure = str(wrong_values(s.Enrol, invalid))
            return self._enrolment(request, failure=failure, status=invalid.status)
        except BanksideError as error:
            return self._enrolment(request, failure=sentence(error), status=error.status)
        return self._enrolment(request, uri=answer.otpauth_uri)

    async def _confirm(self, request: web.Request) -> web.Response:
        form = await form_of(request)
        token, uri = self._cookies.token(request), form.get("uri", "")
        is_ours = is_csrf_token(form.get(CSRF_FIELD), token)
        is_uri = uri.startswith(_URI) and len(uri) <= _LONGEST_URI
        if token is None or not is_ours or not is_uri:
            return self._enrolment(request, failure=_OF_ANOTHER_PAGE, status=403)
        try:
            command = command_of(
                s.ConfirmEnrolment, {"session": token, "code": form.get("code", "")}
            )
            with self._enrolling(request, token):
                begun = await self._of(request, token).ask(s.CONFIRM_ENROLMENT, command)
        except (WrongValues, LoginRefused):
            failure = "The code is not right: take the one that the authenticator shows now."
            return self._enrolment(request, uri=uri, failure=failure, status=422)
        except SessionEnded:
            return self._ended()
        except BanksideError as error:
            said = sentence(error)
            return self._enrolment(request, uri=uri, failure=said, status=error.status)
        response = see_other("/")
        self._cookies.begin(response, begun.token)
        return response

    @contextmanager
    def _enrolling(self, request: web.Request, token: str) -> Iterator[None]:
        """As `looking_up`. Failures count as those of log-ins do: they share a rate at the gateway, of which a session
        that is not for enrolment must not take more.
        """
        address = counted_as(address_of(request, self._proxies))
        with self._attempts.attempt(address), self._sessions.looking_up(request, token):
            yield

    def _of(self, request: web.Request, token: str) -> OperatorApi:
        return self._gateway.of(token, address_of(request, self._proxies))

    async def _log_out(self, request: web.Request) -> web.Response:
        """The browser forgets its token also where the gateway cannot be asked."""
        form = await form_of(request)
        token = self._cookies.token(request)
        if token is None:
            return see_other(LOG_IN)
        if not is_csrf_token(form.get(CSRF_FIELD), token):
            raise web.HTTPForbidden(text=OF_ANOTHER_SESSION)
        try:
            await self._sessions.end(request, token)
        except SessionEnded:
            return self._ended()
        except BanksideError as error:
            failure = f"You are logged out in this browser. {sentence(error)} {_ENDS_BY_ITSELF}"
            response = self._login_page(
                request, next_path="/", failure=failure, status=error.status
            )
            self._cookies.end(response)
            return response
        return self._ended()

    def _ended(self) -> web.Response:
        response = see_other(LOG_IN)
        self._cookies.end(response)
        return response


def _locked(error: RateLimited) -> str:
    seconds = error.headers.get("Retry-After", "")
    if not (seconds.isascii() and seconds.isdigit()):
        return "Too many attempts: try again later."
    minutes = -(-int(seconds) // 60)
    wait = f"{seconds} s" if int(seconds) < 120 else f"{minutes} minutes"
    return f"Too many attempts: try again in {wait}."


def _qr(uri: str) -> Markup:
    """The QR code as an `svg` element without styles: black squares, and nothing of the text."""
    out = io.BytesIO()
    segno.make(uri, error="m").save(
        out, kind="svg", xmldecl=False, svgns=True, omitsize=True, svgclass="code", lineclass=None
    )
    return Markup(out.getvalue().decode())  # noqa: S704 - made of numbers alone
