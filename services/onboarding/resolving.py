"""What an operator does about a saga step whose outcome is not known.

The decision is stored beside the step. The saga acts on it when its command is driven next, as on an answer of the
provider: what has to be written together with the step's outcome is written then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from libs.persistence import audit
from libs.persistence.engine import Database
from services.onboarding.repository import open_commands, step_cases
from services.onboarding.repository.step_cases import Resolution, UnknownStep
from services.onboarding.step_answers import ANSWERS, without_number


class CannotResolve(Exception):
    """The step is not one that can be resolved so; the message says why."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Args:
    step: as it was.
    is_open: its command goes on; else it was abandoned, and the decision is only recorded.
    """

    step: UnknownStep
    is_open: bool


async def resolve_step(
    database: Database,
    saga_id: UUID,
    name: str,
    resolution: Resolution,
    *,
    by: str,
    reason: str,
    result: Any = None,
) -> Resolved:
    """Record what became of a step, and have its command driven now.

    Args:
        resolution: `absent`: the provider holds nothing of it, and the next drive sends it as if for the first time;
            `done`: it happened; `refused`: the provider refused it.
        result: the provider's answer to a step that is done, decoded.

    Raises:
        CannotResolve: there is no such step, its outcome is known, its command is being driven, or the result is not
            what the provider answers to it.
    """
    answer = _checked(name, resolution, result)
    async with database.transaction() as connection:
        found = await step_cases.find_unknown(connection, saga_id, name)
        command_id = _command_of(found, saga_id, name)
    async with database.transaction() as connection:
        # The command is locked before its step, as by a process that drives it.
        is_driven = await open_commands.lock(connection, command_id)
        if is_driven:
            raise CannotResolve("The provider is being asked right now. Try again shortly.")
        step = await step_cases.find_unknown(connection, saga_id, name)
        if step is None or step.command_id != command_id:
            raise CannotResolve("The step was attempted meanwhile. Look at it again.")
        is_open = is_driven is not None
        await step_cases.resolve(
            connection, step, resolution, answer, is_final=not is_open, by=by, reason=reason
        )
        await open_commands.hasten(connection, command_id)
        await audit.append(
            connection,
            [
                audit.by_operator(
                    by,
                    "sagas.resolve",
                    saga_id=str(saga_id),
                    step=name,
                    resolution=resolution,
                    reason=reason,
                )
            ],
        )
    return Resolved(step, is_open)


def _checked(name: str, resolution: Resolution, result: Any) -> Any:
    if (resolution == "done") != (result is not None):
        raise CannotResolve(
            "The provider's answer is given for a step that is done, and only then."
        )
    if result is None:
        return None
    model = ANSWERS.get(without_number(name))
    if model is None:
        raise CannotResolve(f"There is no step {name}.")
    try:
        return msgspec.to_builtins(msgspec.convert(result, model))
    except msgspec.ValidationError as error:
        raise CannotResolve(f"That is not what the provider answers to {name}: {error}.") from None


def _command_of(step: UnknownStep | None, saga_id: UUID, name: str) -> UUID:
    if step is None:
        raise CannotResolve(
            f"There is no step {name} of saga {saga_id} whose outcome is not known."
        )
    if step.command_id is None:
        raise CannotResolve(
            "The step was not attempted since the last upgrade. Wait for its next attempt."
        )
    return step.command_id
