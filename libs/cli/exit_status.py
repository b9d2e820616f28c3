"""Exit statuses of the command; README.md says when each is used."""

from __future__ import annotations

from libs.contracts.errors import (
    Abandoned,
    BanksideError,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    InvalidState,
    NonceReused,
    NotFound,
    OutcomePending,
)

_MAY_BE_DONE = (
    OutcomePending,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    Abandoned,
    NonceReused,
)
"""A key that is used again is another request's, which may be done. Each send has a fresh nonce: only a copy of it,
made on its way, used that.
"""
REFUSED, MISTAKE, UNKNOWN, INTERRUPTED = 1, 2, 3, 130


def status_of(refusal: BanksideError) -> int:
    if isinstance(refusal, _MAY_BE_DONE):
        return UNKNOWN
    return MISTAKE if isinstance(refusal, NotFound | InvalidState) else REFUSED
