"""The event feeds of the identity and the financial provider, page by page."""

from __future__ import annotations

from typing import Any

import msgspec

from libs.providers.feed_entries import FeedCursor
from libs.providers.sandbox.feed_pages import read_entries
from libs.providers.sandbox.http import ProviderClient
from services.onboarding.models import (
    AccountEntry,
    AccountReport,
    IdentityEntry,
    IdentityReport,
    ProviderIssue,
)

STATUS_CHANGED = "customer.status_changed"
OF_ACCOUNTS = "account."
"""How the types of entries about accounts begin."""


class CustomerEvent(msgspec.Struct, frozen=True):
    position: int
    type: str
    identity_id: str = ""
    customer_id: str = ""
    business_customer_id: str | None = None
    status: str = ""
    version: int = 0
    issues: tuple[ProviderIssue, ...] = ()


class AccountEvent(msgspec.Struct, frozen=True):
    """Those about accounts carry the account's state."""

    position: int
    type: str
    account_id: str = ""
    customer_id: str = ""
    data: dict[str, object] = {}


class IdentityFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: FeedCursor, limit: int) -> list[IdentityEntry]:
        return await read_entries(self._client, _identity_entry, after, limit)


class FinancialFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: FeedCursor, limit: int) -> list[AccountEntry]:
        return await read_entries(self._client, _account_entry, after, limit)


def _identity_entry(item: Any) -> IdentityEntry:
    event = msgspec.convert(item, CustomerEvent)
    if event.type != STATUS_CHANGED:
        return IdentityEntry(position=event.position, type=event.type)
    report = IdentityReport(
        business_id=event.business_customer_id or event.customer_id,
        identity_id=event.identity_id,
        status=event.status,
        version=event.version,
        issues=event.issues,
    )
    return IdentityEntry(position=event.position, type=event.type, report=report)


def _account_entry(item: Any) -> AccountEntry:
    event = msgspec.convert(item, AccountEvent)
    if not event.type.startswith(OF_ACCOUNTS) or not event.account_id:
        return AccountEntry(position=event.position, type=event.type)
    report = AccountReport(
        account_id=event.account_id,
        customer_id=event.customer_id,
        status=_text(event.data.get("status")),
        account_number=_text(event.data.get("account_number")),
        account_group=_text(event.data.get("account_group")),
    )
    return AccountEntry(position=event.position, type=event.type, report=report)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
