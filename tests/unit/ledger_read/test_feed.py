from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from libs.contracts.accounts import AccountEventData
from libs.contracts.errors import ProviderError, Unavailable
from libs.contracts.events import EVENT_TYPES
from services.ledger_read.adapters.financial_feed import TRANSLATIONS, FinancialFeed
from services.ledger_read.adapters.ownership import OnboardingOwnership
from services.ledger_read.handlers.feed_events import FeedEvents
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


def test_every_account_event_of_the_table_is_translated() -> None:
    ours = {name for name, event in EVENT_TYPES.items() if event.emitter == "ledger_read"}

    assert set(TRANSLATIONS) == ours


async def test_an_entry_becomes_news_with_the_account_number_cut(service: Service) -> None:
    service.bank.answers["/events?after=3&limit=10"] = (200, {"events": [entry(4)]})

    [fetched] = await FinancialFeed(service.client).fetch(3, 10)

    assert fetched.position == 4
    assert fetched.news is not None
    assert fetched.news.customer_id == "c_1"
    assert fetched.news.resource_id == "a_1"
    assert fetched.news.occurred_at == datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
    assert isinstance(fetched.news.data, AccountEventData)
    assert fetched.news.data.account_number == "9012"
    assert fetched.news.data.object == "account"


async def test_a_type_that_is_not_known_keeps_its_position_without_being_read(
    service: Service,
) -> None:
    service.bank.answers["/events"] = (200, {"events": [entry(1, type="card.made", data=[7])]})

    [fetched] = await FinancialFeed(service.client).fetch(0, 10)

    assert (fetched.position, fetched.news) == (1, None)


@pytest.mark.parametrize(
    "broken", [entry(0), entry(1, data={}), entry(1, occurred_at=None), {"position": 1}]
)
async def test_a_broken_entry_is_not_skipped(service: Service, broken: dict[str, Any]) -> None:
    service.bank.answers["/events"] = (200, {"events": [broken]})

    with pytest.raises(ProviderError):
        await FinancialFeed(service.client).fetch(0, 10)


async def test_news_wait_while_onboarding_cannot_be_asked(service: Service) -> None:
    service.bank.answers["/events"] = (200, {"events": [entry(1)]})
    entries = await FinancialFeed(service.client).fetch(0, 10)
    onboarding = Onboarding(failure=Unavailable())
    ownership = OnboardingOwnership(onboarding, patience_seconds=1, remembered=10)

    with pytest.raises(Unavailable):
        await FeedEvents(ownership).prepare(entries)
