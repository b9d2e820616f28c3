"""How long the old secret of a rotated key still signs, of a caller's key as of an operator's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from libs.client.errors import OperatorError, UnknownOutcome
from libs.contracts.errors import OutcomePending
from libs.contracts.operating.keys import LONGEST_OVERLAP_HOURS

OVERLAP_HOURS = 24.0


def overlap(hours: float) -> Decimal:
    """Hours, as the operation wants them. Raises OperatorError: below 0 or too many."""
    if not 0 <= hours <= LONGEST_OVERLAP_HOURS:
        raise OperatorError(f"The overlap is 0 to {LONGEST_OVERLAP_HOURS} hours.")
    return Decimal(str(hours))


@contextmanager
def told_when_lost(key: str) -> Iterator[None]:
    """Raises UnknownOutcome: the answer to the rotation of this key, with the new secret, is lost."""
    try:
        yield
    except (OutcomePending, UnknownOutcome):
        raise UnknownOutcome(
            f"No answer with a secret came, and {key} may have a new secret, which is lost then: the audit says"
            " whether. Do not rotate it again while programs sign with the secret before, which would end at once: give"
            " them another key."
        ) from None


def end_of_old_secret(overlap_hours: float) -> str:
    """A sentence: until when the old secret of a key that was just rotated signs."""
    if overlap_hours == 0:
        return "The old secret is refused within two seconds."
    until = datetime.now(UTC) + timedelta(hours=overlap_hours)
    return f"The old secret signs until {minute(until)}."


def minute(at: datetime) -> str:
    """In UTC, such as `2026-11-26 09:30Z`."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%MZ}"
