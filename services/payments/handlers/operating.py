"""What operators read of wires, and do about them. Not scoped by a tenant: operators act for all."""

from __future__ import annotations

import time
from collections.abc import Mapping
from uuid import UUID

from libs.contracts.errors import BanksideError, InvalidState, NotFound, Unavailable
from libs.contracts.ids import id_of, parse_id
from libs.contracts.operating import search
from libs.contracts.operating import wires as contract
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.wires import WireState
from libs.handling.queries import QueryHandler
from libs.persistence import open_commands
from libs.persistence.engine import Database
from libs.persistence.lost_history import lost_history_seconds
from libs.persistence.open_commands import OpenCommand
from libs.providers.provider_words import one_line
from services.payments.approving import approve_as_operator, decline_as_operator
from services.payments.effective_policies import EffectivePolicies
from services.payments.models import AbsentAtBank, WireAtBank, WireRecord
from services.payments.ports import CoreBanking, Ownership
from services.payments.reasons import naming
from services.payments.repository import operating, wires
from services.payments.repository.stored_wires import by_ids
from services.payments.resolving import cancel_wire, record_shown, resolve_wire
from services.payments.settings import Settings
from services.payments.unsent import SEND_WAS_LOST
from services.payments.views import operator_wire

PROVIDER_SECONDS = 3.0
"""The longest wait for core banking's view of a wire; without it the rest is shown."""
ANSWER_SECONDS = 0.5
"""Kept back of the query's deadline for what follows."""

DECISIONS = {
    contract.WireDecision.ASK: None,
    contract.WireDecision.SUBMITTED: WireState.SUBMITTED,
    contract.WireDecision.REJECTED: WireState.REJECTED,
}
_NOT_CARRIED_OUT = (WireState.REJECTED, WireState.CANCELED, None)
"""States at the bank in which an operator's rejection contradicts nothing; None: a word of the bank that is not known
here, which the operator has to know.
"""
_MAY_BE_BEHIND = (WireState.SUBMITTED, WireState.COMPLETED)
"""States of a wire that the bank accepted, and from which it may move it on."""
FIND_ID = search.FIND_ID_OF[Settings.service]


class OperatingWires:
    """The database bounds each statement.

    Args:
        transit_seconds: a send of a wire arrives within this time of its beginning, or never.
    """

    def __init__(
        self,
        database: Database,
        core: CoreBanking,
        ownership: Ownership,
        effective: EffectivePolicies,
        *,
        transit_seconds: float,
    ) -> None:
        self._database = database
        self._core = core
        self._ownership = ownership
        self._effective = effective
        self._transit_seconds = transit_seconds

    def by_operation(self) -> Mapping[str, QueryHandler]:
        return {
            contract.LIST_WIRES.name: self.list_wires,
            contract.GET_WIRE.name: self.get_wire,
            contract.RESOLVE_WIRE.name: self.resolve_wire,
            contract.CANCEL_WIRE.name: self.cancel_wire,
            contract.APPROVE_WIRE.name: self.approve_wire,
            contract.DECLINE_WIRE.name: self.decline_wire,
            FIND_ID.name: self.find_id,
        }

    async def list_wires(
        self, _: Principal, command: contract.ListOperatorWires, __: float
    ) -> Result:
        async with self._database.snapshot() as connection:
            found = await operating.page(connection, command)
        page, following = cut(found, command.limit, _place)
        return Result(
            data=Listed[contract.OperatorWire](
                items=[contract.OperatorWire(**operator_wire(wire)) for wire in page],
                next=following,
            )
        )

    async def get_wire(
        self, _: Principal, command: contract.GetOperatorWire, deadline: float
    ) -> Result:
        transaction_id = id_of(command.transaction_id)
        async with self._database.snapshot() as connection:
            wire = await wires.find_any(connection, transaction_id)
            send = await open_commands.find(connection, wire.send_command) if wire else None
            request = await operating.request_of(connection, transaction_id)
        if wire is None:
            raise NotFound
        provider, provider_error = await self._ask_provider(transaction_id, deadline)
        return Result(
            data=contract.OperatorWireDetail(
                **operator_wire(wire),
                send=None if send is None else _send(send),
                request=None
                if request is None
                else contract.WireRequest(
                    subscription_key=request.subscription_key,
                    request_id=request.request_id,
                    accepted_at=request.accepted_at,
                ),
                provider=provider,
                provider_error=provider_error,
            )
        )

    async def resolve_wire(
        self, principal: Principal, command: contract.ResolveWire, deadline: float
    ) -> Result:
        transaction_id = id_of(command.transaction_id)
        decision = DECISIONS[command.decision]
        with naming(transaction_id):
            known = await self._find(transaction_id)
            if decision is not None and known is not None and known.is_unknown:
                await self._require_not_contradicted(known, decision, deadline)
            if decision is None and known is not None and known.state in _MAY_BE_BEHIND:
                wire = await record_shown(
                    self._database,
                    principal,
                    transaction_id,
                    await self._look_up(transaction_id, deadline),
                    reason=command.reason,
                )
            else:
                wire = await resolve_wire(
                    self._database,
                    principal,
                    transaction_id,
                    decision,
                    reason=command.reason,
                    transit_seconds=self._transit_seconds,
                )
        return Result(data=contract.OperatorWire(**operator_wire(wire)))

    async def cancel_wire(
        self, principal: Principal, command: contract.OperatorCancelWire, deadline: float
    ) -> Result:
        transaction_id = id_of(command.transaction_id)
        with naming(transaction_id):
            wire = await cancel_wire(
                self._database,
                principal,
                transaction_id,
                reason=command.reason,
                absent=await self._look_up_before_ending(transaction_id, deadline),
            )
        return Result(data=contract.OperatorWire(**operator_wire(wire)))

    async def approve_wire(
        self, principal: Principal, command: contract.OperatorApproveWire, deadline: float
    ) -> Result:
        transaction_id = id_of(command.transaction_id)
        with naming(transaction_id):
            await self._require_open_customer(principal, transaction_id, deadline)
            wire = await approve_as_operator(
                self._database,
                self._effective,
                principal,
                transaction_id,
                reason=command.reason,
            )
        return Result(data=contract.OperatorWire(**operator_wire(wire)))

    async def decline_wire(
        self, principal: Principal, command: contract.OperatorDeclineWire, deadline: float
    ) -> Result:
        transaction_id = id_of(command.transaction_id)
        with naming(transaction_id):
            wire = await decline_as_operator(
                self._database,
                principal,
                transaction_id,
                reason=command.reason,
                absent=await self._look_up_before_ending(transaction_id, deadline),
            )
        return Result(data=contract.OperatorWire(**operator_wire(wire)))

    async def find_id(self, _: Principal, command: search.FindId, deadline: float) -> Result:
        """A wire by the bank's id, too, which is not stored: the bank is asked, where the text is such an id."""
        wanted = await self._core.transaction_id_of(command.q, _patience(deadline))
        async with self._database.snapshot() as connection:
            commands = await operating.commands_of(connection, command.q)
            wanted = wanted or parse_id(command.q)
            ids = dict.fromkeys([*([wanted] if wanted else []), *commands])
            found = [_found_wire(wire) for wire in await by_ids(connection, [*ids])]
        if found:
            # A wire has the id of the command that asked for it: under that id the wire alone is shown.
            commands = {key: value for key, value in commands.items() if key != wanted}
        found += [_found_command(key, *value) for key, value in commands.items()]
        return Result(data=search.FoundIds(found=found))

    async def _require_open_customer(
        self, principal: Principal, transaction_id: UUID, deadline: float
    ) -> None:
        """Before an approval. A wire that the bank has was sent in a history that this database lost: approving it
        moves no money any more.

        Raises:
            InvalidState: the wire's customer was denied or canceled.
            ProviderTimeout, ProviderError, Unavailable: so it was, and the bank does not say whether it has the wire.
        """
        wire = await self._find(transaction_id)
        if wire is None or not wire.waits_for_approval:
            return
        patience = deadline - ANSWER_SECONDS
        try:
            await self._ownership.require_open_customer(principal, wire.customer_id, patience)
        except InvalidState:
            if await self._core.look_up(transaction_id, patience) is None:
                raise

    async def _ask_provider(
        self, transaction_id: UUID, deadline: float
    ) -> tuple[contract.WireAtProvider | None, str | None]:
        """What core banking says of the wire, or the code of the error that keeps it from saying so."""
        try:
            shown = await self._core.look_up(transaction_id, _patience(deadline))
        except BanksideError as error:
            return None, error.code
        return _at_provider(shown), None

    async def _look_up_before_ending(
        self, transaction_id: UUID, deadline: float
    ) -> AbsentAtBank | None:
        """Look the wire up before it is canceled or declined. Core banking is asked only where this database may lack a
        send that would have arrived by now; None: it was not asked.

        Raises:
            InvalidState: the bank has the wire.
            Unavailable: the bank cannot be asked.
        """
        async with self._database.transaction() as connection:
            lost_seconds = await lost_history_seconds(connection)
        if lost_seconds is None or lost_seconds < self._transit_seconds:
            return None
        if await self._look_up(transaction_id, deadline) is not None:
            raise InvalidState(SEND_WAS_LOST)
        return AbsentAtBank(self._transit_seconds)

    async def _require_not_contradicted(
        self, wire: WireRecord, decision: WireState, deadline: float
    ) -> None:
        """Before the decision of an operator, who may have looked at the bank before a send that it took, or for
        another wire. A bank that gives no answer says nothing: the operator has looked by other means.

        Raises:
            InvalidState: it would be rejected, and the bank has it and has not refused it; or it would be submitted,
                and the bank does not have it.
        """
        try:
            shown = await self._core.look_up(wire.transaction_id, _patience(deadline))
        except BanksideError:
            return
        if decision is WireState.SUBMITTED:
            if shown is None:
                raise InvalidState("The bank does not have the wire.")
            if not shown.is_of(wire):
                raise InvalidState("The bank has another wire under the id.")
        elif shown is not None and shown.is_of(wire) and shown.state not in _NOT_CARRIED_OUT:
            raise InvalidState(
                f"The bank has the wire as {shown.state}. Have it asked instead, without a decision."
            )

    async def _find(self, transaction_id: UUID) -> WireRecord | None:
        async with self._database.snapshot() as connection:
            return await wires.find_any(connection, transaction_id)

    async def _look_up(self, transaction_id: UUID, deadline: float) -> WireAtBank | None:
        """Raises Unavailable: the bank gives no answer."""
        try:
            return await self._core.look_up(transaction_id, _patience(deadline))
        except BanksideError as error:
            raise Unavailable(
                "The bank has to be asked about the wire, and gives no answer. Try again later."
            ) from error


def _patience(deadline: float) -> float:
    return min(deadline - ANSWER_SECONDS, time.time() + PROVIDER_SECONDS)


def _place(wire: WireRecord) -> Place:
    return Place(wire.created_at, str(wire.transaction_id))


def _send(send: OpenCommand) -> contract.WireSend:
    return contract.WireSend(
        attempts=send.attempts,
        last_error=send.last_error,
        next_attempt_at=None if send.parked_at else send.next_attempt_at,
        is_driven=send.is_driven,
        parked_at=send.parked_at,
        parked_because=send.parked_because,
    )


def _at_provider(shown: WireAtBank | None) -> contract.WireAtProvider:
    if shown is None:
        return contract.WireAtProvider(found=False)
    return contract.WireAtProvider(
        found=True,
        id=shown.id,
        state=shown.state,
        status=shown.status,
        amount=shown.amount,
        account_id=shown.account_id,
        reason=one_line(shown.reason) if shown.reason else None,
    )


def _found_wire(wire: WireRecord) -> search.FoundId:
    return search.FoundId(
        service=Settings.service,
        kind=search.Kind.WIRE,
        id=str(wire.transaction_id),
        tenant=wire.tenant,
        customer_id=wire.customer_id,
        label=f"{wire.amount:.2f} USD, {wire.state}",
    )


def _found_command(command_id: UUID, operation: str, request_id: str) -> search.FoundId:
    return search.FoundId(
        service=Settings.service,
        kind=search.Kind.COMMAND,
        id=str(command_id),
        label=operation,
        request_id=request_id,
    )
