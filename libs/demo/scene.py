"""The state that the chapters of a story share: clients of the stack, the output, and facts of earlier chapters."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TypeVar

import aiohttp
from rich.console import Console

from libs.client.answers import Answer
from libs.client.client import BoundCall, Client, request_of
from libs.client.credentials import Credentials
from libs.client.transport import Transport
from libs.contracts.errors import BanksideError, Invalid
from libs.contracts.exact_json import NotExactJson, decode, encode
from libs.contracts.model import Command

R = TypeVar("R")
C = TypeVar("C", bound=Command)

SANDBOX_SECONDS = 30.0
DOCUMENT_BYTES = 16 * 1024 * 1024


class StoryBroken(Exception):
    """The stack did not do what the story expects: one sentence."""


@dataclass
class Scene:
    """One telling of the story. `client` signs with the reseller's key; so does `customer` until there is another."""

    client: Client
    session: aiohttp.ClientSession
    base_url: str
    sandbox_url: str
    out: Console
    chapter: int = 0
    facts: dict[str, str] = field(default_factory=dict)
    customer: Client = field(init=False)

    def __post_init__(self) -> None:
        self.customer = self.client

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

    async def simulate(self, path: str, body: object) -> dict[str, object]:
        """Make something happen at the simulated bank and show the request line."""
        started = time.perf_counter()
        timeout = aiohttp.ClientTimeout(total=SANDBOX_SECONDS)
        try:
            async with self.session.post(
                self.sandbox_url + path,
                data=encode(body),
                headers={"Content-Type": "application/json"},
                timeout=timeout,
            ) as response:
                status, answer = response.status, decode(await response.read())
        except (aiohttp.ClientError, TimeoutError, NotExactJson):
            raise StoryBroken(f"The provider sandbox gave no answer to POST {path}.") from None
        if status != 200 or not isinstance(answer, dict):
            raise StoryBroken(f"The provider sandbox answered POST {path} with {status}.")
        self._request_line("POST", path, status, started, at=" at the sandbox")
        return answer

    async def download(self, url: str) -> bytes:
        """The document behind a signed URL, fetched without credentials."""
        started = time.perf_counter()
        timeout = aiohttp.ClientTimeout(total=SANDBOX_SECONDS)
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
