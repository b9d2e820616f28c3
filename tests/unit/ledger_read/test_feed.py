from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from libs.contracts.accounts import AccountEventData
from libs.contracts.errors import Unavailable
from libs.contracts.events import EVENT_TYPES
from libs.providers.feed_entries import FeedCursor, UndecodableEntry
from services.ledger_read.adapters.ownership import OnboardingOwnership
from services.ledger_read.adapters.sandbox.feed_translations import TRANSLATIONS
from services.ledger_read.adapters.sandbox.financial_feed import FinancialFeed
from services.ledger_read.handlers.feed_events import FeedEvents
from tests.unit.ledger_read.answers import ach_request, period, transaction
from tests.unit.ledger_read.conftest import Service, account_answer
from tests.unit.ledger_read.fakes import Onboarding


def entry(position: int, **changes: Any) -> dict[str, Any]:
    return {
        "position": position,
        "type": "account.opened",
        "account_id": "a_1",
        "customer_id": "c_1",
        "occurred_at": "2026-03-01T12:00:00.000001Z",
        "data": account_answer("a_1"),
        **changes,
    }


def test_every_event_of_the_table_that_is_ours_is_translated() -> None:
    ours = {name for name, event in EVENT_TYPES.items() if event.emitter == "ledger_read"}

    assert set(TRANSLATIONS) == ours


async def test_an_entry_becomes_news_with_the_account_number_cut(service: Service) -> None:
    service.bank.answers["/events?after=3&limit=10"] = (200, {"events": [entry(4)]})

    [fetched] = await FinancialFeed(service.client).fetch(FeedCursor(3), 10)

    assert fetched.position == 4
    assert fetched.event is not None
    assert fetched.event.customer_id == "c_1"
    assert fetched.event.resource_id == "a_1"
    assert fetched.event.occurred_at == datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
    assert isinstance(fetched.event.data, AccountEventData)
    assert fetched.event.data.account_number == "9012"
    assert fetched.event.data.object == "account"


@pytest.mark.parametrize(
    ("kind", "data", "resource_id", "told"),
    [
        (
            "transaction.created",
            transaction(1, direction="debit", amount="1234567890123456.70"),
            "txn_000001",
            {
                "object": "transaction",
                "account_id": "a_1",
                "account_number": "9012",
                "amount": Decimal("1234567890123456.70"),
                "debit_credit_flag": True,
                "settled_at": "2026-03-01T12:00:00.000001Z",
            },
        ),
        *(
            (f"ach.{what}", ach_request(1), "ach_000001", {"object": "ach", **ach_request(1)})
            for what in ("created", "submitted", "settled", "returned")
        ),
        (
            "statement.available",
            period(),
            "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77",
            {"object": "statement", "account_id": "a_1", "start_date": date(2026, 2, 1)},
        ),
        (
            "deposit_locations.updated",
            {"as_of_date": "2026-03-02", "locations": 3, "balance": "600000.01"},
            "a_1",
            {
                "object": "deposit_locations",
                "account_id": "a_1",
                "as_of_date": date(2026, 3, 2),
                "locations": 3,
                "balance": Decimal("600000.01"),
            },
        ),
    ],
)
async def test_an_entry_of_the_ledger_becomes_news_in_its_read_shape(
    service: Service, kind: str, data: Any, resource_id: str, told: dict[str, Any]
) -> None:
    service.bank.answers["/events"] = (200, {"events": [entry(1, type=kind, data=data)]})

    [fetched] = await FinancialFeed(service.client).fetch(FeedCursor(0), 10)

    assert fetched.event is not None
    assert fetched.event.event_type is EVENT_TYPES[kind]
    assert (fetched.event.resource_id, fetched.event.customer_id) == (resource_id, "c_1")
    assert type(fetched.event.data) is EVENT_TYPES[kind].data
    shown = fetched.event.data.model_dump()
    assert shown["customer_id"] == "c_1"
    assert {name: shown[name] for name in told} == told
    assert "formats" not in shown


async def test_a_type_that_is_not_known_keeps_its_position_without_being_read(
    service: Service,
) -> None:
    service.bank.answers["/events"] = (200, {"events": [entry(1, type="card.made", data=[7])]})

    [fetched] = await FinancialFeed(service.client).fetch(FeedCursor(0), 10)

    assert (fetched.position, fetched.event) == (1, None)


@pytest.mark.parametrize(
    "broken",
    [
        entry(0),
        entry(1, data={}),
        entry(1, occurred_at=None),
        {"position": 1},
        entry(1, type="transaction.created"),
        entry(1, type="ach.settled", data=ach_request(1, status="lost")),
    ],
)
async def test_a_broken_entry_is_not_skipped(service: Service, broken: dict[str, Any]) -> None:
    service.bank.answers["/events"] = (200, {"events": [broken]})

    with pytest.raises(UndecodableEntry) as raised:
        await FinancialFeed(service.client).fetch(FeedCursor(0), 10)

    assert raised.value.entry.position == 1


async def test_entries_before_a_broken_one_are_fetched(service: Service) -> None:
    service.bank.answers["/events"] = (200, {"events": [entry(4), entry(5, data={}), entry(6)]})

    fetched = await FinancialFeed(service.client).fetch(FeedCursor(3), 10)

    assert [one.position for one in fetched] == [4]


async def test_what_is_wrong_with_an_entry_is_told_without_its_values(service: Service) -> None:
    secret = account_answer("a_1") | {"status": 7, "account_number": "998877665544"}
    service.bank.answers["/events"] = (200, {"events": [entry(9, data=secret)]})

    with pytest.raises(UndecodableEntry) as raised:
        await FinancialFeed(service.client).fetch(FeedCursor(3), 10)

    faulty = raised.value.entry
    assert (faulty.position, faulty.type) == (9, "account.opened")
    assert "status" in faulty.problem
    assert faulty.outline is not None
    assert json.loads(faulty.outline)["data"]["account_number"] == "str"
    assert "998877665544" not in faulty.outline + faulty.problem


async def test_news_wait_while_onboarding_cannot_be_asked(service: Service) -> None:
    service.bank.answers["/events"] = (200, {"events": [entry(1)]})
    entries = await FinancialFeed(service.client).fetch(FeedCursor(0), 10)
    onboarding = Onboarding(failure=Unavailable())
    ownership = OnboardingOwnership(onboarding, patience_seconds=1, remembered=10)

    with pytest.raises(Unavailable):
        await FeedEvents(ownership).prepare(entries)
