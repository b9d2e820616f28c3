"""Asking several services one question, side by side, and making one answer of theirs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from libs.contracts.errors import (
    LOOK_BEFORE_REPEATING,
    BanksideError,
    NotFound,
    OutcomePending,
    Unavailable,
)
from libs.contracts.model import OF_ANY_RELEASE, Command
from libs.contracts.operating.pages import Listed, Order, Place
from libs.contracts.operating.services import Gathered, OfServices
from libs.contracts.operation import GATEWAY, Operation
from libs.contracts.principal import Principal
from libs.gathering import gather_or_cancel
from libs.handling.queries import QueryHandler, answered_error
from libs.handling.query_client import QuerySender

ASK_SECONDS = 6.0
"""A service that has not answered by then is unreachable. Services use up to 3 s of it as a margin."""
MERGING_SECONDS = 0.5
"""Services are not waited for beyond this time before a handler's deadline: what the others answered is still shown."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answers:
    """What each service answered: the data of its row's reply."""

    by_service: Mapping[str, Any]
    unreachable: list[str]


class Services:
    """Asks services, and the gateway itself where it is one of them.

    Args:
        own: the gateway's handlers of rows without a path.
    """

    def __init__(self, sender: QuerySender, own: Mapping[str, QueryHandler]) -> None:
        self._sender = sender
        self._own = own
        self._log = structlog.get_logger("operating")

    async def ask_each(
        self,
        rows: OfServices,
        principal: Principal,
        command: Command,
        deadline: float,
        *,
        only: str | None = None,
        seconds: float = ASK_SECONDS,
    ) -> Answers:
        """Ask each service, or `only` this one; `seconds` is the time that each of them has.

        Raises:
            BanksideError: of 4xx, as a service answered. What is a fault or takes too long makes a service unreachable.
        """
        until = min(deadline - MERGING_SECONDS, time.time() + seconds)
        found = await self._answered(rows, principal, command, until, only)
        for answer in found.values():
            if isinstance(answer, BanksideError) and answer.status < 500:
                raise answer
        faults = {name: item for name, item in found.items() if isinstance(item, BanksideError)}
        for name, fault in faults.items():
            self._log.warning("service_unreachable", asked=rows[name].name, code=fault.code)
        answers = {name: item for name, item in found.items() if name not in faults}
        return Answers(answers, sorted(faults))

    async def ask_for_one(
        self,
        rows: OfServices,
        principal: Principal,
        command: Command,
        deadline: float,
        *,
        only: str | None = None,
    ) -> Any:
        """The data of the service that has what is asked for, of all of them or of `only` this one.

        Raises:
            NotFound: none has it.
            BanksideError: a service that did not answer may have it.
        """
        until = deadline - MERGING_SECONDS
        if only is None:
            until = min(until, time.time() + ASK_SECONDS)
        found = await self._answered(rows, principal, command, until, only)
        error: BanksideError = NotFound()
        for answer in found.values():
            if not isinstance(answer, BanksideError):
                return answer
            if not isinstance(answer, NotFound):
                error = answer
        raise error

    async def _answered(
        self,
        rows: OfServices,
        principal: Principal,
        command: Command,
        deadline: float,
        only: str | None,
    ) -> dict[str, Any]:
        """By service, side by side: the data of its reply, or the error that it answered or is taken for."""
        asked = [name for name in rows if only in (None, name)]
        answers = await gather_or_cancel(
            (self._data_or_error(rows[name], principal, command, deadline) for name in asked),
            name="ask",
        )
        return dict(zip(asked, answers, strict=True))

    async def ask_one(
        self,
        rows: OfServices,
        service: str,
        principal: Principal,
        command: Command,
        deadline: float,
    ) -> Any:
        """The data of one service's reply.

        Raises:
            NotFound: the question is none of this service.
            OutcomePending: what changes something may have been done.
            BanksideError: as the service answered.
        """
        row = rows.get(service)
        if row is None:
            raise NotFound
        return await self._data(row, principal, command, deadline)

    async def _data_or_error(
        self, row: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any:
        try:
            return await self._data(row, principal, command, deadline)
        except BanksideError as error:
            return error

    async def _data(
        self, row: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any:
        if row.service == GATEWAY:
            try:
                async with asyncio.timeout(max(0.05, deadline - time.time())):
                    return (await self._own[row.name](principal, command, deadline)).data
            except Exception as error:
                raise answered_error(error, row) from error
        payload = await self._sender.query(row, principal, command, deadline)
        try:
            return adapter_of(row).validate_python(
                payload["data"], strict=False, extra="ignore", context={OF_ANY_RELEASE: True}
            )
        except ValidationError as error:
            self._log.error("reply_broken", operation=row.name)
            raise (
                Unavailable() if row.is_read else OutcomePending(LOOK_BEFORE_REPEATING)
            ) from error


@cache
def adapter_of(row: Operation) -> TypeAdapter[Any]:
    """Validates the data of its replies."""
    reply: Any = row.reply
    return TypeAdapter(reply)


def merged(answers: Answers, limit: int, order: Order, place: Callable[[T], Place]) -> Gathered[T]:
    """One page of the pages of services, each of which was asked for `limit` rows in this order."""
    pages: list[Listed[T]] = list(answers.by_service.values())
    items = sorted(
        (item for page in pages for item in page.items),
        key=lambda item: (place(item).at, place(item).id),
        reverse=order is Order.NEWEST,
    )
    more = len(items) > limit or any(page.next is not None for page in pages)
    shown = items[:limit]
    return Gathered(
        items=shown,
        next=place(shown[-1]).encode() if more and shown else None,
        unreachable=answers.unreachable,
    )
