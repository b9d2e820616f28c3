"""Reads that a provider refuses, logged and translated."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from libs.contracts.errors import ProviderError
from libs.providers.errors import ProviderRefusal

_log = structlog.get_logger("financial")


class NotKnown(Exception):
    """The provider has no such object."""


def refused_read(
    operation: str, refusal: ProviderRefusal, *, is_not_known: bool
) -> NotKnown | ProviderError:
    """The error to raise for a refused read: `NotKnown`, or else `ProviderError`, which is logged.

    Args:
        is_not_known: the provider refuses because it has no such object.
    """
    if is_not_known:
        return NotKnown()
    _log.error(
        "provider_refused_a_read", operation=operation, status=refusal.status, code=refusal.code
    )
    return ProviderError()


def lost_accounts(account_ids: Sequence[str]) -> ProviderError:
    """The error for accounts that onboarding has and the provider does not know. They are no 404: an account must not
    disappear.
    """
    _log.error("accounts_unknown_to_provider", account_ids=account_ids[:10], count=len(account_ids))
    return ProviderError()
