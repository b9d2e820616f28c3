"""Several services are asked one question side by side, and their answers make one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.contracts import fields as f
from libs.contracts.errors import (
    InvalidState,
    NotFound,
    OutcomePending,
    ProviderTimeout,
    Unavailable,
)
from libs.contracts.model import Model
from libs.contracts.operating.pages import Listed, ListPage, Order, Place
from libs.contracts.operating.services import for_each_service
from libs.contracts.operation import Operation
from libs.contracts.principal import SERVICE
from libs.contracts.result import Result
from services.gateway.operating.asking import (
    ASK_SECONDS,
    MERGING_SECONDS,
    Answers,
    Services,
    merged,
)
from tests.support.pace import pace

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class Item(Model):
    at: f.UtcDateTime
    id: str


class Note(Model):
    text: f.Text


ROWS = for_each_service(
    ("onboarding", "payments", "gateway"),
    "list_items",
    command=ListPage,
    reply=Listed[Item],
    summary="List the items",
)
WRITES = for_each_service(
    ("payments",), "drop_item", command=ListPage, reply=Item, summary="Drop one", changes=True
)
Answerer = Callable[[], Awaitable[Any]]


class Sender:
    """Services that answer as the test says."""

    def __init__(self, **answers: Answerer) -> None:
        self._answers = answers

    async def query(self, operation: Operation, *_: object) -> Any:
        return {"data": await self._answers[operation.service]()}


def item(minute: int, name: str) -> Item:
    return Item(at=BEGINNING + timedelta(minutes=minute), id=name)


def answers(*items: Item, following: str | None = None) -> Answerer:
    async def answer() -> Any:
        page = Listed[Item](items=list(items), next=following)
        return page.model_dump(mode="json")

    return answer


def fails(error: Exception) -> Answerer:
    async def answer() -> Any:
        raise error

    return answer


async def of_the_gateway(*_: object) -> Result:
    return Result(Listed[Item](items=[item(2, "own")], next=None))


OWN: Mapping[str, Any] = {"gateway.operate_list_items": of_the_gateway}


async def ask(services: Services, **options: Any) -> Answers:
    return await services.ask_each(ROWS, SERVICE, ListPage(), time.time() + 5 * pace(), **options)


def page_of(found: Answers, limit: int = 50, order: Order = Order.NEWEST) -> Any:
    return merged(found, limit, order, lambda each: Place(each.at, each.id))


async def find(onboarding: Answerer, payments: Answerer) -> Any:
    own = {"gateway.operate_list_items": fails_as_handler(NotFound())}
    services = Services(Sender(onboarding=onboarding, payments=payments), own)
    return await services.ask_for_one(ROWS, SERVICE, ListPage(), time.time() + 5 * pace())


async def test_what_one_service_has_is_found_though_another_one_does_not_answer() -> None:
    found = await find(fails(Unavailable()), answers(item(1, "a")))

    assert [each.id for each in found.items] == ["a"]


async def test_text_that_callers_may_not_send_any_more_is_shown_to_operators() -> None:
    async def answer() -> Any:
        return {"text": "Acme\u202e"}

    rows = for_each_service(
        ("payments",), "get_note", command=ListPage, reply=Note, summary="Get a note"
    )
    services = Services(Sender(payments=answer), {})

    found = await services.ask_one(rows, "payments", SERVICE, ListPage(), time.time() + 5 * pace())

    assert found.text == "Acme\u202e"


async def test_services_are_asked_side_by_side_for_what_one_of_them_has() -> None:
    is_asked = asyncio.Event()

    async def waits_for_the_other() -> Any:
        await is_asked.wait()
        raise NotFound

    async def answer() -> Any:
        is_asked.set()
        return await answers(item(1, "a"))()

    async with asyncio.timeout(10 * pace()):
        found = await find(waits_for_the_other, answer)

    assert [each.id for each in found.items] == ["a"]


@pytest.mark.parametrize(
    ("of_payments", "told"), [(NotFound(), NotFound), (Unavailable(), Unavailable)]
)
async def test_what_none_has_is_not_found_unless_one_did_not_answer(
    of_payments: Exception, told: type[Exception]
) -> None:
    with pytest.raises(told):
        await find(fails(NotFound()), fails(of_payments))


async def test_answers_are_merged_by_time_and_cut_to_the_page() -> None:
    services = Services(
        Sender(onboarding=answers(item(3, "a"), item(1, "b")), payments=answers(item(2, "c"))), OWN
    )

    page = page_of(await ask(services), limit=3)

    assert [each.id for each in page.items] == ["a", "own", "c"]
    assert page.next == Place(BEGINNING + timedelta(minutes=2), "c").encode()
    assert page.unreachable == []


async def test_the_oldest_come_first_when_asked_for() -> None:
    services = Services(
        Sender(onboarding=answers(item(3, "a")), payments=answers(item(1, "c"))), OWN
    )

    page = page_of(await ask(services), order=Order.OLDEST)

    assert [each.id for each in page.items] == ["c", "own", "a"]
    assert page.next is None


async def test_a_page_of_one_service_that_goes_on_has_a_next() -> None:
    more = answers(item(9, "a"), following=Place(BEGINNING, "a").encode())
    services = Services(Sender(onboarding=more, payments=answers()), {})

    page = page_of(await ask(services, only="onboarding"), limit=1)

    assert page.next is not None


@pytest.mark.parametrize("error", [Unavailable(), RuntimeError("a bug")])
async def test_a_service_that_does_not_answer_is_named_and_the_others_are_shown(
    error: Exception,
) -> None:
    services = Services(Sender(onboarding=fails(Unavailable()), payments=answers()), {**OWN})
    broken = {"gateway.operate_list_items": fails_as_handler(error)}

    found = await ask(services)
    of_broken = await ask(Services(Sender(onboarding=answers(), payments=answers()), broken))

    assert (found.unreachable, sorted(found.by_service)) == (
        ["onboarding"],
        ["gateway", "payments"],
    )
    assert of_broken.unreachable == ["gateway"]


def fails_as_handler(error: Exception) -> Any:
    async def handle(*_: object) -> Result:
        raise error

    return handle


async def test_services_are_given_up_before_the_handlers_deadline() -> None:
    class AwaySender:
        """No service answers by the deadline of its query."""

        def __init__(self) -> None:
            self.deadlines: list[float] = []

        async def query(self, *arguments: Any) -> Any:
            self.deadlines.append(arguments[3])
            raise ProviderTimeout

    sender = AwaySender()
    services = Services(sender, OWN)
    deadline = time.time() + ASK_SECONDS

    found = await services.ask_each(ROWS, SERVICE, ListPage(), deadline)
    await services.ask_for_one(ROWS, SERVICE, ListPage(), deadline)

    assert found.unreachable == ["onboarding", "payments"]
    assert [given for given in sender.deadlines if given > deadline - MERGING_SECONDS] == []
    assert len(sender.deadlines) == 4


async def test_a_handler_of_the_gateway_that_takes_too_long_is_unreachable() -> None:
    async def never(*_: object) -> Result:
        await asyncio.Event().wait()
        raise AssertionError

    services = Services(
        Sender(onboarding=answers(), payments=answers()), {"gateway.operate_list_items": never}
    )

    assert (await ask(services, seconds=0.01)).unreachable == ["gateway"]


async def test_an_answer_that_is_not_of_the_row_makes_its_service_unreachable() -> None:
    async def nonsense() -> Any:
        return {"items": "none"}

    services = Services(Sender(onboarding=nonsense, payments=answers()), OWN)

    assert (await ask(services)).unreachable == ["onboarding"]


async def test_a_refusal_of_one_service_is_the_answer() -> None:
    services = Services(Sender(onboarding=fails(InvalidState()), payments=answers()), OWN)

    with pytest.raises(InvalidState):
        await ask(services)


async def test_a_write_goes_to_one_service_and_its_unreadable_answer_leaves_it_pending() -> None:
    services = Services(Sender(payments=answers()), {})
    arguments = (SERVICE, ListPage(), time.time() + 5 * pace())

    with pytest.raises(OutcomePending, match="outcome_pending"):
        await services.ask_one(WRITES, "payments", *arguments)
    with pytest.raises(NotFound):
        await services.ask_one(WRITES, "onboarding", *arguments)
