"""Commands that wait for an event outside, such as a provider's verdict: driving them again does not bring it.

    drive ──nothing yet──▶ rests, up to ten minutes ──▶ drive …
                             └─ the event is stored, then the command made due ──▶ drive at once

The pause is for what goes wrong on the way: a command whose event comes is made due, whichever process is told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from libs.backoff import Backoff
from libs.contracts.errors import OutcomePending
from libs.persistence.async_engine import AsyncConnection

AWAITED_RETRIES = Backoff(first_seconds=0.25, longest_seconds=500.0, jitter=0.2)
"""Ten minutes at most, with jitter."""


class OutcomeAwaited(OutcomePending):
    """Raised by a handler: the command is driven again when its event has come, which makes it due.

    Args:
        is_awaited: whether the event has not been stored yet. It is asked in the transaction that ends the drive, which
            has locked the command: an event that is stored later makes the command due after that.
    """

    def __init__(self, is_awaited: Callable[[AsyncConnection], Awaitable[bool]]) -> None:
        super().__init__()
        self.is_awaited = is_awaited
