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
        """Every message that was sent before this time (Unix seconds) has been delivered, and none of them requeued
        here since; None: not known. Unlike the age, it is no guess.
        """

    def delivered(self, message_id: str | None) -> None:
        """Called for each message, so it only notes the id."""
        self._delivered_id = message_id

    def requeued(self) -> None:
        """Messages that were delivered wait in the queue again, or may: the consumer pauses, or its session ended."""
        self.caught_up_to = None
        if (sent_at := time_within(self._delivered_id)) is not None:
            self._oldest_at = sent_at.timestamp()
        self._delivered_id = None

    def seconds(self, ready: int, now: float, *, is_consumed: bool = True) -> float:
        """The age of the oldest message, at most. A message that waits was sent after the one that was delivered last;
        an id without a time counts as a new one. The age grows while nothing is delivered.

        Args:
            ready: messages that wait in the queue.
            now: Unix seconds.
            is_consumed: by this process. While it is not, `caught_up_to` stays as it is.
        """
        delivered_id, self._delivered_id = self._delivered_id, None
        if not ready:
            self._oldest_at = None
            if is_consumed:
                self.caught_up_to = now
            return 0.0
        sent_at = time_within(delivered_id)
        if sent_at is not None:
            self._oldest_at = sent_at.timestamp()
            if is_consumed:
                self.caught_up_to = self._oldest_at
        elif delivered_id is not None or self._oldest_at is None:
            self._oldest_at = now
        return max(0.0, now - self._oldest_at)
