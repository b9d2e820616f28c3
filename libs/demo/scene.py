"""The state that the chapters of a story share: clients of the stack, the output, and facts of earlier chapters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
from rich.console import Console

from libs.client.answers import Answer
from libs.client.client import BoundCall, Client, request_of
from libs.client.credentials import Credentials
from libs.client.transport import Transport
from libs.contracts.errors import BanksideError, Invalid
from libs.contracts.model import Command
from libs.providers.simulation import SimulatedBank, open_bank

R = TypeVar("R")
C = TypeVar("C", bound=Command)

DOCUMENT_SECONDS = 30.0
DOCUMENT_BYTES = 16 * 1024 * 1024


class StoryBroken(Exception):
    """The stack did not do what the story expects: one sentence."""


@dataclass
class Scene:
    """One telling of the story. `client` signs with the reseller's key; so does `customer` until there is another."""

    client: Client
    session: aiohttp.ClientSession
    base_url: str
    bank_url: Callable[[str], str]
    out: Console
    chapter: int = 0
    facts: dict[str, str] = field(default_factory=dict)
    customer: Client = field(init=False)
    bank: SimulatedBank = field(init=False)
    """Which makes happen what others than the business do."""

    def __post_init__(self) -> None:
        self.customer = self.client
        self.bank = open_bank(self.session, self.bank_url, self._report_bank)

    def client_of(self, credentials: Credentials) -> Client:
        return Client(Transport(self.base_url, credentials, self.session))

    def title(self, title: str) -> None:
        self.chapter += 1
        self.out.print(f"\n[bold cyan]{self.chapter}[/]  [bold]{title}[/]")

    async def call(self, bound: BoundCall[C, R], command: C) -> Answer[R]:
        """Call the gateway and show the request line with the status."""
        method, target, _, _ = request_of(bound.operation, command)
        started = time.perf_counter()
        try:
            answer = await bound(command)
        except Invalid as error:
            wrong = ", ".join(".".join(map(str, item["loc"])) for item in error.errors)
            raise StoryBroken(f"{method} {target} was refused: 422 for {wrong}.") from None
        except BanksideError as error:
            raise StoryBroken(
                f"{method} {target} failed: {error.status} {error.code}. {error.detail}"
            ) from None
        self._request_line(method, target, 200, started)
        return answer

    async def refused(
        self, bound: BoundCall[C, R], command: C, expected: type[BanksideError]
    ) -> None:
        """Call the gateway, which has to refuse it for this reason, and show that."""
        method, target, _, _ = request_of(bound.operation, command)
        started = time.perf_counter()
        try:
            await bound(command)
        except expected as error:
            self._request_line(method, target, error.status, started)
            self.show("refused", error.code)
        except BanksideError as error:
            raise StoryBroken(f"{method} {target} failed: {error.status} {error.code}.") from None
        else:
            raise StoryBroken(f"{method} {target} was not refused.")

    async def download(self, url: str) -> bytes:
        """The document behind a signed URL, fetched without credentials."""
        started = time.perf_counter()
        timeout = aiohttp.ClientTimeout(total=DOCUMENT_SECONDS)
        try:
            async with self.session.get(url, timeout=timeout) as response:
                status, content = response.status, b""
                while chunk := await response.content.readany():
                    content += chunk
                    expect(len(content) <= DOCUMENT_BYTES, "The document is far too large.")
        except (aiohttp.ClientError, TimeoutError):
            raise StoryBroken("The document's URL gave no answer.") from None
        expect(status == 200, f"The document's URL answered {status}.")
        self._request_line("GET", url.partition("?")[0] + "?…", status, started)
        return content

    def show(self, name: str, value: object) -> None:
        self.out.print(f"   [dim]{name:<18}[/] {value}")

    def _report_bank(self, method: str, path: str, status: int, started: float) -> None:
        self._request_line(method, path, status, started, at=f" at {self.bank.name}")

    def _request_line(
        self, method: str, target: str, status: int, started: float, at: str = ""
    ) -> None:
        milliseconds = (time.perf_counter() - started) * 1000
        self.out.print(
            f"   [blue]{method}[/] {target}{at}  [green]{status}[/] [dim]{milliseconds:.0f} ms[/]"
        )


def expect(holds: bool, sentence: str) -> None:
    if not holds:
        raise StoryBroken(sentence)
