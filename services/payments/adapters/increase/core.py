"""Wires at Increase."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from uuid import UUID

from increase import AsyncIncrease
from increase.types.wire_transfer_create_params import (
    Creditor as CreditorParams,
)
from increase.types.wire_transfer_create_params import CreditorAddressStructured

from libs.contracts.errors import BanksideError, ProviderError
from libs.contracts.ids import parse_made_id
from libs.contracts.wires import WireState
from libs.providers.errors import ProviderRefusal
from libs.providers.feed_entries import FETCH_SECONDS
from libs.providers.increase.accounts import CLOSED, retrieve_account, status_of
from libs.providers.increase.answers import read_answer
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.entities import ACTIVE, retrieve_entity
from libs.providers.increase.external_accounts import ARCHIVED, retrieve_external_account
from libs.providers.increase.keyed_write import KeyedWrite
from libs.providers.increase.lists import LARGEST_PAGE, read_page
from libs.providers.increase.money import amount_of, cents_of
from libs.providers.increase.new_statuses import note_new_status
from libs.providers.increase.refusals import NOT_FOUND
from libs.providers.increase.wire_states import STATES
from libs.providers.increase.wires import Wire, list_wires, retrieve_wire, wires_having_key
from libs.providers.newest_records import NewestPage
from libs.providers.outcomes import Finding, Outcome, Reason, Refused, Unknown
from libs.providers.writing import Capabilities
from services.payments.adapters.increase.wire_text import is_legible, wire_text, words_of
from services.payments.models import Creditor, WireAtBank, WireRecord

LONGEST_NAME = 140
LONGEST_MESSAGE = 140
LONGEST_LINE = 35
"""Characters of each part of an address that Fedwire carries, at most."""
LONGEST_POSTAL_CODE = 16
ILLEGIBLE_NAME = "creditor_name_not_legible"
"""Ours, in the place of a code of Increase's: what it was sent would name no one."""
_WIRE_ID = re.compile(r"\w*wire_transfer_\w+", re.ASCII)
"""Increase puts further text in front where no money moves."""


@dataclass(frozen=True, slots=True)
class AcceptedWire:
    """See `ports.Acceptance`."""

    transaction_id: str
    state: WireState | None
    reason: str | None


@dataclass(frozen=True)
class WireWrite:
    """See `writing.ProviderWrite`. A wire has to name its creditor; one of a release that kept none has none."""

    keyed: KeyedWrite[Wire, AcceptedWire]
    creditor: Creditor | None

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
        if self.creditor is None:
            # The wire has none at every attempt: only an operator ends it.
            why = "the holder of the external account is not known"
            return Unknown(why, sent=False, needs_operator=True)
        if not is_legible(_name(self.creditor)):
            return Refused(
                Reason.PROVIDER_REFUSED,
                ILLEGIBLE_NAME,
                "The name of the creditor has no letter or digit that wires carry.",
            )
        return await self.keyed.send(key, deadline)

    async def find(self, key: UUID, deadline: float) -> Finding[AcceptedWire]:
        return await self.keyed.find(key, deadline)


class IncreaseCoreBanking:
    """See `ports.CoreBanking`."""

    def __init__(self, client: IncreaseClient, capabilities: Capabilities) -> None:
        self._client = client
        self._capabilities = capabilities

    def send_wire(self, wire: WireRecord) -> WireWrite:
        async def create(sdk: AsyncIncrease, key: str) -> Wire:
            assert wire.creditor is not None
            answer = await sdk.wire_transfers.with_raw_response.create(
                account_id=wire.sending_account_id,
                external_account_id=wire.external_account_id,
                amount=cents_of(wire.amount),
                creditor=_creditor(wire.creditor),
                remittance={
                    "category": "unstructured",
                    "unstructured": {"message": wire_text(wire.purpose, LONGEST_MESSAGE)},
                },
                idempotency_key=key,
            )
            return read_answer(answer, Wire)

        async def why_refused(_: ProviderRefusal, deadline: float) -> Reason:
            try:
                return await self._why_refused(wire, deadline)
            except (BanksideError, ProviderRefusal):
                return Reason.PROVIDER_REFUSED

        keyed = KeyedWrite(
            self._client,
            self._capabilities,
            "send_wire",
            create,
            wires_having_key,
            retrieve_wire,
            lambda made: _accepted(made) if _is(made, wire) else None,
            why_refused,
        )
        return WireWrite(keyed, wire.creditor)

    async def look_up(self, transaction_id: UUID, deadline: float) -> WireAtBank | None:
        """By its idempotency key, which it has for ever. See `ports.CoreBanking`."""
        key = str(transaction_id)
        try:
            page = await self._client.read(
                "find_wire",
                lambda sdk: wires_having_key(sdk, key),
                deadline=deadline,
            )
        except ProviderRefusal as refusal:
            raise ProviderError from refusal
        found = next((wire for wire in page.data if wire.idempotency_key == key), None)
        return None if found is None else _shown(found)

    async def transaction_id_of(self, bank_id: str, deadline: float) -> UUID | None:
        """See `ports.CoreBanking`."""
        if not _WIRE_ID.fullmatch(bank_id):
            return None
        try:
            found = await self._client.read(
                "get_wire", lambda sdk: retrieve_wire(sdk, bank_id), deadline=deadline
            )
        except ProviderRefusal as refusal:
            if refusal.code == NOT_FOUND:
                return None
            raise ProviderError from refusal
        return parse_made_id(found.idempotency_key or "")

    async def _why_refused(self, wire: WireRecord, deadline: float) -> Reason:
        """Increase gives its reason in words only: what it says of the accounts now shows which one it was.

        Raises BanksideError, ProviderRefusal: it cannot be found out.
        """
        read = self._client.read
        account = await read(
            "get_account",
            lambda sdk: retrieve_account(sdk, wire.sending_account_id),
            deadline=deadline,
        )
        if status_of(account) == CLOSED:
            return Reason.ACCOUNT_CLOSED
        external_account = await read(
            "get_external_account",
            lambda sdk: retrieve_external_account(sdk, wire.external_account_id),
            deadline=deadline,
        )
        if external_account.status == ARCHIVED:
            return Reason.EXTERNAL_ACCOUNT_NOT_LINKED
        entity_id = account.entity_id
        entity = await read(
            "get_entity", lambda sdk: retrieve_entity(sdk, entity_id), deadline=deadline
        )
        if entity.status != ACTIVE:
            return Reason.ACCOUNT_RESTRICTED
        balance = await read(
            "get_balance",
            lambda sdk: sdk.accounts.balance(wire.sending_account_id),
            deadline=deadline,
        )
        if amount_of(balance.available_balance) < wire.amount:
            return Reason.INSUFFICIENT_FUNDS
        return Reason.PROVIDER_REFUSED


def _creditor(creditor: Creditor) -> CreditorParams:
    address = creditor.address
    structured: CreditorAddressStructured = {
        "line1": wire_text(address.street_1, LONGEST_LINE),
        "city": wire_text(address.city, LONGEST_LINE),
        "state": wire_text(address.state, LONGEST_LINE),
        "postal_code": wire_text(address.zip_code, LONGEST_POSTAL_CODE),
        "country": address.country,
    }
    if address.street_2:
        structured["line2"] = wire_text(address.street_2, LONGEST_LINE)
    return {"name": _name(creditor), "address": {"structured": structured}}


def _name(creditor: Creditor) -> str:
    return wire_text(creditor.name, LONGEST_NAME)


def _accepted(made: Wire) -> AcceptedWire:
    """Of a wire that has the key of one of ours. In any status it was accepted: a refused wire is no object."""
    state = STATES.get(made.status)
    if state is None:
        note_new_status("wire_transfer", made.status)
    return AcceptedWire(made.idempotency_key or "", state, words_of(made))


def _shown(wire: Wire) -> WireAtBank:
    return WireAtBank(
        id=wire.id,
        state=STATES.get(wire.status),
        status=wire.status,
        amount=amount_of(wire.amount),
        account_id=wire.account_id,
        reason=words_of(wire),
    )


def _is(made: Wire, wire: WireRecord) -> bool:
    """Whether the wire at Increase is the one that was ordered."""
    return (made.amount, made.account_id, made.external_account_id) == (
        cents_of(wire.amount),
        wire.sending_account_id,
        wire.external_account_id,
    )


class NewestWires:
    """The keys of Increase's wires, the newest first, for `newest_records`. A wire of others may have none."""

    def __init__(self, client: IncreaseClient) -> None:
        self._client = client

    async def fetch(self, after: str | None, limit: int) -> NewestPage:
        """Raises ProviderTimeout, ProviderError, Unavailable: there is no usable answer."""
        page = await read_page(
            self._client,
            "list_wires",
            lambda sdk, cursor: list_wires(sdk, cursor, min(limit, LARGEST_PAGE)),
            after,
            deadline=time.time() + FETCH_SECONDS,
        )
        keys = [wire.idempotency_key for wire in page.rows if wire.idempotency_key is not None]
        return NewestPage(keys, page.next_cursor)
