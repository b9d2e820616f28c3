"""What services tell reconciliation of all that they hold: internal queries, paged by key.

They are answered for all tenants: only services can ask them, since they have neither method nor path, and whole books
are compared with those of providers, who know no tenant.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.customers import CustomerStatus
from libs.contracts.model import Command, Model
from libs.contracts.sensitive import Sensitive
from libs.contracts.wires import WireState

LARGEST_PAGE = 500
MAX_IDS = 100


class PageAfter(Command):
    """Records in the order of their ids, after `after`, at most `limit`."""

    after: str | None = None
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = LARGEST_PAGE


class FindByIds(Command):
    """The records with these ids; unknown ids are left out."""

    ids: Annotated[list[str], Field(max_length=MAX_IDS)]


class PageCustomers(PageAfter):
    """Customers in the order of their ids.

    Args:
        external_accounts: whether their external accounts are told too, whose number has no limit. A reconciliation
            that does not page them sends no such field, and gets them with their customers.
    """

    external_accounts: bool = True


class FindCustomers(FindByIds):
    """See `PageCustomers`."""

    external_accounts: bool = True


class ListFeedPositions(Command):
    """How far the service has applied each feed that it follows."""


class FeedPosition(Model):
    """`state`: where the provider's feed goes on, in the words of its adapter."""

    feed: str
    position: int
    state: str | None = None


class FeedPositions(Model):
    feeds: list[FeedPosition]


class Told(StrEnum):
    """The final answer of a command, as it is stored for its caller."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOTHING = "nothing"


class RecordedWire(Model):
    """A wire as payments has recorded it.

    Args:
        accepted: core banking had accepted it at some time.
        send_begun: it may have been sent.
        command_open: the command that sends it is not final.
        is_answer_unreadable: the final answer is stored, and payments' release cannot read it; `told` is nothing then.
    """

    transaction_id: str
    tenant: str
    customer_id: str
    sending_account_id: str
    external_account_id: str
    amount: f.Number
    state: Annotated[WireState, Field(strict=False)]
    accepted: bool
    send_begun: bool
    command_open: bool
    told: Annotated[Told, Field(strict=False)]
    is_answer_unreadable: bool = False
    updated_at: f.UtcDateTime


class RecordedWires(Model):
    wires: list[RecordedWire]
    next_after: str | None


class Contradiction(Model):
    """Something that a provider reported and payments' record of a wire does not allow; it was not applied."""

    contradiction_id: int
    kind: str
    transaction_id: str
    feed_position: int | None
    ours: str | None
    theirs: str | None
    recorded_at: f.UtcDateTime


class PageContradictions(Command):
    """Contradictions in the order in which they were recorded."""

    after: int = 0
    limit: Annotated[int, Field(ge=1, le=LARGEST_PAGE)] = LARGEST_PAGE


class Contradictions(Model):
    contradictions: list[Contradiction]


class RecordedParty(Model):
    """A business or one of its persons. `fields` are what providers are told of it, but for what is sensitive."""

    customer_id: str
    kind: Literal["business", "person"]
    identity_id: str | None
    identity_status: str | None
    core_id: str | None
    fields: dict[str, Any]
    ein: Annotated[str, Sensitive()] | None
    tin: Annotated[str, Sensitive()] | None
    date_of_birth: Annotated[str, Sensitive()] | None


class RecordedAccount(Model):
    account_id: str
    account_number: str
    account_group: str
    status: str


class RecordedExternalAccount(Model):
    """A linked one; drafts are not told.

    Args:
        customer_id: empty where the account is told within its customer.
    """

    external_account_id: str
    customer_id: str = ""
    primary: bool
    routing_number: str
    account_number: Annotated[str, Sensitive()]


class RecordedExternalAccounts(Model):
    external_accounts: list[RecordedExternalAccount]
    next_after: str | None


class RecordedCustomer(Model):
    """A business with its persons and accounts, the business itself first among its parties.

    Args:
        command_open: a command of the customer, its onboarding included, is not final and may send something. One that
            waits for the identity provider's verdict sends nothing.
        external_accounts: only where they were asked for.
    """

    tenant: str
    customer_id: str
    status: Annotated[CustomerStatus, Field(strict=False)]
    command_open: bool
    parties: list[RecordedParty]
    accounts: list[RecordedAccount]
    external_accounts: list[RecordedExternalAccount] = Field(default_factory=list)
    updated_at: f.UtcDateTime


class RecordedCustomers(Model):
    customers: list[RecordedCustomer]
    next_after: str | None


class FindHolders(Command):
    """Whose records with these ids of providers are: of businesses, persons, accounts and external accounts.

    Args:
        ids: of records, or the idempotency keys of the steps that made them, whose records may not be known yet.
    """

    ids: Annotated[list[str], Field(max_length=MAX_IDS)]


class Holder(Model):
    """To whom the record of a provider belongs.

    Args:
        record_id: an id or an idempotency key that was asked for.
        customer_id: the business to which the record belongs.
        party_id: the business or person whose record it is; of accounts and steps the business.
    """

    record_id: str
    customer_id: str
    party_id: str


class Holders(Model):
    """Records of which we hold nothing are left out."""

    holders: list[Holder]


class AnsweredCommand(Model):
    """The ids that the caller of a successful command was told.

    Args:
        customer_id: the business that the command was about.
    """

    command_id: str
    operation: str
    customer_id: str
    account_id: str | None
    external_account_id: str | None


class AnsweredCommands(Model):
    answers: list[AnsweredCommand]
    next_after: str | None


class StartRun(Command):
    """A reconciliation run as soon as the current one, if any, has ended. Asked again before it began, it is the same
    run. `cause` is shown to operators.
    """

    cause: Annotated[str, Field(min_length=1, max_length=200)]


class RequestedRun(Model):
    run_id: str
