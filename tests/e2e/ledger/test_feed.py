"""What happens in the ledger is told once, in order, whoever dies when."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tests.e2e.ledger.hands import Account, new_account
from tests.support.bank import Bank
from tests.support.live import ONBOARDED, Live
from tests.support.recorded_events import resource_of
from tests.support.waits import leases_end

MARCH = datetime(2025, 3, 14, 12, tzinfo=ZoneInfo("America/New_York"))
TOLD = Counter(
    {
        "transaction.created": 6,
        "ach.created": 3,
        "ach.submitted": 2,
        "ach.settled": 1,
        "ach.returned": 2,
        "statement.available": 1,
        "deposit_locations.updated": 2,
        "account.restricted": 1,
        "account.unrestricted": 1,
    }
)

PAGE_SIZE = 10


def told_by(bank: Bank) -> Counter[str]:
    """Of `TOLD`, what this bank reports."""
    found = Counter(TOLD)
    if not bank.restricts_accounts:
        del found["account.restricted"], found["account.unrestricted"]
    if not bank.loads_any_day:
        del found["deposit_locations.updated"]
    if not bank.books_ach_at_settlement:
        found["transaction.created"] += (
            2  # of the request that was refused: a debit, and its return
        )
    return found


async def happenings(account: Account) -> dict[str, str]:
    """One of everything and more; the ids by a name."""
    bank, account_id = account.live.bank, account.account_id
    ids = {
        "credit": await account.post("1000.00", at=MARCH),
        "debit": await account.post("0.07", "debit", counterparty_name="Power & Light"),
        "pending": await account.ach("1.00"),
    }
    if bank.restricts_accounts:
        await bank.change(account_id, "restrict")
        await bank.change(account_id, "unrestrict")
    ids["refused"] = await account.ach("2.00", "submit", "return:R02")
    statement = await bank.simulate("statements", account_id=account_id, year=2025, month=3)
    ids["statement"] = statement["statement_id"]
    await bank.simulate("deposit-locations", account_id=account_id, load_date="2025-03-03")
    ids["returned"] = await account.ach("3.00", "submit", "settle", "return:R01")
    await account.post("5.00")
    await account.post("6.00")
    await bank.simulate("deposit-locations", account_id=account_id, load_date="2025-03-04")
    return ids


async def told(account: Account) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The events of the account's ledger by kind and resource, in their order."""
    resources = defaultdict(list)
    for event in await account.live.events.of(account.customer_id):
        resources[event["type"].partition(".")[0], resource_of(event)].append(event)
    return resources


async def test_everything_in_the_ledger_is_told_in_its_read_shape(live: Live) -> None:
    account = await new_account(live)
    ids = await happenings(account)
    await live.has_events(account.customer_id, ONBOARDED + told_by(live.bank))

    events = await told(account)

    listed = {row["transaction_id"]: row for row in (await account.read("transactions")).data}
    (created,) = events["transaction", ids["debit"]]
    assert created["sequence"] == 1
    owner = {"account_id": account.account_id, "customer_id": account.customer_id}
    assert created["data"] == {
        "object": "transaction",
        **{name: as_told(value) for name, value in listed[ids["debit"]].items()},
        **owner,
        "account_number": account.number[-4:],
    }
    requests = {row["reference_id"]: row for row in (await account.read("ach")).data}
    lives = {
        "pending": ["ach.created"],
        "refused": ["ach.created", "ach.submitted", "ach.returned"],
        "returned": ["ach.created", "ach.submitted", "ach.settled", "ach.returned"],
    }
    for name, types in lives.items():
        changes = events["ach", ids[name]]
        assert [(e["type"], e["sequence"]) for e in changes] == [
            (kind, number) for number, kind in enumerate(types, start=1)
        ]
        assert changes[-1]["data"] == {
            "object": "ach",
            **requests[ids[name]],
            "customer_id": account.customer_id,
        }
    (statement,) = (await account.read("statements")).data
    (available,) = events["statement", ids["statement"]]
    del statement["formats"]
    assert available["data"] == {"object": "statement", **statement, **owner}
    assert account.number not in str(live.events.events)
    if not live.bank.loads_any_day:
        assert ("deposit_locations", account.account_id) not in events
        return
    loads = events["deposit_locations", account.account_id]
    assert [(e["sequence"], e["data"]["as_of_date"]) for e in loads] == [
        (1, "2025-03-03"),
        (2, "2025-03-04"),
    ]
    total = (await account.balance())["total"]
    assert loads[-1]["data"] == {
        "object": "deposit_locations",
        **owner,
        "as_of_date": "2025-03-04",
        "locations": 1,
        "balance": float(total),
    }


def as_told(value: Any) -> Any:
    """A Decimal as the recorded events, which are read without them, have it."""
    return value if value is None or isinstance(value, str | bool) else float(value)


async def test_killed_on_either_side_of_every_commit_it_repeats_and_loses_nothing(
    live: Live,
) -> None:
    account = await new_account(live)
    await live.has_events(account.customer_id, ONBOARDED)
    service = live.stack.services["ledger_read"]
    await service.kill()
    await happenings(account)
    told_here = told_by(live.bank)
    expected = ONBOARDED + told_here
    endings = []

    pages = -(-told_here.total() // PAGE_SIZE)
    for _ in range(pages):
        for point in ("before_commit", "after_commit"):
            await leases_end(live.stack.environment, "ledger_read")
            service.spawn(
                BANKSIDE_CRASH_AT=f"feed.financial.{point}", BANKSIDE_FEED_PAGE_SIZE=str(PAGE_SIZE)
            )
            endings.append(await service.ended())
    await leases_end(live.stack.environment, "ledger_read")
    await service.start()
    await live.has_events(account.customer_id, expected)

    assert endings == [-9] * 2 * pages
    for (kind, _), events in (await told(account)).items():
        if kind != "account":
            sequences = [event["sequence"] for event in events]
            assert sequences == list(range(1, len(events) + 1)), kind


async def test_a_history_without_feed_entries_is_read_and_not_told(live: Live) -> None:
    account = await new_account(live)
    await live.bank.simulate("history", account_id=account.account_id, transactions=40, days=10)
    await account.post("1.00")

    await live.has_events(account.customer_id, ONBOARDED + Counter({"transaction.created": 1}))

    assert len(await account.ids(limit=100)) == 41
