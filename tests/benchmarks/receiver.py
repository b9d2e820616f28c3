"""Where deliveries go: a process that answers as cheaply as Python can, but only what it has checked.

Every request's signature is computed anew (Standard Webhooks, by no library of ours), and every `webhook-id` is
remembered: what comes twice counts once. A request that is not right is answered 400 and fails the run.

`python -m tests.benchmarks.receiver` takes `{target: secret}` as a line of JSON, and then a word on each line; it
answers each with a line of JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import re
import sys
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import uvloop

from deploy.local.ports import LOOPBACK
from tests.benchmarks.wrk import LoadFailed

HUNG = "/hung"
"""A target that takes requests and never answers."""
START_SECONDS = 20.0
TELL_SECONDS = 5.0

_NAMES = b"content-length|webhook-id|webhook-timestamp|webhook-signature"
_HEADERS = re.compile(rb"\r\n(?i:(%b)): ([^\r]*)" % _NAMES)
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_WRONG = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Receiver:
    """`secrets`: by target. What came is counted from `begin` on."""

    base_url: str
    secrets: Mapping[str, str] = field(repr=False)
    _process: asyncio.subprocess.Process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def begin(self) -> None:
        """Forget what came."""
        await self._ask("begin")

    async def checked(self) -> int:
        """How many different messages came and were right. Raises LoadFailed when something else came."""
        found = await self._ask("checked")
        if found["wrong"]:
            raise LoadFailed(f"{found['wrong']} requests were not right, as {found['example']}")
        return int(found["checked"])

    async def let_go(self) -> None:
        """End the connections of requests that hang."""
        await self._ask("let_go")

    async def _ask(self, word: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word.encode() + b"\n")
        async with asyncio.timeout(TELL_SECONDS):
            return json.loads(await self._process.stdout.readline())


@contextlib.asynccontextmanager
async def running_receiver(secrets: Mapping[str, str]) -> AsyncIterator[Receiver]:
    """A process that ends with the block, and with this process however it goes."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(secrets).encode() + b"\n")
        async with asyncio.timeout(START_SECONDS):
            port = json.loads(await process.stdout.readline())
        yield Receiver(f"http://{LOOPBACK}:{port}", secrets, process)
    finally:
        process.stdin.close()
        await process.wait()


class _Inbox:
    """What came to all connections."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._keys = {
            target.encode(): b64decode(secret.removeprefix("whsec_"))
            for target, secret in secrets.items()
        }
        self.hanging: set[asyncio.Transport] = set()
        self._begin()

    def answer(self, word: str) -> Any:
        match word:
            case "begin":
                self._begin()
            case "let_go":
                for transport in self.hanging:
                    transport.abort()
                self.hanging.clear()
            case _:
                example = self._example.decode("latin-1")
                return {"checked": len(self._ids), "wrong": self._wrong, "example": example}
        return None

    def _begin(self) -> None:
        self._ids: set[bytes] = set()
        self._wrong = 0
        self._example = b""

    def take(self, target: bytes, headers: Mapping[bytes, bytes], body: bytes) -> bool:
        """Whether the request is right; then it is counted."""
        key = self._keys.get(target)
        message_id = headers.get(b"webhook-id")
        if key is not None and message_id is not None:
            signed = b"%b.%b.%b" % (message_id, headers.get(b"webhook-timestamp", b""), body)
            signature = b"v1," + b64encode(hmac.digest(key, signed, "sha256"))
            if headers.get(b"webhook-signature") == signature:
                self._ids.add(message_id)
                return True
        self._wrong += 1
        self._example = target + b" " + repr(headers).encode()
        return False


class _Connection(asyncio.Protocol):
    def __init__(self, inbox: _Inbox) -> None:
        self._inbox = inbox
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._inbox.hanging.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._came += data
        while (end := self._came.find(b"\r\n\r\n")) >= 0:
            head = self._came[:end]
            headers = {name.lower(): value for name, value in _HEADERS.findall(head)}
            begin = end + 4
            after = begin + int(headers.get(b"content-length", b"0"))
            if len(self._came) < after:
                return
            body, self._came = self._came[begin:after], self._came[after:]
            target = head.split(b" ", 2)[1]
            if target == HUNG.encode():
                self._inbox.hanging.add(self._transport)
                continue
            self._transport.write(_OK if self._inbox.take(target, headers, body) else _WRONG)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    words = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    inbox = _Inbox(json.loads(await words.readline()))
    server = await loop.create_server(lambda: _Connection(inbox), LOOPBACK, 0, backlog=1024)
    _tell(server.sockets[0].getsockname()[1])
    while word := await words.readline():
        _tell(inbox.answer(word.decode().strip()))


def _tell(answer: Any) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_serve())
