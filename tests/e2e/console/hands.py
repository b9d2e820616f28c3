"""Operators at the console, each with a browser of its own."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pyotp
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
)

from deploy.console import logging_in
from deploy.local.ports import LOOPBACK
from libs.contracts.principal import Role
from tests.support.pace import pace
from tests.support.stack import Stack

PAGE_SECONDS = 15.0
"""For a page to show what is waited for, on a quiet machine."""
STEP_SECONDS = 30
"""Of a TOTP code."""
TELEPHONE: ViewportSize = {"width": 360, "height": 740}
DESK: ViewportSize = {"width": 1280, "height": 800}


@dataclass
class Seat:
    """One operator, logged in.

    Args:
        wrong: what no page may do: a dialog, an error of a script, a break of the content security policy, a request to
            another host.
    """

    url: str
    context: BrowserContext
    page: Page
    name: str
    password: str
    totp: pyotp.TOTP | None = None
    wrong: list[str] = field(default_factory=list)

    async def opened(self, path: str) -> int:
        """Go to a page; the status of the answer."""
        response = await self.page.goto(f"{self.url}{path}")
        assert response is not None
        return response.status

    async def text(self, selector: str = "main") -> str:
        return await self.page.locator(selector).inner_text()

    async def fact(self, name: str) -> str:
        """The value beside a name in the facts of an item."""
        term = self.page.locator("dl.facts > div").filter(
            has=self.page.locator("dt", has_text=name)
        )
        return await term.locator("dd").first.inner_text()

    async def acts(self, title: str, reason: str, **typed: str) -> None:
        """On the page of an item: choose an action, type what it asks for, do it."""
        await self.page.locator("main").get_by_role("link", name=title, exact=True).first.click()
        await self.page.locator("#effect").wait_for()
        for label, value in typed.items():
            control = self.page.locator(f"#field-{label}")
            if await control.evaluate("e => e.tagName") == "SELECT":
                await control.select_option(value)
            else:
                await control.fill(value)
        await self.page.get_by_label("Reason").fill(reason)
        await self.page.locator("#do").click()

    async def message(self) -> str:
        """What the page says of what was just done, or why it was not."""
        return await self.page.locator("#message, #failure").inner_text()

    def code(self, ahead: int = 0) -> str:
        """Of the authenticator, so many steps ahead: each counts once."""
        assert self.totp is not None
        return self.totp.at(int(time.time()) + ahead * STEP_SECONDS)


def watch(context: BrowserContext, url: str, wrong: list[str]) -> None:
    """Add to `wrong` what happens in the browser that no page of this origin may do."""
    here = urlsplit(url).netloc

    def said(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            wrong.append(message.text)

    def asked(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.netloc != here and parts.scheme != "data":
            wrong.append(f"request to {request.url}")

    async def shown(dialog: Dialog) -> None:
        wrong.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    context.on("console", said)
    context.on("request", asked)
    context.on("dialog", shown)
    context.on("weberror", lambda error: wrong.append(str(error.error)))


class Desk:
    """Makes operators and browsers for them."""

    def __init__(self, stack: Stack, browser: Browser) -> None:
        self.stack = stack
        self._browser = browser
        self._seats: dict[Role, Seat] = {}
        self._contexts: list[BrowserContext] = []

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.stack.env['BANKSIDE_CONSOLE_PORT']}"

    async def newcomer(self, role: Role) -> Seat:
        """An operator with a one-time password, who has not logged in yet."""
        name = f"{role}-{secrets.token_hex(3)}"
        made = await self.stack.command(
            *("operators", "create", name, "--role", role, "--login", "--reason", "for a test")
        )
        context = await self._browser.new_context()
        self._contexts.append(context)
        context.set_default_timeout(1000 * PAGE_SECONDS * pace())
        seat = Seat(self.url, context, await context.new_page(), name, made["one_time_password"])
        watch(context, self.url, seat.wrong)
        return seat

    async def seat(self, role: Role) -> Seat:
        """The operator of this role whom all tests share."""
        if role not in self._seats:
            seat = await self.newcomer(role)
            await log_in(seat)
            await enrol(seat, f"correct {role} battery staple")
            self._seats[role] = seat
        return self._seats[role]

    async def close(self) -> None:
        for context in self._contexts:
            await context.close()


@contextlib.asynccontextmanager
async def seats_are_fine(*seats: Seat) -> AsyncIterator[Seat]:
    """Checked after each test: nothing happened in the browser that no page may do."""
    yield seats[0]
    for seat in seats:
        assert seat.wrong == []


async def log_in(seat: Seat, code: str = "") -> None:
    await logging_in.log_in(seat.page, seat.url, seat.name, seat.password, code)


async def enrol(seat: Seat, password: str) -> None:
    """The first log-in, after the one-time password."""
    seat.totp = await logging_in.enrol(seat.page, password)
    seat.password = password
