"""How much has arrived of a request's head, which is its line and its headers, and behind a request without an answer.

aiohttp says neither. A head ends with the first empty line in it, and its request with the body whose length it tells;
the last of a body in chunks is an empty line, too. Where anything is behind a request, the connection ends with its
answer, so that a head begins on an idle connection or is behind the last request.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

EMPTY_LINE: Final = b"\r\n\r\n"


class RequestHeads:
    """Of one connection."""

    def __init__(self) -> None:
        self._is_arriving = True
        """No request is under way: what comes is a head."""
        self._is_behind = False
        """The request under way was sent behind another one, so that its place is not known."""
        self._length: int | None = 0
        """Of the body of the request under way; None where it comes in chunks."""
        self._after_head = 0
        """What has arrived after the head of the request under way."""
        self._unended = 0
        """What has arrived since the last empty line."""
        self._last = b""
        """The last of it, in which an empty line may have begun."""

    def received(self, data: bytes) -> int:
        """Called with what has arrived; the size so far of the head that is known to arrive, 0 where none is."""
        begun, before = self._last, self._unended - len(self._last)
        seen = begun + data
        size = 0
        if self._is_arriving:
            head, empty_line, after = seen.partition(EMPTY_LINE)
            size = before + len(head) + len(empty_line)
            self._is_arriving, self._after_head = not empty_line, len(after)
        else:
            self._after_head += len(data)
        _, empty_line, rest = seen.rpartition(EMPTY_LINE)
        self._unended = len(rest) if empty_line else before + len(rest)
        self._last = rest[-len(EMPTY_LINE) + 1 :]
        return size

    def begin_request(self, request: web.BaseRequest) -> None:
        """Called when its head has been read."""
        self._is_behind, self._is_arriving = self._is_arriving, False
        in_chunks = "Transfer-Encoding" in request.headers
        self._length = None if in_chunks else request.content_length or 0

    def size_behind(self) -> int:
        """What is known to have arrived behind the request under way, whose body has arrived."""
        if self._length is not None and not self._is_behind:
            return max(0, self._after_head - self._length)
        return 0 if self._length else self._unended

    def is_last(self) -> bool:
        """Whether the request under way, whose body has arrived, has to be the last of the connection."""
        return self._is_behind or self.size_behind() > 0

    def end_request(self) -> int:
        """Called when none is under way any more; what has arrived of a head that has not ended.

        Behind a body that came after its answer there may be one, of a caller who had read that answer.
        """
        self._is_arriving = True
        self._unended = min(self._unended, self.size_behind())
        self._last = self._last[-self._unended :] if self._unended else b""
        return self._unended
