"""What operators ask of several services alike: one internal row for each service, and one answer out of theirs.

The row with the path is the gateway's; it asks the services that it concerns side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from libs.contracts.errors import BanksideError
from libs.contracts.model import Command
from libs.contracts.operating.pages import Listed
from libs.contracts.operation import GATEWAY, OPERATE, Operation

T = TypeVar("T")

OfServices = Mapping[str, Operation]
"""The rows of one question, by the service that answers it."""


class Gathered(Listed[T], Generic[T]):
    """A page over several services; what those in `unreachable` have is missing."""

    unreachable: list[str]


def for_each_service(
    services: Iterable[str],
    verb_noun: str,
    *,
    command: type[Command],
    reply: Any,
    summary: str,
    changes: bool = False,
    errors: tuple[type[BanksideError], ...] = (),
) -> dict[str, Operation]:
    """The row of each service, by its name; asked by the gateway alone."""
    return {
        service: Operation(
            name=f"{service}.{OPERATE}{verb_noun}",
            command=command,
            reply=reply,
            summary=summary,
            changes=changes,
            errors=errors,
            asked_by=(GATEWAY,),
        )
        for service in services
    }


def of_services(*questions: OfServices) -> tuple[Operation, ...]:
    """The rows that travel over the broker."""
    return tuple(row for rows in questions for row in rows.values() if row.service != GATEWAY)


def of_gateway(*questions: OfServices) -> tuple[Operation, ...]:
    """The rows that the gateway answers about itself."""
    return tuple(row for rows in questions for row in rows.values() if row.service == GATEWAY)
