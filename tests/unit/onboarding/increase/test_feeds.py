"""What changed at Increase, and the newest that it has of ours."""

from __future__ import annotations

from uuid import uuid4

import pytest

from libs.contracts.customers import Business
from libs.contracts.errors import ProviderError
from libs.providers.feed_entries import FeedCursor
from libs.providers.increase.events import EventFeed, ListedEvent
from services.onboarding.adapters.increase.feeds import FinancialFeed, IdentityFeed
from services.onboarding.adapters.increase.newest import NewestAccounts, NewestEntities
from services.onboarding.models import AccountReport, IdentityReport
from tests.integration.onboarding.desk import business
from tests.support.ids import made_id
from tests.support.increase_bank.faults import FaultRule
from tests.support.increase_clients import client_of, make_entity, open_account
from tests.unit.onboarding.increase.conftest import KEY, Increase, a_person, done

BEGIN = FeedCursor(0)


async def an_entity(increase: Increase) -> tuple[str, str]:
    """Our id, Increase's."""
    customer_id, told = made_id(), Business.model_validate(business())
    made = await done(increase.identity.verify_business(customer_id, told, [a_person()]))
    return str(customer_id), made.identity_id


async def test_a_changed_entity_is_reported_by_our_id_and_without_a_status(
    increase: Increase,
) -> None:
    ours, entity_id = await an_entity(increase)
    async with client_of(increase.running.url, KEY) as sdk:
        stranger = await make_entity(sdk)
    increase.decide(entity_id)
    increase.decide(stranger.id)
    increase.decide(entity_id)
    feed = IdentityFeed(increase.client)

    first = await feed.fetch(BEGIN, 2)
    rest = await feed.fetch(FeedCursor(first[-1].position, first[-1].provider_cursor), 100)
    end = await feed.fetch(FeedCursor(rest[-1].position, rest[-1].provider_cursor), 100)

    report = IdentityReport(business_id=ours, identity_id=entity_id)
    assert [entry.report for entry in first + rest] == [report, None, report]
    assert [entry.position for entry in first + rest] == [1, 2, 3]
    assert len({entry.event_id for entry in first + rest}) == 3
    assert end == []


async def test_its_fetches_know_when_the_whole_overlap_was_read_last(
    increase: Increase, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds: list[EventFeed] = []

    class Counted(EventFeed):
        async def fetch(self, state: str | None, limit: int) -> list[ListedEvent]:
            feeds.append(self)
            return await super().fetch(state, limit)

    monkeypatch.setattr("services.onboarding.adapters.increase.feeds.EventFeed", Counted)
    feed = IdentityFeed(increase.client)

    await feed.fetch(BEGIN, 100)
    await feed.fetch(BEGIN, 100)

    first, second = feeds
    assert first is second


async def test_an_entity_that_cannot_be_read_for_now_is_no_entry_at_fault(
    increase: Increase,
) -> None:
    ours, entity_id = await an_entity(increase)
    increase.decide(entity_id)
    feed = IdentityFeed(increase.client)
    increase.running.bank.faults.put(FaultRule(operation="GET /entities/{id}", kind="error"))

    with pytest.raises(ProviderError):
        await feed.fetch(BEGIN, 100)
    increase.running.bank.faults.clear()
    (entry,) = await feed.fetch(BEGIN, 100)

    assert entry.report == IdentityReport(business_id=ours, identity_id=entity_id)


async def test_an_entity_that_is_not_there_is_passed_over(increase: Increase) -> None:
    ours, entity_id = await an_entity(increase)
    store = increase.running.bank.store
    with store.writing():
        store.event("entity.updated", "entity_that0is0gone0000000")
    increase.decide(entity_id)

    entries = await IdentityFeed(increase.client).fetch(BEGIN, 100)

    report = IdentityReport(business_id=ours, identity_id=entity_id)
    assert [entry.report for entry in entries] == [None, report]


async def test_a_closed_account_is_reported(increase: Increase) -> None:
    _, entity_id = await an_entity(increase)
    opened = await done(increase.core.open_account(entity_id, "Acme Tools"))
    await done(increase.core.close_business(entity_id))

    entries = await FinancialFeed(increase.client).fetch(BEGIN, 100)

    assert [entry.report for entry in entries] == [
        AccountReport(account_id=opened.account_id, customer_id="", status="closed")
    ]


async def test_the_newest_customers_come_first_page_by_page(increase: Increase) -> None:
    made = [await an_entity(increase) for _ in range(3)]
    for _, entity_id in made[:2]:
        await done(increase.core.open_account(entity_id, "Acme Tools"))
    async with client_of(increase.running.url, KEY) as sdk:
        await open_account(sdk, await make_entity(sdk, description=str(uuid4())))  # other software
    entities, accounts = NewestEntities(increase.client), NewestAccounts(increase.client)

    first = await entities.fetch(None, 3)
    second = await entities.fetch(first.next, 2)
    with_accounts = await accounts.fetch(None, 500)

    assert first.ids == [made[2][0], made[1][0]]
    assert second.ids == [made[0][0]]
    assert second.next is None
    assert with_accounts.ids == [made[1][0], made[0][0]]
