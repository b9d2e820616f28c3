"""A wire as the database has it, and an entry of core banking's feed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import msgspec

from libs.contracts.wires import WireReason, WireState
from libs.providers.writing import Earlier


@dataclass(frozen=True, slots=True)
class Step:
    """Arrival in a state."""

    state: WireState
    at: datetime
    reason: WireReason | None
    by: str | None = None
    """Who did it: a subscription key, or `operator:<name>`; None for what came from the bank or by itself."""
    comment: str | None = None
    """The reason that the key or operator in `by` gave."""
    reason_detail: str | None = None
    """The bank's own words for the reason, where it gave some."""


class PostalAddress(msgspec.Struct, frozen=True):
    street_1: str
    city: str
    state: str
    zip_code: str
    country: str
    street_2: str | None = None


class Creditor(msgspec.Struct, frozen=True):
    """The holder of the external account that a wire goes to, as onboarding had it when the wire was recorded."""

    name: str
    address: PostalAddress


@dataclass(frozen=True, slots=True)
class Payee:
    """The external account that a wire goes to, as onboarding has it. `creditor`: its holder."""

    creditor: Creditor
    linked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRecord:
    """One version of a wire.

    Args:
        transaction_id: the id of the command that asked for it, and its idempotency key at core banking.
        send_age_seconds: the age of `send_begun_at`, when it was read; None where that is null. `tables.wires` has a
            table of what the two marks of sends mean.
        last_sent_at: as stored.
        last_send_age_seconds: the age of `last_sent_at`, likewise.
        has_lost_sends_only: the send marks stand for a send that this database may have lost, not for one it recorded.
        canceled_by: the command that canceled it.
        creditor: the same at every send. Wires that an earlier release recorded have none, nor have
            those whose holder an onboarding of an earlier release did not tell.
        approval_expires_at: when it is canceled unless it was decided on; None for a wire that needed no approval.
        approved_at: when it was approved; its day is the one on which it counts against the daily limits.
        approved_by: the command that approved it, and sends it.
    """

    transaction_id: UUID
    tenant: str
    customer_id: str
    sending_account_id: str
    external_account_id: str
    amount: Decimal
    purpose: str
    send_age_seconds: float | None
    last_sent_at: datetime | None
    last_send_age_seconds: float | None
    canceled_by: UUID | None
    created_at: datetime
    creditor: Creditor | None
    history: tuple[Step, ...]
    approval_expires_at: datetime | None = None
    approved_at: datetime | None = None
    approved_by: UUID | None = None
    has_lost_sends_only: bool = False

    @property
    def send_command(self) -> UUID:
        """The command that sends it."""
        return self.approved_by or self.transaction_id

    @property
    def initiator(self) -> str | None:
        """The subscription key that asked for it; None in wires of earlier releases."""
        return self.history[0].by

    @property
    def sequence(self) -> int:
        """The number of steps in its history, and of events about it."""
        return len(self.history)

    @property
    def state(self) -> WireState:
        return self.history[-1].state

    @property
    def reason(self) -> WireReason | None:
        return self.history[-1].reason

    @property
    def reason_detail(self) -> str | None:
        return self.history[-1].reason_detail

    @property
    def updated_at(self) -> datetime:
        return self.history[-1].at

    @property
    def is_pending(self) -> bool:
        return self.state is WireState.PENDING_SUBMISSION

    @property
    def waits_for_approval(self) -> bool:
        return self.state is WireState.PENDING_APPROVAL

    @property
    def is_unknown(self) -> bool:
        """A send has begun, and its outcome is not known."""
        return self.is_pending and self.send_age_seconds is not None

    @property
    def earlier_sends(self) -> Earlier | None:
        """The sends before it was read; None when there certainly was none."""
        if self.send_age_seconds is None:
            return None
        # A send without a time may have been made just now.
        return Earlier(self.send_age_seconds, self.last_send_age_seconds or 0.0)

    @property
    def has_no_known_send(self) -> bool:
        """No send is recorded in this database's own history."""
        return self.send_age_seconds is None or self.has_lost_sends_only

    @property
    def was_accepted(self) -> bool:
        return self.has_been(WireState.SUBMITTED)

    def has_been(self, state: WireState) -> bool:
        return any(step.state is state for step in self.history)


@dataclass(frozen=True, slots=True)
class Begun:
    """A wire whose send has begun.

    Args:
        earlier: the sends before that may have been made.
        is_held_back: it may have been canceled, declined or refused in a lost history: core banking is asked, and the
            wire is not sent.
        found_means_lost: this database may lack commits, and knows of no send. If core banking has the wire, a commit
            was lost, and a case is opened unless one has listed the wire before.
        deadline: of the calls to the bank, in Unix seconds. Taken before the transaction in which the send began: a
            driver that stalls after it must not send what an operator has decided meanwhile.
    """

    wire: WireRecord
    earlier: Earlier | None
    deadline: float
    is_held_back: bool = False
    found_means_lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WireReport:
    """What core banking reports of a wire.

    Args:
        transaction_id: ours, or text that the bank gives in its place.
        occurred_at: time zone aware.
        reason: the bank's words for why it is in that state, where it gives some.
    """

    transaction_id: str
    wire_state: WireState
    occurred_at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireAtBank:
    """A wire as core banking shows it.

    Args:
        id: the bank's own, where it has one.
        state: None: the bank's word for it is not one that we know.
        status: the bank's word for it.
    """

    id: str | None
    state: WireState | None
    status: str | None
    amount: Decimal | None = None
    account_id: str | None = None
    reason: str | None = None

    def is_of(self, wire: WireRecord) -> bool:
        """Whether it may be this wire, by what the bank shows of it."""
        return self.amount in (None, wire.amount) and self.account_id in (
            None,
            wire.sending_account_id,
        )


@dataclass(frozen=True, slots=True)
class AbsentAtBank:
    """Core banking was asked just now and does not have the wire. A send takes effect within `transit_seconds`, or
    never.
    """

    transit_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    """An entry of core banking's feed; `report` is None when it is not about a wire's state."""

    position: int
    type: str
    report: WireReport | None = None
    provider_cursor: str | None = None
    event_id: str | None = None
