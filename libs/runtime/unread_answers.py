"""What callers have not yet taken of their answers, bounded in bytes.

It waits in memory: a caller who asks and does not read costs much more than a request. Where one address, or all
together, have too much, the connection with the most of the address with the most is closed.
"""

from __future__ import annotations

from collections import Counter
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
        """As last looked at. Callers take from it since: it is never less than there is."""
        self._of_addresses: Counter[object] = Counter()
        self._in_all = 0

    def add(self, connection: AnsweredConnection) -> None:
        """Called when an answer begins to wait."""
        self._note(connection, connection.unread_bytes())
        if self._address_to_close() is None:
            return
        for each in list(self._bytes):
            self._note(each, each.unread_bytes())
        while (address := self._address_to_close()) is not None:
            of_address = (each for each in self._bytes if _address(each) == address)
            most = max(of_address, key=self._bytes.__getitem__)
            self.remove(most)  # at once: its loss is reported later
            most.abort("unread_answers")

    def remove(self, connection: AnsweredConnection) -> None:
        """Called when the answer was taken, or the connection is lost."""
        self._note(connection, 0)

    def _note(self, connection: AnsweredConnection, count: int) -> None:
        change = count - self._bytes.pop(connection, 0)
        if count:
            self._bytes[connection] = count
        address = _address(connection)
        self._of_addresses[address] += change
        if not self._of_addresses[address]:
            del self._of_addresses[address]
        self._in_all += change

    def _address_to_close(self) -> object | None:
        """The address with the most, where that or all together is too much."""
        address = max(self._of_addresses, key=self._of_addresses.__getitem__, default=None)
        is_within = (
            self._in_all <= self._most_bytes
            and self._of_addresses[address] <= self._most_bytes_of_address
        )
        return None if is_within else address


def _address(connection: AnsweredConnection) -> object:
    return connection.address or connection
