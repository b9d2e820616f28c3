"""What the comparisons need: our services' books and the providers'. Deadlines are Unix seconds.

Every method raises Unavailable, ProviderTimeout or ProviderError when the other side cannot be asked or its answer
cannot be used. Cursors are opaque; `None` begins at the start.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from libs.contracts.reconciliation import (
    AnsweredCommand,
    Contradiction,
    Holder,
    RecordedCustomer,
    RecordedExternalAccount,
    RecordedWire,
)
from libs.providers.companies import Role
from libs.providers.feed_entries import FeedCursor

RowT_co = TypeVar("RowT_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[RowT_co]):
    rows: Sequence[RowT_co]
    next_after: str | None


EmailForm = Callable[[str], str | None]
"""(an e-mail address of ours) -> the same as the provider is told it; None for one that it is not told."""
TextForm = Callable[[str], str]
"""(a text of ours) -> the same as the provider is told it."""


class IdentityRecord(msgspec.Struct, frozen=True):
    """A business or person at identity verification.

    Args:
        customer_id, business_customer_id: ours. Where the provider does not know our ids the first is empty, and
            `handlers.holders` fills both in by the ids of records that onboarding holds.
        business_record_id: of the business that a person belongs to, where the provider says it.
        status: None where the provider decides about the business alone, and has not closed it.
        fields_are_partial: only those in `fields` are known of the provider's.
        email_form: of e-mail addresses at the provider; None: it has them as we do.
        text_form: likewise, of all texts.
        made_under: the idempotency key of the step that made it, where the provider shows it.
    """

    identity_id: str
    customer_id: str
    kind: str
    status: str | None
    fields: dict[str, Any]
    business_customer_id: str | None = None
    business_record_id: str | None = None
    fields_are_partial: bool = False
    email_form: EmailForm | None = None
    text_form: TextForm | None = None
    made_under: str | None = None


class CoreCustomer(msgspec.Struct, frozen=True):
    """A business or person at core banking; see `IdentityRecord`."""

    core_id: str
    customer_id: str
    kind: str
    status: str
    fields: dict[str, Any]
    business_customer_id: str | None = None
    business_record_id: str | None = None
    fields_are_partial: bool = False
    email_form: EmailForm | None = None
    text_form: TextForm | None = None
    made_under: str | None = None


class CoreExternalAccount(msgspec.Struct, frozen=True):
    """`customer_id`, `made_under`: as of `IdentityRecord`. `primary`: None where the provider does not know which one
    is.
    """

    external_account_id: str
    customer_id: str
    routing_number: str
    account_number: str
    status: str
    primary: bool | None
    made_under: str | None = None


class CoreAccount(msgspec.Struct, frozen=True):
    """`customer_id`, `made_under`: as of `IdentityRecord`. `account_number`: None where it was not read with the
    account.
    """

    account_id: str
    account_number: str | None
    core_id: str
    customer_id: str
    status: str
    made_under: str | None = None


class CoreWire(msgspec.Struct, frozen=True):
    """A wire under the key of ours.

    Args:
        return_transaction_id: of the credit that gave a returned wire's money back; None where core banking does not
            say it.
        provider_id: core banking's own; None where it has none beside ours.
    """

    transaction_id: str
    state: str
    amount: Decimal
    account_id: str
    external_account_id: str
    return_transaction_id: str | None = None
    provider_id: str | None = None


class Posting(msgspec.Struct, frozen=True):
    """`amount` is signed: a debit is negative."""

    position: int
    transaction_id: str
    account_id: str
    amount: Decimal
    type: str


class Balance(msgspec.Struct, frozen=True):
    """`as_of_position` is that of the account's last posting that the total contains; 0 without one."""

    account_id: str
    total: Decimal
    available: Decimal
    held: Decimal
    as_of_position: int


class DepositLoad(msgspec.Struct, frozen=True):
    position: int
    account_id: str
    load_date: str
    swept_total: Decimal
    locations: int


class Payments(Protocol):
    async def page_of_wires(self, after: str | None, deadline: float) -> Page[RecordedWire]: ...

    async def wires(self, ids: Sequence[str], deadline: float) -> Mapping[str, RecordedWire]: ...

    async def contradictions_after(
        self, after: int, deadline: float
    ) -> Sequence[Contradiction]: ...

    async def contradictions(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, Contradiction]: ...


class Onboarding(Protocol):
    async def page_of_customers(
        self, after: str | None, deadline: float
    ) -> Page[RecordedCustomer]: ...

    async def customers(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, RecordedCustomer]: ...

    async def page_of_external_accounts(
        self, after: str | None, deadline: float
    ) -> Page[RecordedExternalAccount]: ...

    async def external_accounts(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, RecordedExternalAccount]: ...

    async def holders(self, ids: Sequence[str], deadline: float) -> Mapping[str, Holder]:
        """Whose records with these ids of providers are, and whose steps have these idempotency keys, by those ids and
        keys.
        """
        ...

    async def page_of_answers(
        self, after: str | None, deadline: float
    ) -> Page[AnsweredCommand]: ...

    async def answers(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, AnsweredCommand]: ...


class Feeds(Protocol):
    """Feeds are named `<service>/<feed>`."""

    async def applied(self, deadline: float) -> Mapping[str, FeedCursor]:
        """How far our services have applied each feed that they follow."""
        ...

    async def newest(self, role: Role, applied: FeedCursor, deadline: float) -> int:
        """See `NewestEntry`."""
        ...


class ProviderList(Protocol[RowT_co]):
    """One of a provider's lists, records that are closed included."""

    @property
    def requests_each(self) -> int:
        """Requests that it takes to look one record up, where the provider is asked for each by itself; 0 where one
        request names many.
        """
        ...

    async def page(self, after: str | None, deadline: float) -> Page[RowT_co]: ...

    async def by_ids(self, ids: Sequence[str], deadline: float) -> Sequence[RowT_co]:
        """The records with these ids of the provider's, however many; unknown ones are left out.

        Those of businesses come first: where they show their persons, persons after them cost no request.
        """
        ...

    async def of_customers(self, customer_ids: Sequence[str], deadline: float) -> Sequence[RowT_co]:
        """The records under these customer ids of ours; those of persons stand under the persons' own.

        Where the provider does not know our ids, a record that we do not hold stands under its own id
        (`handlers.holders`), and is found by that.
        """
        ...


class Financial(Protocol):
    async def postings_after(self, position: int, deadline: float) -> Sequence[Posting]:
        """The next postings, at most one page; empty: there is none yet."""
        ...

    async def loads_after(self, position: int, deadline: float) -> Sequence[DepositLoad]:
        """The next loads, at most one page."""
        ...

    async def location_total(
        self, account_id: str, load_date: str, deadline: float
    ) -> tuple[int, Decimal]:
        """How many locations the load of that day has, and the sum of their balances."""
        ...


NewestEntry = Callable[[FeedCursor, float], Awaitable[int]]
"""(applied, deadline) -> the position of the newest entry of a role's feed; 0 when there is none.

A provider whose entries have no positions is asked what follows `applied`: the result is the position of `applied` when
nothing does, and any greater one when something does.
"""


@dataclass(frozen=True, slots=True)
class Identity:
    customers: ProviderList[IdentityRecord]
    newest_entry: NewestEntry


@dataclass(frozen=True, slots=True)
class Core:
    """`posts_wires`: the debits of its wires are among the financial provider's postings, under our transaction ids."""

    customers: ProviderList[CoreCustomer]
    accounts: ProviderList[CoreAccount]
    external_accounts: ProviderList[CoreExternalAccount]
    wires: ProviderList[CoreWire]
    newest_entry: NewestEntry
    posts_wires: bool = True


@dataclass(frozen=True, slots=True)
class FinancialRole:
    """`books`, `balances`: None where the provider has no list of postings of all accounts in the order of posting.
    Then balances, debits of wires and deposit locations are not compared.
    """

    books: Financial | None
    balances: ProviderList[Balance] | None
    newest_entry: NewestEntry


@dataclass(frozen=True, slots=True)
class Providers:
    identity: Identity
    core: Core
    financial: FinancialRole


class Adapters(Protocol):
    """One company's adapters. A method is called for the roles that the company has."""

    def identity(self) -> Identity: ...

    def core(self) -> Core: ...

    def financial(self) -> FinancialRole: ...
