"""What callers have not yet taken of their answers, bounded in bytes.

It waits in memory: a caller who asks and does not read costs much more than a request. Where all together have too
much, the connection with the most of the address with the most is closed at once; where one address has too much for
longer than a second, its connection with the most.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final, Protocol

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_BYTES_OF_ADDRESS: Final = 32 * 1024 * 1024
"""More than two of the largest answers (`LARGEST_REPLY_BYTES` in `libs/messaging/replier.py`)."""


class AnsweredConnection(Protocol):
    """A connection on which an answer waits for its caller."""

    @property
    def address(self) -> str | None:
        """None: it is a proxy's, and its callers are not known. Each such connection counts by itself."""

    def unread_bytes(self) -> int:
        """As of now."""

    def abort(self, bound: str) -> None: ...


class UnreadAnswers:
    """Of the connections of one listener."""

    def __init__(
        self, most_bytes: int = MOST_BYTES, most_bytes_of_address: int = MOST_BYTES_OF_ADDRESS
    ) -> None:
        self._most_bytes = most_bytes
        self._most_bytes_of_address = most_bytes_of_address
        self._bytes: dict[AnsweredConnection, int] = {}
        """As last looked at. Callers take from it since."""
        self._in_all = 0
        self._at_last_check: set[AnsweredConnection] = set()
        """Connections whose answers have waited since then."""

    def add(self, connection: AnsweredConnection) -> None:
        """Called when an answer begins to wait: what all together have is bounded at once."""
        self._look(connection)
        if self._in_all <= self._most_bytes:
            return
        for each in self._bytes:
            self._look(each)
        while self._in_all > self._most_bytes:
            self._close_largest(max(self._by_address(self._bytes), key=self._sum))

    def check(self) -> None:
        """Called about every second: what an address has is bounded.

        Only answers that have waited since the call before count for it: a caller who has just been answered may be
        reading as fast as its network allows.
        """
        for each in self._bytes:
            self._look(each)
        for connections in self._by_address(self._at_last_check):
            while self._sum(connections) > self._most_bytes_of_address:
                self._close_largest(connections)
        self._at_last_check = set(self._bytes)

    def remove(self, connection: AnsweredConnection) -> None:
        """Called when the answer was taken, or the connection is lost."""
        self._in_all -= self._bytes.pop(connection, 0)
        self._at_last_check.discard(connection)

    def _look(self, connection: AnsweredConnection) -> None:
        count = connection.unread_bytes()
        self._in_all += count - self._bytes.get(connection, 0)
        self._bytes[connection] = count

    def _by_address(
        self, connections: Iterable[AnsweredConnection]
    ) -> Collection[list[AnsweredConnection]]:
        of_addresses: defaultdict[object, list[AnsweredConnection]] = defaultdict(list)
        for each in connections:
            of_addresses[each.address or each].append(each)
        return of_addresses.values()

    def _sum(self, connections: Iterable[AnsweredConnection]) -> int:
        return sum(self._bytes[each] for each in connections)

    def _close_largest(self, connections: list[AnsweredConnection]) -> None:
        largest = max(connections, key=self._bytes.__getitem__)
        connections.remove(largest)
        self.remove(largest)
        largest.abort("unread_answers")
