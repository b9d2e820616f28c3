"""Commands that services have accepted and not finished: the models, and the rows of services and of the gateway."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPMethod
from typing import Annotated, Literal, get_args

from pydantic import Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operating.services import Gathered, for_each_service, of_services
from libs.contracts.operation import Operation
from libs.contracts.principal import Role

Service = Literal["onboarding", "payments", "webhook_dispatcher"]
SERVICES: tuple[Service, ...] = get_args(Service)
"""Those that carry out commands."""


class CommandState(StrEnum):
    """`open`: it is driven. `parked`: it waits for an operator."""

    OPEN = "open"
    PARKED = "parked"


class ListCommands(ListPage):
    """Commands that are not final: by the time at which they were accepted; of the parked ones alone, parked.

    Args:
        state: `open`: those that are driven; `parked`: those that wait for an operator.
    """

    state: Annotated[CommandState, Field(strict=False)] | None = None
    tenant: f.Text | None = None


class ListCommandsOf(ListCommands):
    """Commands that are not final: by the time at which they were accepted; of the parked ones alone, parked."""

    service: Service | None = None


class OpenCommand(Model):
    """A command that is not final.

    Args:
        tenant: null when the stored principal cannot be read, which may be why the command is parked.
        faults: drives in a row that ended by a fault of ours, or were interrupted, as by the end of their process.
        last_error: the code of its last drive's error.
        next_attempt_at: null while it is parked.
        is_driven: a process drives it at the moment.
    """

    service: str
    command_id: str
    operation: str
    ordering_key: str | None
    """Commands with the same one are carried out one after the other; null where order does not matter."""
    tenant: str | None
    request_id: str
    accepted_at: f.UtcDateTime
    """When it was accepted."""
    attempts: int
    """How often it was driven so far."""
    faults: int
    last_error: str | None
    next_attempt_at: f.UtcDateTime | None
    is_driven: bool
    parked_at: f.UtcDateTime | None
    parked_because: str | None


class FindCommand(Command):
    command_id: f.Uuid


class FindCommandOf(FindCommand):
    """Without `service`, all are searched."""

    service: Service | None = None


class DecideOnCommand(Write):
    command_id: f.Uuid


class DecideOnCommandOf(DecideOnCommand):
    """The command of this id, at the service that has it."""

    service: Service


class Abandoned(Model):
    """A command that was ended for good."""

    service: str
    command_id: str
    operation: str
    abandoned_by: str
    """The operator who did it."""
    reason: str
    """The reason that the operator gave."""


LIST_OF = for_each_service(
    SERVICES,
    "list_commands",
    command=ListCommands,
    reply=Listed[OpenCommand],
    summary="Commands that are not final",
)
FIND_OF = for_each_service(
    SERVICES,
    "find_command",
    command=FindCommand,
    reply=OpenCommand,
    errors=(e.NotFound,),
    summary="One command that is not final",
)
RETRY_OF = for_each_service(
    SERVICES,
    "retry_command",
    command=DecideOnCommand,
    reply=OpenCommand,
    errors=(e.NotFound,),
    changes=True,
    summary="Have a command driven now",
)
ABANDON_OF = for_each_service(
    SERVICES,
    "abandon_command",
    command=DecideOnCommand,
    reply=Abandoned,
    errors=(e.NotFound, e.InvalidState),
    changes=True,
    summary="End a parked command for good",
)
OPERATIONS = of_services(LIST_OF, FIND_OF, RETRY_OF, ABANDON_OF)

LIST_COMMANDS = Operation(
    name="gateway.list_commands",
    method=HTTPMethod.GET,
    path="/operator/commands",
    role=Role.VIEWER,
    command=ListCommandsOf,
    reply=Gathered[OpenCommand],
    message="Commands found",
    summary="List commands that are accepted and not finished",
    extension=True,
)
GET_COMMAND = Operation(
    name="gateway.get_command",
    method=HTTPMethod.GET,
    path="/operator/commands/{command_id}",
    role=Role.VIEWER,
    command=FindCommandOf,
    reply=OpenCommand,
    message="Command found",
    errors=(e.NotFound, e.Unavailable),
    summary="Get a command that is not finished",
    extension=True,
)
RETRY_COMMAND = Operation(
    name="gateway.retry_command",
    method=HTTPMethod.POST,
    path="/operator/commands/{command_id}/retry",
    role=Role.OPERATOR,
    command=DecideOnCommandOf,
    reply=OpenCommand,
    message="Command is driven",
    errors=(e.NotFound,),
    summary="Have a command driven now; of those that must be in order it becomes the last",
    extension=True,
)
ABANDON_COMMAND = Operation(
    name="gateway.abandon_command",
    method=HTTPMethod.POST,
    path="/operator/commands/{command_id}/abandon",
    role=Role.OPERATOR,
    command=DecideOnCommandOf,
    reply=Abandoned,
    message="Command abandoned",
    errors=(e.NotFound, e.InvalidState),
    summary="End a parked command for good: a request that repeats it is answered `abandoned`",
    extension=True,
)
GATEWAY_OPERATIONS = (LIST_COMMANDS, GET_COMMAND, RETRY_COMMAND, ABANDON_COMMAND)
