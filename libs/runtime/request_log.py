"""The log of what was handled: one line for each request, query and drive of a command, cheap enough for each of them.

A line is an object of a fixed shape, not an event that passes the processors of structlog, and lines are written
together: a tenth of a second later at the latest, or with the next line of any other kind. A process that is killed
loses that tenth of a second of them. `tests/benchmarks/README.md` has what that saves.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import BinaryIO, Literal, TypedDict, Unpack

import msgspec
from prometheus_client import Counter
from structlog.typing import EventDict, WrappedLogger

from libs.contracts.request_context import request_context

LINES_LOST = Counter("bankside_log_lines_lost_total", "Lines that could not be written.")
TOGETHER_SECONDS = 0.1
TOGETHER_BYTES = 4096
"""What a pipe takes in one piece, so that lines of two processes on one pipe do not mix."""


def add_request_context(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """structlog processor: add the request that the current task serves, and who signed it."""
    if (current := request_context.get()) is not None:
        event.setdefault("request_id", current.request_id)
        event.setdefault("key", current.actor)
    return event


_NO_REQUEST = (None, None)
_encode = msgspec.json.Encoder().encode


class _Line(msgspec.Struct, omit_defaults=True):
    event: str
    service: str
    timestamp: str
    request_id: str | None
    key: str | None
    operation: str | None
    outcome: str
    seconds: float
    level: Literal["info"]
    status: int | None = None
    command: str | None = None
    attempts: int | None = None


def _now() -> str:
    return f"{datetime.now(UTC).replace(tzinfo=None).isoformat()}Z"


class Details(TypedDict, total=False):
    """`status`: of the HTTP response. `command`: the id of a command. `attempts`: how many times it was driven."""

    status: int
    command: str
    attempts: int


class Lines:
    """Standard output. `write` and `flush` are those of a file, as structlog calls them for each line of its own."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting: list[bytes] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None

    def write(self, line: bytes) -> None:
        if self._size + len(line) > TOGETHER_BYTES:
            self.flush()
        self._waiting.append(line)
        self._size += len(line)

    def flush(self) -> None:
        """Lines that cannot be written, to a full disk or a pipe without a reader, are counted: what they tell of has
        happened, and its caller is answered.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._waiting, self._size = self._waiting, [], 0
        try:
            self._file.write(b"".join(lines))
            self._file.flush()
        except OSError:
            LINES_LOST.inc(len(lines))

    def write_soon(self, line: bytes) -> None:
        """Write it together with the lines that follow within a tenth of a second."""
        self.write(line)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOGETHER_SECONDS, self.flush)


class RequestLog:
    """The log of one process. Until `begin`, nothing is logged: a test that calls a handler has no log."""

    def __init__(self) -> None:
        self._service = ""
        self._lines: Lines | None = None

    def begin(self, service: str, lines: Lines) -> None:
        self._service, self._lines = service, lines

    def note(
        self,
        event: str,
        operation: str | None,
        outcome: str,
        seconds: float,
        **details: Unpack[Details],
    ) -> None:
        """Log what came of a request or a message, for the current `request_context`.

        Args:
            outcome: "ok", or the code of the error that it was answered with.
            seconds: spent on it in this process.
        """
        if self._lines is None:
            return
        request_id, key = request_context.get() or _NO_REQUEST
        line = _Line(
            event=event,
            service=self._service,
            timestamp=_now(),
            request_id=request_id,
            key=key,
            operation=operation,
            outcome=outcome,
            seconds=round(seconds, 6),
            level="info",
            **details,
        )
        self._lines.write_soon(_encode(line) + b"\n")

    def line(self, event: str, **fields: str | float | None) -> None:
        """Log an event that is as frequent as requests. Ids and figures, nothing sensitive."""
        if self._lines is None:
            return
        line = {"event": event, "service": self._service, "timestamp": _now(), "level": "info"}
        self._lines.write_soon(_encode(line | fields) + b"\n")


request_log = RequestLog()
