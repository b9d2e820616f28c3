"""The cookies of the console: the session's token, a proof that it was good, a number for the log-in form, and a
message for the page that an action leads to.

All are HttpOnly and SameSite=Strict, end with the browser, and with TLS have the prefix `__Host-`, which binds them to
this host and to encrypted connections.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

from aiohttp import web
from yarl import URL

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_LONGEST_MESSAGE = 1000
_PROOF_PURPOSE = b"bankside console session"


@dataclass(frozen=True, slots=True)
class Cookies:
    """Reads and sets the console's cookies.

    Args:
        encrypted: browsers reach the console by TLS.
        secret: of the console; the same at each process of it, and after a restart.
    """

    encrypted: bool
    secret: bytes = field(repr=False)

    @property
    def session(self) -> str:
        return self._name("session")

    @property
    def proof(self) -> str:
        return self._name("proof")

    @property
    def visitor(self) -> str:
        """Binds the log-in form to the browser, which has no session yet."""
        return self._name("visitor")

    @property
    def message(self) -> str:
        return self._name("message")

    def token(self, request: web.Request) -> str | None:
        """The session's token. What no session can have is none."""
        value = request.cookies.get(self.session, "")
        return value if _TOKEN.fullmatch(value) else None

    def is_proven(self, request: web.Request, token: str) -> bool:
        """Whether the console has known this token to be good. The session may have ended since."""
        value = request.cookies.get(self.proof, "")
        return value.isascii() and hmac.compare_digest(value, self._proof_of(token))

    def visitor_of(self, request: web.Request) -> str | None:
        value = request.cookies.get(self.visitor, "")
        return value if _TOKEN.fullmatch(value) else None

    def begin(self, response: web.StreamResponse, token: str) -> None:
        self._set(response, self.session, token)
        self.prove(response, token)
        self._delete(response, self.visitor)

    def prove(self, response: web.StreamResponse, token: str) -> None:
        """Have the browser prove later that the token was good."""
        self._set(response, self.proof, self._proof_of(token))

    def end(self, response: web.StreamResponse) -> None:
        self._delete(response, self.session)
        self._delete(response, self.proof)
        self._delete(response, self.message)

    def welcome(self, response: web.StreamResponse, visitor: str) -> None:
        self._set(response, self.visitor, visitor)

    def say(self, response: web.StreamResponse, token: str, page: str, message: str) -> None:
        """Have a page show a message to this session, once.

        Args:
            page: its path, with the query that it needs.
        """
        text = f"{page}\n{message[:_LONGEST_MESSAGE]}"
        packed = base64.urlsafe_b64encode(text.encode()).decode()
        self._set(response, self.message, f"{packed}.{_signature(token, packed)}")

    def said(self, request: web.Request, token: str) -> str | None:
        """The message for this page; None when this session was given none for it."""
        packed, _, signature = request.cookies.get(self.message, "").partition(".")
        if not (packed.isascii() and signature.isascii()):
            return None
        if not hmac.compare_digest(signature, _signature(token, packed)):
            return None
        page, _, message = base64.urlsafe_b64decode(packed).decode().partition("\n")
        # The browser may write the same address with other percent-encodings.
        url = URL(page, encoded=True)
        is_here = (url.path, url.query) == (request.path, request.query)
        return message if is_here else None

    def forget_message(self, response: web.StreamResponse) -> None:
        self._delete(response, self.message)

    def _proof_of(self, token: str) -> str:
        # A key of its own: what the secret itself signs are requests.
        key = hmac.digest(self.secret, _PROOF_PURPOSE, "sha256")
        return hmac.new(key, token.encode(), hashlib.sha256).hexdigest()

    def _name(self, name: str) -> str:
        return f"__Host-bankside-{name}" if self.encrypted else f"bankside-{name}"

    def _set(self, response: web.StreamResponse, name: str, value: str) -> None:
        response.set_cookie(
            name, value, path="/", secure=self.encrypted, httponly=True, samesite="Strict"
        )

    def _delete(self, response: web.StreamResponse, name: str) -> None:
        response.del_cookie(name, path="/", secure=self.encrypted, httponly=True, samesite="Strict")


def new_visitor() -> str:
    return secrets.token_urlsafe(32)


def _signature(token: str, packed: str) -> str:
    # Of another purpose than those of earlier releases, which name no page: no release shows another's.
    return hmac.new(
        token.encode(), b"message of a page." + packed.encode(), hashlib.sha256
    ).hexdigest()
