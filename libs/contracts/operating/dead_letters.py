"""Dead letters: the models, and the rows of services and of the gateway."""

from __future__ import annotations

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
"""Those that have queues with dead letters."""
MOST_AT_ONCE = 100

LetterId = f.FilterId


class ListDeadLetters(ListPage):
    """The first 1,000 letters of each queue, by the time at which they were refused.

    Args:
        queue: only those of this queue, named with or without `.dead`.
    """

    queue: f.Text | None = None


class ListDeadLettersOf(ListDeadLetters):
    """The first 1,000 letters of each queue, by the time at which they were refused."""

    service: Service | None = None


class DeadLetter(Model):
    """A message that was refused.

    Args:
        command_id: of a command that can be read; null of others.
        reason: for which it was refused, in a word.
        because: the same as the sentence of the consumer that refused it; null where the broker alone did.
    """

    service: str
    queue: str
    id: str
    """The letter's id: that of the message."""
    command_id: str | None
    operation: str | None
    """Of a command, its operation; null of others."""
    event_type: str | None
    """Of an event, its type; null of others."""
    sender: str | None
    """The service that sent the message; null where it is not known."""
    tenant: str | None
    """The tenant of the partner that it belongs to; null where it cannot be read."""
    reason: str | None
    because: str | None
    sent_at: f.UtcDateTime | None
    """When the message was sent; null where it does not say."""
    died_at: f.UtcDateTime | None
    """When it was refused; null where it does not say."""


class DeadLetterWithBody(DeadLetter):
    """A message that was refused, with its body."""

    body: str
    """The message as it was delivered, its sensitive fields sealed; cut off after 64 KB."""


class DeadLettersWithBody(Model):
    letters: list[DeadLetterWithBody]
    """The letters."""


class FindDeadLetters(Command):
    """Letters of this id, or of the command of this id."""

    letter_id: LetterId
    """The id of a letter, or of a command."""
    queue: f.Text | None = None
    """Only those of this queue, named with or without `.dead`."""


class FindDeadLettersOf(FindDeadLetters):
    """Letters of this id, or of the command of this id. Without `service`, all are searched."""

    service: Service | None = None


class FoundDeadLetters(DeadLettersWithBody):
    """The letters that were found."""

    unreachable: list[str]


class RemoveDeadLetters(Write):
    """Letters with these ids. An id of a command selects no letter here."""

    letter_ids: Annotated[list[LetterId], Field(min_length=1, max_length=MOST_AT_ONCE)]
    """Which letters."""
    queue: f.Text | None = None
    """Only those of this queue, named with or without `.dead`."""


class RemoveDeadLettersOf(RemoveDeadLetters):
    """Letters of one service, by their ids. An id of a command selects no letter here."""

    service: Service
    """The service whose queues have the letters."""


class RemoveDeadLetterOf(Write):
    """One letter."""

    letter_id: LetterId
    """The letter's id."""
    service: Service
    """The service whose queue has the letter."""
    queue: f.Text | None = None
    """The queue, named with or without `.dead`; every queue of the service when absent."""


class ReplayDeadLetters(RemoveDeadLetters):
    """Letters with these ids. An id of a command selects no letter here."""

    apply_again: bool = False
    """Also commands that may have been sent again and carried out so long ago that it is not known any more."""


class ReplayDeadLettersOf(ReplayDeadLetters):
    """Letters of one service, by their ids. An id of a command selects no letter here."""

    service: Service
    """The service whose queues have the letters."""


class ReplayDeadLetterOf(RemoveDeadLetterOf):
    """One letter."""

    apply_again: bool = False
    """Also a command that may have been sent again and carried out so long ago that it is not known any more."""


class LeftLetter(DeadLetter):
    """A letter that stays: it cannot be accepted anew."""

    why: str
    """Why it stays."""


class RemovedDeadLetters(Model):
    """What became of the letters."""

    removed: list[DeadLetter]
    """The letters that are gone from their queues."""
    left: list[LeftLetter]
    """The letters that stay."""


LIST_OF = for_each_service(
    SERVICES,
    "list_dead_letters",
    command=ListDeadLetters,
    reply=Listed[DeadLetter],
    summary="The dead letters of its queues",
)
FIND_OF = for_each_service(
    SERVICES,
    "find_dead_letters",
    command=FindDeadLetters,
    reply=DeadLettersWithBody,
    summary="The dead letters of an id, with their bodies",
)
REPLAY_OF = for_each_service(
    SERVICES,
    "replay_dead_letters",
    command=ReplayDeadLetters,
    reply=RemovedDeadLetters,
    changes=True,
    summary="Accept dead letters anew",
)
DISCARD_OF = for_each_service(
    SERVICES,
    "discard_dead_letters",
    command=RemoveDeadLetters,
    reply=RemovedDeadLetters,
    changes=True,
    summary="Remove dead letters",
)
OPERATIONS = of_services(LIST_OF, FIND_OF, REPLAY_OF, DISCARD_OF)

LIST_DEAD_LETTERS = Operation(
    name="gateway.list_dead_letters",
    method=HTTPMethod.GET,
    path="/operator/dead-letters",
    role=Role.VIEWER,
    command=ListDeadLettersOf,
    reply=Gathered[DeadLetter],
    message="Dead letters found",
    summary="List dead letters: commands and events that were refused",
    extension=True,
)
GET_DEAD_LETTERS = Operation(
    name="gateway.get_dead_letters",
    method=HTTPMethod.GET,
    path="/operator/dead-letters/{letter_id}",
    role=Role.VIEWER,
    command=FindDeadLettersOf,
    reply=FoundDeadLetters,
    message="Dead letters found",
    errors=(e.NotFound,),
    summary="Get the dead letters of an id, or of the command of this id, with their bodies",
    extension=True,
)
REPLAY_DEAD_LETTER = Operation(
    name="gateway.replay_dead_letter",
    method=HTTPMethod.POST,
    path="/operator/dead-letters/{letter_id}/replay",
    role=Role.OPERATOR,
    command=ReplayDeadLetterOf,
    reply=RemovedDeadLetters,
    message="Dead letter replayed",
    errors=(e.NotFound, e.InvalidState),
    summary="Have the service that owns the queue accept a letter anew",
    extension=True,
)
DISCARD_DEAD_LETTER = Operation(
    name="gateway.discard_dead_letter",
    method=HTTPMethod.POST,
    path="/operator/dead-letters/{letter_id}/discard",
    role=Role.OPERATOR,
    command=RemoveDeadLetterOf,
    reply=RemovedDeadLetters,
    message="Dead letter discarded",
    errors=(e.NotFound,),
    summary="Remove a letter for good",
    extension=True,
)
REPLAY_DEAD_LETTERS = Operation(
    name="gateway.replay_dead_letters",
    method=HTTPMethod.POST,
    path="/operator/dead-letters/replay",
    role=Role.OPERATOR,
    command=ReplayDeadLettersOf,
    reply=RemovedDeadLetters,
    message="Dead letters replayed",
    summary="Have the service that owns the queues accept letters anew; those that cannot be stay",
    extension=True,
)
DISCARD_DEAD_LETTERS = Operation(
    name="gateway.discard_dead_letters",
    method=HTTPMethod.POST,
    path="/operator/dead-letters/discard",
    role=Role.OPERATOR,
    command=RemoveDeadLettersOf,
    reply=RemovedDeadLetters,
    message="Dead letters discarded",
    summary="Remove letters for good",
    extension=True,
)
GATEWAY_OPERATIONS = (
    LIST_DEAD_LETTERS,
    GET_DEAD_LETTERS,
    REPLAY_DEAD_LETTER,
    DISCARD_DEAD_LETTER,
    REPLAY_DEAD_LETTERS,
    DISCARD_DEAD_LETTERS,
)
