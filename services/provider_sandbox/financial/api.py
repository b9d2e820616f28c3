"""The financial provider's operations."""

from __future__ import annotations

from services.provider_sandbox.feed import list_events
from services.provider_sandbox.financial.accounts import (
    AccountIds,
    get_account,
    get_balance,
    list_accounts,
)
from services.provider_sandbox.financial.external_accounts import (
    ListExternalAccounts,
    get_external_account,
    list_external_accounts,
)
from services.provider_sandbox.idempotency import get_operation
from services.provider_sandbox.operations import NoQuery, Operations, Read

OPERATIONS: Operations = (
    Read("list_accounts", "/accounts", list_accounts, AccountIds),
    Read("get_account", "/accounts/{id}", get_account, NoQuery),
    Read("get_balance", "/accounts/{id}/balance", get_balance, NoQuery),
    Read("get_external_account", "/accounts/{id}/external-account", get_external_account, NoQuery),
    Read(
        "list_external_accounts",
        "/external-accounts",
        list_external_accounts,
        ListExternalAccounts,
    ),
    list_events("financial"),
    get_operation("financial"),
)
