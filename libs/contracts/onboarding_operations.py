"""The rows of onboarding: customers, persons, external bank accounts, and who owns what."""

from http import HTTPMethod

from libs.contracts import customer_views as views
from libs.contracts import customers, ownership
from libs.contracts import reconciliation as r
from libs.contracts.errors import AlreadyExists, InvalidState, NotFound, ProviderRefused
from libs.contracts.operation import Operation, PageInfo, Resource, declared_in
from libs.contracts.principal import Scope

ONBOARD_CUSTOMER = Operation(
    name="onboarding.onboard_customer",
    method=HTTPMethod.POST,
    path="/partner/reseller/customers",
    resource=Resource.CUSTOMERS,
    scope=Scope.CUSTOMERS_WRITE,
    command=customers.OnboardCustomer,
    reply=views.OnboardingResult,
    message="Customer onboarding recorded",
    errors=(AlreadyExists, ProviderRefused),
    summary="Onboard a business with its persons and one external bank account",
)
UPDATE_BUSINESS: Operation[customers.UpdateBusiness, None] = Operation(
    name="onboarding.update_business",
    method=HTTPMethod.PATCH,
    path="/partner/reseller/customers/business/{customer_id}",
    resource=Resource.CUSTOMERS,
    scope=Scope.CUSTOMERS_WRITE,
    command=customers.UpdateBusiness,
    reply=None,
    message="Business updated",
    errors=(NotFound, AlreadyExists, InvalidState, ProviderRefused),
    summary="Update a business customer",
)
UPDATE_PERSON: Operation[customers.UpdatePerson, None] = Operation(
    name="onboarding.update_person",
    method=HTTPMethod.PATCH,
    path="/partner/reseller/customers/person/{person_id}",
    resource=Resource.CUSTOMERS,
    scope=Scope.CUSTOMERS_WRITE,
    command=customers.UpdatePerson,
    reply=None,
    message="Person updated",
    errors=(NotFound, InvalidState, ProviderRefused),
    summary="Update a person",
)
ADD_EXTERNAL_BANK_ACCOUNT = Operation(
    name="onboarding.add_external_bank_account",
    method=HTTPMethod.POST,
    path="/partner/reseller/customers/external_bank_account/{external_bank_account_id}",
    resource=Resource.CUSTOMERS,
    scope=Scope.CUSTOMERS_WRITE,
    command=customers.AddExternalBankAccount,
    reply=views.ExternalBankAccountAdded,
    message="External bank account added",
    errors=(NotFound, AlreadyExists, InvalidState, ProviderRefused),
    summary="Add an external bank account, which becomes the primary one",
)
LIST_CUSTOMERS = Operation(
    name="onboarding.list_customers",
    method=HTTPMethod.GET,
    path="/partner/reseller/customers",
    resource=Resource.CUSTOMERS,
    scope=Scope.CUSTOMERS_READ,
    command=customers.ListCustomers,
    reply=list[views.Customer],
    pagination=PageInfo,
    costly=True,
    message="Customers found",
    summary="List customers, newest first",
    extension=True,
)
GET_CUSTOMER = Operation(
    name="onboarding.get_customer",
    method=HTTPMethod.GET,
    path="/partner/reseller/customers/{customer_id}",
    resource=Resource.CUSTOMERS,
    scope=Scope.CUSTOMERS_READ,
    command=customers.GetCustomer,
    reply=views.Customer,
    message="Customer found",
    errors=(NotFound,),
    summary="Get a customer: status, issues, persons, accounts, external bank accounts",
    extension=True,
)

FIND_ACCOUNT_OWNER = Operation(
    name="onboarding.find_account_owner",
    command=ownership.FindAccountOwner,
    asked_by=("ledger_read", "payments"),
    reply=ownership.AccountOwner,
    errors=(NotFound,),
    summary="Who owns an account",
)
LIST_OWNED_ACCOUNTS = Operation(
    name="onboarding.list_owned_accounts",
    command=ownership.ListOwnedAccounts,
    asked_by=("ledger_read",),
    reply=ownership.OwnedAccounts,
    costly=True,
    summary="The accounts of the principal",
)
FIND_EXTERNAL_ACCOUNT = Operation(
    name="onboarding.find_external_account",
    command=ownership.FindExternalAccount,
    asked_by=("payments",),
    reply=ownership.ExternalAccountOwner,
    errors=(NotFound,),
    summary="Whose a linked external account is",
)
FIND_ACCOUNT_HOLDERS = Operation(
    name="onboarding.find_account_holders",
    command=ownership.FindAccountHolders,
    asked_by=("ledger_read",),
    reply=ownership.AccountHolders,
    summary="Whose accounts are, with the names of their customers",
)
LIST_LINKED_EXTERNAL_ACCOUNTS = Operation(
    name="onboarding.list_linked_external_accounts",
    command=ownership.ListLinkedExternalAccounts,
    asked_by=("ledger_read",),
    reply=ownership.LinkedExternalAccounts,
    summary="The linked external accounts of a customer",
)
# Operators ask it as the gateway, when they make a customer's key (`bankside keys create`).
FIND_CUSTOMER = Operation(
    name="onboarding.find_customer",
    command=ownership.FindCustomer,
    asked_by=("gateway", "ledger_read", "payments"),
    reply=ownership.CustomerOwner,
    errors=(NotFound,),
    summary="The tenant and name of a customer",
)

PAGE_RECORDED_CUSTOMERS = Operation(
    name="onboarding.page_held_customers",
    command=r.PageCustomers,
    asked_by=("reconciliation",),
    reply=r.RecordedCustomers,
    summary="Customers of all tenants with their persons and accounts, page by page",
)
FIND_RECORDED_CUSTOMERS = Operation(
    name="onboarding.find_held_customers",
    command=r.FindCustomers,
    asked_by=("reconciliation",),
    reply=r.RecordedCustomers,
    summary="Customers of any tenant by their ids",
)
PAGE_RECORDED_EXTERNAL_ACCOUNTS = Operation(
    name="onboarding.page_held_external_accounts",
    command=r.PageAfter,
    asked_by=("reconciliation",),
    reply=r.RecordedExternalAccounts,
    summary="Linked external accounts of all tenants, page by page",
)
FIND_RECORDED_EXTERNAL_ACCOUNTS = Operation(
    name="onboarding.find_held_external_accounts",
    command=r.FindByIds,
    asked_by=("reconciliation",),
    reply=r.RecordedExternalAccounts,
    summary="Linked external accounts of any tenant by their ids",
)
FIND_HOLDERS = Operation(
    name="onboarding.find_holders",
    command=r.FindHolders,
    asked_by=("reconciliation",),
    reply=r.Holders,
    summary="Whose records of providers are, of any tenant",
)
PAGE_ANSWERED_COMMANDS = Operation(
    name="onboarding.page_told_answers",
    command=r.PageAfter,
    asked_by=("reconciliation",),
    reply=r.AnsweredCommands,
    summary="What callers of onboarding were told, page by page",
)
FIND_ANSWERED_COMMANDS = Operation(
    name="onboarding.find_told_answers",
    command=r.FindByIds,
    asked_by=("reconciliation",),
    reply=r.AnsweredCommands,
    summary="What callers were told, by command ids",
)
LIST_FEED_POSITIONS = Operation(
    name="onboarding.list_feed_positions",
    command=r.ListFeedPositions,
    asked_by=("reconciliation",),
    reply=r.FeedPositions,
    summary="How far each feed was applied",
)

OPERATIONS = declared_in(globals(), Operation)
