"""What an operator does about saga steps: one whose outcome is not known, and a compensation that a provider refused.

The decision on a step is stored beside it. The saga acts on it when its command is driven next, as on an answer of the
provider: what has to be written together with the step's outcome is written then. Until that is committed, another
decision replaces it, by which a mistake is taken back. Once the command is over, only `done` is replaced: the command
has not ended by it, and the record that it names would be refused to its rightful owner. A step that is done must not
name the record of another customer: the saga would go on with that record at the bank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.principal import Principal
from libs.handling.operating.auditing import record
from libs.handling.operating.holding import hold
from libs.persistence import open_commands
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from services.onboarding.repository import holders, step_cases
from services.onboarding.repository.step_cases import Resolution, UnknownStep
from services.onboarding.step_answers import ANSWERS, record_ids_in, without_number


@dataclass(frozen=True, slots=True)
class Resolved:
    """A step on which an operator has decided.

    Args:
        step: as it was.
        is_open: its command goes on; else it was abandoned, and the decision is only recorded.
    """

    step: UnknownStep
    is_open: bool


async def resolve_step(
    database: Database,
    principal: Principal,
    saga_id: UUID,
    name: str,
    resolution: Resolution,
    *,
    reason: str,
    transit_seconds: float,
    result: Any = None,
) -> Resolved:
    """Record what became of a step, and have its command driven now.

    Args:
        principal: the operator.
        resolution: `absent`: the provider holds nothing of it, and the next drive sends it as if for the first time;
            `done`: it happened; `refused`: the provider refused it.
        transit_seconds: a send arrives within this time of its beginning, or never.
        result: the provider's answer to a step that is done, decoded.

    Raises:
        NotFound: there is no such step whose outcome is not known, or is known by a decision alone on which its
            command has not acted; or its command is over, and may have ended by that decision.
        InvalidState: its command is being driven; the result is not what the provider answers to it, or names a record
            of another customer; or it would be absent or refused while its last send may still arrive: then its command
            is held.
    """
    answer = _checked(name, resolution, result)
    async with database.transaction() as connection:
        found = await step_cases.find_unknown(connection, saga_id, name)
        command_id = _command_of(found, saga_id, name)
    async with database.transaction() as connection:
        step, is_open = await _locked(connection, command_id, saga_id, name)
        if answer is not None:
            await _refuse_what_another_has(connection, step, answer)
        in_transit = _seconds_in_transit(step, transit_seconds)
        if resolution == "done" or not in_transit:
            await _record_resolution(
                connection, principal, command_id, step, resolution, answer, reason=reason
            )
            return Resolved(step, is_open)
        held = await hold(
            connection,
            principal,
            "sagas.hold",
            command_id,
            transit_seconds=in_transit,
            reason=reason,
            saga_id=str(saga_id),
            step=name,
        )
    raise held


def _seconds_in_transit(step: UnknownStep, transit_seconds: float) -> float:
    """How much longer the last send of the step may still arrive."""
    if step.last_sent_seconds_ago is None:
        return 0.0
    return max(0.0, transit_seconds - step.last_sent_seconds_ago)


async def _record_resolution(
    connection: AsyncConnection,
    principal: Principal,
    command_id: UUID,
    step: UnknownStep,
    resolution: Resolution,
    answer: Mapping[str, Any] | None,
    *,
    reason: str,
) -> None:
    """Store the decision and its audit row, and have the command driven now."""
    await step_cases.resolve(
        connection,
        step,
        resolution,
        answer,
        by=principal.operator or principal.actor,
        reason=reason,
    )
    await open_commands.end_lease(connection, command_id)
    await open_commands.make_due(connection, command_id, unpark=False)
    await record(
        connection,
        principal,
        "sagas.resolve",
        saga_id=str(step.saga_id),
        step=step.step,
        resolution=resolution,
        reason=reason,
    )


async def _locked(
    connection: AsyncConnection, command_id: UUID, saga_id: UUID, name: str
) -> tuple[UnknownStep, bool]:
    """The step, and whether its command is open. The command is locked before its step, as by a process that drives it.

    Raises NotFound, InvalidState: as `resolve_step`.
    """
    command = await open_commands.lock(connection, command_id)
    if command is not None and command.is_driven:
        raise InvalidState("The provider is being asked right now. Try again shortly.")
    step = await step_cases.find_unknown(connection, saga_id, name)
    if step is None or step.command_id != command_id:
        raise InvalidState("The step was attempted meanwhile. Look at it again.")
    is_open = command is not None
    if not is_open and not step.is_unknown and step.decision != "done":
        # The command is over, and may have ended by the decision. Only one that is open acts on `done`.
        raise _not_unknown(saga_id, name)
    return step, is_open


async def settle_compensation(
    database: Database, principal: Principal, saga_id: UUID, name: str, *, reason: str
) -> None:
    """Record that an operator has seen to a refused compensation: it is listed no longer, and purged in time.

    Raises NotFound: there is none of this name to see to.
    """
    async with database.transaction() as connection:
        if not await step_cases.settle(connection, saga_id, name):
            raise NotFound(f"There is no refused compensation {saga_id} {name} to see to.")
        await record(
            connection, principal, "sagas.settle", saga_id=str(saga_id), step=name, reason=reason
        )


async def _refuse_what_another_has(
    connection: AsyncConnection, step: UnknownStep, answer: Mapping[str, Any]
) -> None:
    """Raises InvalidState: the answer names a record of another customer."""
    for record_id in record_ids_in(answer):
        holder = await holders.other_holder(connection, record_id, step.customer_id)
        if holder is not None:
            raise InvalidState(
                f"{record_id} is the record of another customer, {holder}: the step {step.step} of customer"
                f" {step.customer_id} has not made it. Look again what the provider has of this customer."
            )


def _checked(name: str, resolution: Resolution, result: Any) -> dict[str, Any] | None:
    if (resolution == "done") != (result is not None):
        raise InvalidState("The provider's answer is given for a step that is done, and only then.")
    if result is None:
        return None
    model = ANSWERS.get(without_number(name))
    if model is None:
        raise NotFound(f"There is no step {name}.")
    try:
        checked: dict[str, Any] = msgspec.to_builtins(msgspec.convert(result, model))
    except msgspec.ValidationError as error:
        raise InvalidState(f"That is not what the provider answers to {name}: {error}.") from None
    return checked


def _command_of(step: UnknownStep | None, saga_id: UUID, name: str) -> UUID:
    if step is None:
        raise _not_unknown(saga_id, name)
    if step.command_id is None:
        raise InvalidState(
            "The step was not attempted since the last upgrade. Wait for its next attempt."
        )
    return step.command_id


def _not_unknown(saga_id: UUID, name: str) -> NotFound:
    return NotFound(f"There is no step {name} of saga {saga_id} whose outcome is not known.")
