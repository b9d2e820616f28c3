"""The rows of ledger_read: accounts, and what is in their ledger."""

from http import HTTPMethod

from libs.contracts import (
    accounts,
    ach,
    deposit_locations,
    settlement,
    statements,
    transactions,
)
from libs.contracts import reconciliation as r
from libs.contracts.errors import NotFound, ProviderError, ProviderTimeout
from libs.contracts.operation import OffsetInfo, Operation, PageInfo, Resource, declared_in
from libs.contracts.principal import Scope

PROVIDER = (ProviderError, ProviderTimeout)

LIST_PARTNER_ACCOUNTS = Operation(
    name="ledger_read.list_partner_accounts",
    method=HTTPMethod.GET,
    path="/partner/reseller/accounts",
    resource=Resource.ACCOUNTS,
    scope=Scope.ACCOUNTS_READ,
    command=accounts.ListPartnerAccounts,
    reply=accounts.PartnerAccountList,
    costly=True,
    message="Accounts found",
    errors=PROVIDER,
    summary="List every account of the partner's customers",
)
GET_ACCOUNT = Operation(
    name="ledger_read.get_account",
    method=HTTPMethod.GET,
    path="/partner/reseller/accounts/{account_id}",
    resource=Resource.ACCOUNTS,
    scope=Scope.ACCOUNTS_READ,
    command=accounts.GetAccount,
    reply=accounts.Account,
    message="Account found",
    errors=(NotFound, *PROVIDER),
    summary="Get an account",
)
GET_BALANCE = Operation(
    name="ledger_read.get_balance",
    method=HTTPMethod.GET,
    path="/partner/reseller/accounts/balance/{account_id}",
    resource=Resource.ACCOUNTS,
    scope=Scope.ACCOUNTS_READ,
    command=accounts.GetBalance,
    reply=accounts.Balance,
    message="Balance found",
    errors=(NotFound, *PROVIDER),
    summary="Get the balance of an account",
)
GET_EXTERNAL_ACCOUNT = Operation(
    name="ledger_read.get_external_account",
    method=HTTPMethod.GET,
    path="/partner/reseller/accounts/external/{account_id}",
    resource=Resource.ACCOUNTS,
    scope=Scope.ACCOUNTS_READ,
    command=accounts.GetExternalAccount,
    reply=accounts.ExternalAccount,
    message="External account found",
    errors=(NotFound, *PROVIDER),
    summary="Get the primary external account linked to an account",
)
LIST_CUSTOMER_ACCOUNTS = Operation(
    name="ledger_read.list_customer_accounts",
    method=HTTPMethod.GET,
    path="/customer/accounts",
    resource=Resource.ACCOUNTS,
    scope=Scope.ACCOUNTS_READ,
    command=accounts.ListCustomerAccounts,
    reply=accounts.AccountList,
    message="Accounts found",
    errors=(NotFound, *PROVIDER),
    summary="List the customer's accounts",
)
LIST_EXTERNAL_ACCOUNTS = Operation(
    name="ledger_read.list_external_accounts",
    method=HTTPMethod.GET,
    path="/customer/external-accounts",
    resource=Resource.ACCOUNTS,
    scope=Scope.ACCOUNTS_READ,
    command=accounts.ListExternalAccounts,
    reply=list[accounts.LinkedExternalAccount],
    message="External accounts found",
    errors=(NotFound, *PROVIDER),
    summary="List the customer's linked external accounts, primary first",
    extension=True,
)

LIST_STATEMENTS = Operation(
    name="ledger_read.list_statements",
    method=HTTPMethod.GET,
    path="/partner/reseller/accounts/statements/{account_id}",
    resource=Resource.LEDGER,
    scope=Scope.ACCOUNTS_READ,
    command=statements.ListStatements,
    reply=list[statements.Statement],
    message="Statements found",
    errors=(NotFound, *PROVIDER),
    summary="List an account's statements, newest first, each with a signed download URL",
)
LIST_ACH_REQUESTS = Operation(
    name="ledger_read.list_ach_requests",
    method=HTTPMethod.GET,
    path="/partner/reseller/ach/{account_id}",
    resource=Resource.LEDGER,
    scope=Scope.ACCOUNTS_READ,
    command=ach.ListAchRequests,
    reply=list[ach.AchRequest],
    message="ACH requests found",
    errors=(NotFound, *PROVIDER),
    summary="List an account's ACH requests, newest first",
)
LIST_TRANSACTIONS = Operation(
    name="ledger_read.list_transactions",
    method=HTTPMethod.GET,
    path="/customer/accounts/transactions/{account_id}",
    resource=Resource.LEDGER,
    scope=Scope.ACCOUNTS_READ,
    command=transactions.ListTransactions,
    reply=list[transactions.Transaction],
    pagination=PageInfo,
    message="Transactions found",
    errors=(NotFound, *PROVIDER),
    summary="List an account's transactions, newest first",
)
LIST_DEPOSIT_LOCATIONS = Operation(
    name="ledger_read.list_deposit_locations",
    method=HTTPMethod.GET,
    path="/customer/accounts/deposit-locations/{account_id}",
    resource=Resource.LEDGER,
    scope=Scope.ACCOUNTS_READ,
    command=deposit_locations.ListDepositLocations,
    reply=list[deposit_locations.DepositLocation],
    pagination=OffsetInfo,
    as_of_date=True,
    message="Deposit locations found",
    errors=(NotFound, *PROVIDER),
    summary="List the program banks that hold an account's swept deposits",
)
LIST_SETTLEMENT_CALCULATIONS: Operation[
    settlement.ListSettlementCalculations, list[settlement.SettlementCalculation] | None
] = Operation(
    name="ledger_read.list_settlement_calculations",
    method=HTTPMethod.GET,
    path="/customer/accounts/settlement-calculations/{account_id}",
    resource=Resource.LEDGER,
    scope=Scope.ACCOUNTS_READ,
    command=settlement.ListSettlementCalculations,
    reply=list[settlement.SettlementCalculation] | None,
    headers=(("source", "source"),),
    message="Settlement calculations found",
    errors=(NotFound, *PROVIDER),
    summary="List an account's settlement calculations from a day on; null without a reserve account",
)

LIST_FEED_POSITIONS = Operation(
    name="ledger_read.list_feed_positions",
    command=r.ListFeedPositions,
    asked_by=("reconciliation",),
    reply=r.FeedPositions,
    summary="How far each feed was applied",
)

OPERATIONS = declared_in(globals(), Operation)
