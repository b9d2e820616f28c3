"""Who owns an account: internal queries that onboarding answers and the services that read accounts ask."""

from __future__ import annotations

from libs.contracts import fields as f
from libs.contracts.accounts import LinkedExternalAccount
from libs.contracts.customers import Address
from libs.contracts.model import Command, Model


class FindAccountOwner(Command):
    """Answered within the principal's tenant, and within its customer for a customer key."""

    account_id: str


class ListOwnedAccounts(Command):
    """The principal's accounts in the order of their ids, after `after`, at most `limit`."""

    after: str | None = None
    limit: int = 1000


class FindExternalAccount(Command):
    """Whether an external account is linked; answered as `FindAccountOwner`."""

    external_account_id: str


class FindCustomer(Command):
    """The tenant of a customer; asked by services for feed entries and by operators, without a tenant's scope."""

    customer_id: str


class FindAccountHolders(Command):
    """Of at most 1,000 accounts, of any tenant: for what a provider says of accounts."""

    account_ids: list[str]


class ListLinkedExternalAccounts(Command):
    """The linked external accounts of a customer of any tenant: for a provider that does not know whose they are."""

    customer_id: str


class AccountOwner(Model):
    account_id: str
    customer_id: str


class ExternalAccountOwner(Model):
    """With the account's holder, whom a wire to it names as its creditor, and when it was linked."""

    external_account_id: str
    customer_id: str
    name_on_account: str
    address_on_account: Address
    linked_at: f.UtcDateTime


class AccountHolder(Model):
    """What of an account is ours: whose it is, and what its customer is called."""

    account_id: str
    customer_id: str
    business_name: str
    dba: str | None


class AccountHolders(Model):
    """Of the accounts that are known; the others are left out."""

    holders: list[AccountHolder]


class LinkedExternalAccounts(Model):
    """The primary one first, then the newest first."""

    external_accounts: list[LinkedExternalAccount]


class OwnedAccounts(Model):
    accounts: list[AccountOwner]
    next_after: str | None


class CustomerOwner(Model):
    """`is_final`: denied or canceled, so that it gets no account and sends no wires any more. An onboarding of an
    earlier release says it of no customer.
    """

    customer_id: str
    tenant: str
    business_name: str
    dba: str | None
    is_final: bool = False
