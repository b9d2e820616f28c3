"""How old the oldest message of a queue is, as far as its consumer can tell: a queue does not say so itself."""

from __future__ import annotations

from libs.messaging.message_ids import time_within


class QueueAge:
    def __init__(self) -> None:
        self._delivered_id: str | None = None
        """Of the message that was delivered last; None: none was since `seconds` was called."""
        self._oldest_at: float | None = None
        """The messages that wait were sent after this time (Unix seconds)."""
        self.caught_up_to: float | None = None
        """Every message that was sent before this time (Unix seconds) has been delivered; None: not known. Unlike the
        age, it is no guess.
        """

    def delivered(self, message_id: str | None) -> None:
        """Called for each message, so it only notes the id."""
        self._delivered_id = message_id

    def seconds(self, ready: int, now: float) -> float:
        """The age of the oldest message, at most. A message that waits was sent after the one that was delivered last;
        an id without a time counts as a new one. The age grows while nothing is delivered.

        Args:
            ready: messages that wait in the queue.
            now: Unix seconds.
        """
        delivered_id, self._delivered_id = self._delivered_id, None
        if not ready:
            self._oldest_at = None
            self.caught_up_to = now
            return 0.0
        sent_at = time_within(delivered_id)
        if sent_at is not None:
            self._oldest_at = self.caught_up_to = sent_at.timestamp()
        elif delivered_id is not None or self._oldest_at is None:
            self._oldest_at = now
        return max(0.0, now - self._oldest_at)
