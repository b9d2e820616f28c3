"""The core banking provider over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from libs.contracts.errors import BanksideError, ProviderError
from libs.contracts.ids import parse_made_id
from libs.contracts.wires import WireState
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FeedCursor
from libs.providers.moments import aware
from libs.providers.outcomes import Absent, Accepted, Finding, Outcome, Reason, Unknown
from libs.providers.sandbox.feed_pages import read_entries
from libs.providers.sandbox.http import ProviderClient, segment
from libs.providers.sandbox.keyed_write import KeyedWrite
from libs.providers.writing import Capabilities
from services.payments.models import FeedEntry, WireAtBank, WireRecord, WireReport

REASONS = {
    "account_closed": Reason.ACCOUNT_CLOSED,
    "account_restricted": Reason.ACCOUNT_RESTRICTED,
    "external_account_not_linked": Reason.EXTERNAL_ACCOUNT_NOT_LINKED,
    "insufficient_funds": Reason.INSUFFICIENT_FUNDS,
}

REPORTED_STATES = {
    "wire.submitted": WireState.SUBMITTED,
    "wire.completed": WireState.COMPLETED,
    "wire.rejected": WireState.REJECTED,
    "wire.returned": WireState.RETURNED,
}


def state_of(status: str) -> WireState | None:
    """Of a wire as the bank shows it; None: its word is not one that we know."""
    return REPORTED_STATES.get(f"wire.{status}")


class WireEvent(msgspec.Struct, frozen=True):
    """An entry of the feed. Those about wires have our `transaction_id`."""

    position: int
    type: str
    occurred_at: datetime
    transaction_id: str | None = None
    reason: str | None = None


class ShownWire(msgspec.Struct, frozen=True):
    """A wire as the bank shows it."""

    transaction_id: str
    state: str
    amount: Decimal | None = None
    account_id: str | None = None
    reason: str | None = None


class AcceptedWire(msgspec.Struct, frozen=True):
    """What is used of the answer, or of the wire as the bank shows it (see `ports.Acceptance`), and what tells it from
    another one; of what an earlier release of the sandbox answered, its id alone.
    """

    transaction_id: str
    amount: Decimal | None = None
    account_id: str | None = None
    external_account_id: str | None = None
    status: str = msgspec.field(name="state", default="submitted")
    reason: str | None = None

    @property
    def state(self) -> WireState | None:
        return state_of(self.status)


@dataclass(frozen=True)
class WireWrite:
    """See `writing.ProviderWrite`. `find` asks by key, then by id: the bank forgets the key before the wire, and the
    answer under the key has the state in which the wire was at first.
    """

    keyed: KeyedWrite[AcceptedWire]
    client: ProviderClient
    wire: WireRecord

    @property
    def operation(self) -> str:
        return self.keyed.operation

    @property
    def capabilities(self) -> Capabilities:
        return self.keyed.capabilities

    @property
    def finds_only_sends(self) -> bool:
        return self.keyed.finds_only_sends

    async def send(self, key: UUID, deadline: float) -> Outcome[AcceptedWire]:
        outcome = await self.keyed.send(key, deadline)
        if isinstance(outcome, Accepted) and not self._is_about(outcome.answer):
            return Unknown("the answer is about another wire")
        return outcome

    async def find(self, key: UUID, deadline: float) -> Finding[AcceptedWire]:
        found = await self.keyed.find(key, deadline)
        if isinstance(found, Absent | Accepted):
            by_id = await self._find_by_id(key, deadline)
            if isinstance(found, Absent) or isinstance(by_id, Accepted):
                found = by_id
        if isinstance(found, Accepted) and not self._is_about(found.answer):
            # The answer will be the same at every look-up.
            return Unknown("the bank has another wire under the id", needs_operator=True)
        return found

    async def _find_by_id(self, transaction_id: UUID, deadline: float) -> Finding[AcceptedWire]:
        path = f"/wires/{segment(str(transaction_id))}"
        try:
            answer = await self.client.read("get_wire", path, deadline=deadline)
            return Accepted(msgspec.convert(answer, AcceptedWire))
        except ProviderRefusal as refusal:
            return Absent() if refusal.code == "not_found" else Unknown(str(refusal))
        except BanksideError as error:
            return Unknown(type(error).__name__)
        except msgspec.ValidationError:
            return Unknown("the bank's wire is of another shape", needs_operator=True)

    def _is_about(self, answer: AcceptedWire) -> bool:
        wire = self.wire
        return (
            answer.transaction_id == str(wire.transaction_id)
            and answer.amount in (None, wire.amount)
            and answer.account_id in (None, wire.sending_account_id)
            and answer.external_account_id in (None, wire.external_account_id)
        )


class SandboxCoreBanking:
    """See `ports.CoreBanking`."""

    def __init__(self, client: ProviderClient, capabilities: Capabilities) -> None:
        self._client = client
        self._capabilities = capabilities

    def send_wire(self, wire: WireRecord) -> WireWrite:
        body = {
            "account_id": wire.sending_account_id,
            "external_account_id": wire.external_account_id,
            "amount": f"{wire.amount:.2f}",
            "purpose": wire.purpose,
        }
        keyed = KeyedWrite(
            self._client,
            self._capabilities,
            "send_wire",
            "POST",
            "/wires",
            body,
            AcceptedWire,
            REASONS,
        )
        return WireWrite(keyed, self._client, wire)

    async def look_up(self, transaction_id: UUID, deadline: float) -> WireAtBank | None:
        """By id. See `ports.CoreBanking`."""
        path = f"/wires/{segment(str(transaction_id))}"
        try:
            answer = await self._client.read("get_wire", path, deadline=deadline)
            shown = msgspec.convert(answer, ShownWire)
        except ProviderRefusal as refusal:
            if refusal.code == "not_found":
                return None
            raise ProviderError from refusal
        except msgspec.ValidationError as error:
            raise ProviderError from error
        return WireAtBank(
            id=shown.transaction_id,
            state=state_of(shown.state),
            status=shown.state,
            amount=shown.amount,
            account_id=shown.account_id,
            reason=shown.reason,
        )

    async def transaction_id_of(self, bank_id: str, deadline: float) -> UUID | None:
        """The sandbox has no ids of its own. See `ports.CoreBanking`."""
        return parse_made_id(bank_id)


class CoreFeed:
    def __init__(self, client: ProviderClient) -> None:
        self._client = client

    async def fetch(self, after: FeedCursor, limit: int) -> list[FeedEntry]:
        """The entries after a position.

        Raises:
            ProviderTimeout, ProviderError, Unavailable: there is no usable answer.
        """
        return await read_entries(self._client, _entry, after, limit)


def _entry(item: Any) -> FeedEntry:
    event = msgspec.convert(item, WireEvent)
    state = REPORTED_STATES.get(event.type)
    if state is None:
        return FeedEntry(position=event.position, type=event.type)
    report = WireReport(
        transaction_id=event.transaction_id or "",
        wire_state=state,
        occurred_at=aware(event.occurred_at),
        reason=event.reason,
    )
    return FeedEntry(position=event.position, type=event.type, report=report)
