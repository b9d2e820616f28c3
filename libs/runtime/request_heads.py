"""How much has arrived of a request's head, which is its line and its headers.

aiohttp does not say what its parser keeps of a head that has not ended. A head ends with the first empty line in it.
Where it begins is known on an idle connection, and behind a request that began on one, by the length of its body.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

EMPTY_LINE: Final = b"\r\n\r\n"
LAST_BYTES: Final = 64
"""These may be empty lines behind a request, where one is usual (RFC 9112, 2.2)."""


class RequestHeads:
    """Of one connection."""

    def __init__(self) -> None:
        self._is_arriving = True
        """No request is under way: what comes is a head."""
        self._is_first = False
        """The request under way was not sent behind another one, so that `_after_head` is known."""
        self._after_head = 0
        """What has arrived after the head of the request under way."""
        self._length: int | None = 0
        """Of the body of the request under way; None where it comes in chunks, after which an empty line ends it."""
        self._unended = 0
        """What has arrived since the last empty line."""
        self._is_run = False
        """The last empty line followed another one: it may be one of those before a request, and end no head."""
        self._last = b""

    def received(self, data: bytes) -> int:
        """Called with what has arrived; the size so far of the head that is known to arrive, 0 where none is."""
        begun = min(self._unended, len(EMPTY_LINE) - 1)  # an empty line may have begun in these
        before = self._unended - begun
        known = len(self._last) - begun
        rest, before_rest = self._last[known:] + data, self._last[max(0, known - 1) : known]
        size = 0
        if self._is_arriving:
            head, empty_line, after = rest.partition(EMPTY_LINE)
            size = before + len(head) + len(empty_line)
            if empty_line:
                self._is_arriving, self._is_first = False, True
                self._after_head = len(after)
                before, rest, before_rest = 0, after, b"\n"
        else:
            self._after_head += len(data)
        end = rest.rfind(EMPTY_LINE)
        if end >= 0:
            self._is_run = (rest[end - 1 : end] if end else before_rest) in (b"\r", b"\n")
        self._unended = before + len(rest) if end < 0 else len(rest) - end - len(EMPTY_LINE)
        self._last = (self._last + data[-LAST_BYTES:])[-LAST_BYTES:]
        return size

    def begin_request(self, request: web.BaseRequest) -> None:
        """Called when its head has been read."""
        self._is_arriving = False
        in_chunks = "Transfer-Encoding" in request.headers
        self._length = None if in_chunks else request.content_length or 0

    def size_behind(self) -> int:
        """What has arrived of a head behind the request under way, whose body has arrived.

        0 where it has ended, since a body may follow it, and where a body makes it uncertain (`is_last`).
        """
        if (behind := self._behind()) is None:
            behind = 0 if self._length else self._unended
        if self._has_ended(behind) or self._are_empty_lines(behind):
            return 0
        return min(behind, self._unended)

    def is_last(self, request: web.BaseRequest) -> bool:
        """Whether the request under way has to be the last of the connection, as what is behind it is not certain.

        aiohttp drops what came behind a request for another protocol (`Upgrade`) in the same bytes.
        """
        behind = self._behind()
        if "Upgrade" in request.headers:
            return behind is None or behind > 0
        return behind is None and bool(self._length)

    def end_request(self) -> bool:
        """Called when none is under way any more; whether another one has begun behind it."""
        size, behind = self.size_behind(), self._behind() or 0
        has_ended = self._has_ended(behind)
        self._is_first, self._is_arriving = False, not has_ended
        if self._is_arriving:
            self._unended = size
        return has_ended or bool(size)

    def _behind(self) -> int | None:
        """What has arrived behind the request under way; None where that is not known."""
        if not self._is_first or self._length is None:
            return None
        return max(0, self._after_head - self._length)

    def _has_ended(self, behind: int) -> bool:
        """Whether a head has ended in what is behind; empty lines before one are no end."""
        return behind > self._unended + len(EMPTY_LINE) and not self._is_run

    def _are_empty_lines(self, count: int) -> bool:
        """Of the last bytes, so many."""
        return count <= len(self._last) and not self._last[-count:].strip(b"\r\n")
