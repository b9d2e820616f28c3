"""Exit statuses of the command; README.md says when each is used."""

from __future__ import annotations

from libs.contracts.errors import (
    BanksideError,
    IdempotencyInProgress,
    InvalidState,
    NotFound,
    OutcomePending,
)

REFUSED, MISTAKE, UNKNOWN, INTERRUPTED = 1, 2, 3, 130


def status_of(refusal: BanksideError) -> int:
    if isinstance(refusal, OutcomePending | IdempotencyInProgress):
        return UNKNOWN
    return MISTAKE if isinstance(refusal, NotFound | InvalidState) else REFUSED
