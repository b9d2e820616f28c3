"""The financial provider's operations."""

from __future__ import annotations

from services.provider_sandbox.feed import get_newest_event, list_events
from services.provider_sandbox.financial.accounts import (
    AccountIds,
    get_account,
    get_balances,
    list_accounts,
)
from services.provider_sandbox.financial.ach import list_ach
from services.provider_sandbox.financial.deposit_locations import list_deposit_locations
from services.provider_sandbox.financial.external_accounts import (
    ListExternalAccounts,
    get_external_account,
    list_external_accounts,
)
from services.provider_sandbox.financial.lists import BALANCES, LOADS, POSTINGS
from services.provider_sandbox.financial.postings import list_account_postings
from services.provider_sandbox.financial.settlement_calculations import (
    list_settlement_calculations,
)
from services.provider_sandbox.financial.statements import list_statements
from services.provider_sandbox.financial.transactions import list_transactions
from services.provider_sandbox.idempotency import get_operation
from services.provider_sandbox.listing import list_all
from services.provider_sandbox.operations import BatchedRead, NoQuery, Operations, Read
from services.provider_sandbox.statements.links import Links


def operations(page_limit: int, links: Links) -> Operations:
    return (
        Read("list_accounts", "/accounts", list_accounts, AccountIds),
        Read("get_account", "/accounts/{id}", get_account, NoQuery),
        BatchedRead("get_balance", "/accounts/{id}/balance", get_balances, "account"),
        list_transactions(page_limit),
        list_account_postings(page_limit),
        list_ach(page_limit),
        list_statements(page_limit, links),
        list_deposit_locations(page_limit),
        list_settlement_calculations(page_limit),
        Read(
            "get_external_account",
            "/accounts/{id}/external-account",
            get_external_account,
            NoQuery,
        ),
        Read(
            "list_external_accounts",
            "/external-accounts",
            list_external_accounts,
            ListExternalAccounts,
        ),
        list_all("list_postings", "/postings", POSTINGS),
        list_all("list_balances", "/balances", BALANCES),
        list_all("list_deposit_loads", "/deposit-loads", LOADS),
        list_events("financial"),
        get_newest_event("financial"),
        get_operation("financial"),
    )
