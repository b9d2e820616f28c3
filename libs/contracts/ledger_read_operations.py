"""The rows of ledger_read: accounts, balances, linked external accounts."""

from http import HTTPMethod

from libs.contracts import accounts
from libs.contracts.errors import NotFound, ProviderError, ProviderTimeout
from libs.contracts.operation import Operation
from libs.contracts.principal import Scope

PROVIDER = (ProviderError, ProviderTimeout)

LIST_PARTNER_ACCOUNTS = Operation(
    name="ledger_read.list_partner_accounts",
    method=HTTPMethod.GET,
    path="/partner/reseller/accounts",
    scope=Scope.ACCOUNTS_READ,
    command=accounts.ListPartnerAccounts,
    reply=accounts.PartnerAccountList,
    message="Accounts found",
    errors=PROVIDER,
    summary="List every account of the partner's customers",
)
GET_ACCOUNT = Operation(
    name="ledger_read.get_account",
    method=HTTPMethod.GET,
    path="/partner/reseller/accounts/{account_id}",
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
    scope=Scope.ACCOUNTS_READ,
    command=accounts.ListCustomerAccounts,
    reply=accounts.AccountList,
    message="Accounts found",
    errors=PROVIDER,
    summary="List the customer's accounts",
)
LIST_EXTERNAL_ACCOUNTS = Operation(
    name="ledger_read.list_external_accounts",
    method=HTTPMethod.GET,
    path="/customer/external-accounts",
    scope=Scope.ACCOUNTS_READ,
    command=accounts.ListExternalAccounts,
    reply=list[accounts.LinkedExternalAccount],
    message="External accounts found",
    errors=PROVIDER,
    summary="List the customer's linked external accounts, primary first",
    extension=True,
)

OPERATIONS = (
    LIST_PARTNER_ACCOUNTS,
    GET_ACCOUNT,
    GET_BALANCE,
    GET_EXTERNAL_ACCOUNT,
    LIST_CUSTOMER_ACCOUNTS,
    LIST_EXTERNAL_ACCOUNTS,
)
