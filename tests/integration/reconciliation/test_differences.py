"""Differences made on purpose: each is listed within one run, and gone after it is mended."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest_asyncio

from services.reconciliation.repository.recorded import RecordedDifference
from tests.e2e.wires.hands import Sender, new_sender
from tests.integration.reconciliation.books import Books, open_books
from tests.support.live import Live
from tests.support.people import bank_account
from tests.support.reconciling import assert_reconciled
from tests.support.waiting import eventually

ANOTHER_EIN = "123456789"
NEWS_OF_UNKNOWN_WIRE = "news_of_unknown_wire"
"""What payments makes of the feed's entry of a wire that it lacks, if it has read that already."""


@dataclass(frozen=True)
class Expected:
    """A difference, and what a run is to tell of it: attributes of a RecordedDifference."""

    kind: str
    subject: str
    told: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By attribute, some of what it holds."""

    def is_told_by(self, found: RecordedDifference) -> None:
        assert {name: getattr(found, name) for name in self.told} == dict(self.told)
        for name, part in self.parts.items():
            whole = getattr(found, name)
            assert {key: whole[key] for key in part} == dict(part)


Made = AbstractAsyncContextManager[list[Expected]]
"""Makes differences, and mends them when it is left."""


@pytest_asyncio.fixture
async def forgotten(live: Live) -> Sender:
    """Another customer, whose account is forgotten."""
    return await new_sender(live, "1000.00")


@pytest_asyncio.fixture
async def wiring(live: Live) -> Sender:
    """Another customer, whose wires differ."""
    return await new_sender(live, "1000.00")


async def test_every_difference_is_listed_within_one_run_and_gone_after_it_is_mended(
    live: Live, sender: Sender, wiring: Sender, forgotten: Sender
) -> None:
    async with open_books(live) as books:
        ein = await _ein_at_identity(books, sender)
        async with AsyncExitStack() as mending:
            expected: dict[tuple[str, str], Expected] = {}
            owners = {"sender": sender, "wiring": wiring, "forgotten": forgotten}
            for make, owner in MADE.items():
                for difference in await mending.enter_async_context(make(books, owners[owner])):
                    expected[difference.kind, difference.subject] = difference

            found = [one for one in await books.differences() if one.kind != NEWS_OF_UNKNOWN_WIRE]
            stored = await books.databases["reconciliation"].fetchval(
                "SELECT string_agg(difference::text, ' ') FROM difference"
            )

    assert Counter((one.kind, one.subject) for one in found) == Counter(expected.keys())
    for one in found:
        expected[one.kind, one.subject].is_told_by(one)
    assert ein not in stored, "a sensitive field is named and never shown"
    assert ANOTHER_EIN not in stored
    await assert_reconciled(live.stack)


@asynccontextmanager
async def _a_wire_that_we_lack(books: Books, sender: Sender) -> AsyncIterator[list[Expected]]:
    transaction_id = str(uuid.uuid4())
    await books.live.bank.simulate(
        "wires",
        transaction_id=transaction_id,
        account_id=sender.account_id,
        external_account_id=sender.external_account_id,
        amount="12.00",
        purpose="Nobody asked for it",
    )

    async def is_completed() -> bool:
        return (await sender.at_bank()).get(transaction_id) == "completed"

    await eventually("the bank has completed it", is_completed)
    ids = {"transaction_id": transaction_id, "account_id": sender.account_id}
    theirs = {"state": "completed", "posted": Decimal("-12.00")}
    told = {"ids": ids, "ours": None}
    yield [Expected("wire_unknown_to_us", transaction_id, told, {"theirs": theirs})]
    await _record_wire(books, sender, transaction_id, Decimal("12.00"))


@asynccontextmanager
async def _a_wire_in_another_state(books: Books, sender: Sender) -> AsyncIterator[list[Expected]]:
    transaction_id = await sender.sent()
    await sender.has_state(transaction_id, "completed")
    change = "UPDATE wires SET state = $2 WHERE transaction_id = $1"
    await books.execute("payments", change, uuid.UUID(transaction_id), "submitted")
    yield [Expected("wire_state", transaction_id)]
    await books.execute("payments", change, uuid.UUID(transaction_id), "completed")


@asynccontextmanager
async def _an_account_without_an_owner(
    books: Books, sender: Sender
) -> AsyncIterator[list[Expected]]:
    customer_id = sender.account.customer_id
    opened = await books.live.bank.simulate(
        "accounts", customer_id=customer_id, account_title="Nobody's"
    )
    owner = {"ids": {"customer_id": customer_id}}
    yield [Expected("account_unknown_to_us", opened["account_id"], parts=owner)]
    await books.live.bank.change(opened["account_id"], "close")


@asynccontextmanager
async def _a_field_at_core(books: Books, sender: Sender) -> AsyncIterator[list[Expected]]:
    core_id = await books.core_id(sender.account.customer_id)
    path = f"core/customers/{core_id}"
    original = await books.databases["provider_sandbox"].fetchval(
        "SELECT fields::jsonb->>'business_name' FROM core_customer WHERE core_id = $1", core_id
    )
    await books.live.bank.patch(path, fields={"business_name": "Another Name"})
    both = {"ours": {"business_name": original}, "theirs": {"business_name": "Another Name"}}
    yield [Expected("core_fields", core_id, both)]
    await books.live.bank.patch(path, fields={"business_name": original})


@asynccontextmanager
async def _a_sensitive_field_at_identity(
    books: Books, sender: Sender
) -> AsyncIterator[list[Expected]]:
    identity_id = await books.identity_id(sender.account.customer_id)
    original = await _ein_at_identity(books, sender)
    path = f"identity/customers/{identity_id}"
    await books.live.bank.patch(path, fields={"ein": ANOTHER_EIN})
    named = {"ein": "[differs]"}
    yield [Expected("identity_fields", identity_id, {"ours": named, "theirs": named})]
    await books.live.bank.patch(path, fields={"ein": original})


@asynccontextmanager
async def _a_primary_that_was_moved(books: Books, sender: Sender) -> AsyncIterator[list[Expected]]:
    first = sender.external_account_id
    # Linked by the customer's partner, and primary from then on.
    linked = await sender.live.partner.post(
        f"/partner/reseller/customers/external_bank_account/{first}",
        {"external_bank_account": bank_account()},
    )
    second = str(linked.data["external_bank_account_id"])
    await books.live.bank.simulate(f"external-accounts/{first}/primary")
    yield [Expected("external_account_primary", subject) for subject in (first, second)]
    await books.live.bank.simulate(f"external-accounts/{second}/primary")


@asynccontextmanager
async def _locations_that_are_not_what_was_swept(
    books: Books, sender: Sender
) -> AsyncIterator[list[Expected]]:
    loaded = await books.live.bank.simulate("deposit-locations", account_id=sender.account_id)
    change = (
        "UPDATE deposit_location SET balance = balance + $2 WHERE (account_id, location_id) ="
        " (SELECT account_id, min(location_id) FROM deposit_location WHERE account_id = $1 GROUP BY 1)"
    )
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("1.00"))
    load = {"account_id": sender.account_id, "load_date": loaded["as_of_date"]}
    subject = f"{sender.account_id}/{loaded['as_of_date']}"
    yield [Expected("deposit_locations", subject, {"ids": load})]
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("-1.00"))


@asynccontextmanager
async def _a_balance_beside_its_postings(
    books: Books, sender: Sender
) -> AsyncIterator[list[Expected]]:
    change = "UPDATE account SET total = total + $2 WHERE account_id = $1"
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("0.01"))
    both = {"ours": {"posted": Decimal(1000)}, "theirs": {"total": Decimal("1000.01")}}
    yield [Expected("balance", sender.account_id, parts=both)]
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("-0.01"))


@asynccontextmanager
async def _an_account_that_we_forgot(books: Books, sender: Sender) -> AsyncIterator[list[Expected]]:
    onboarding = books.databases["onboarding"]
    row = await onboarding.fetchrow(
        "DELETE FROM accounts WHERE account_id = $1 RETURNING *", sender.account_id
    )
    kinds = ("account_unknown_to_us", "told_account")
    yield [Expected(kind, sender.account_id) for kind in kinds]
    await onboarding.execute(
        "INSERT INTO accounts SELECT * FROM jsonb_populate_record(NULL::accounts, $1::jsonb)"
        # The feed may have told of the account since.
        " ON CONFLICT (account_id) DO UPDATE SET tenant = excluded.tenant,"
        " customer_id = excluded.customer_id, account_number = excluded.account_number",
        json.dumps(dict(row), default=str),
    )


@asynccontextmanager
async def _a_feed_that_went_back(books: Books, _sender: Sender) -> AsyncIterator[list[Expected]]:
    """Our position is beyond the provider's newest entry."""
    change = "UPDATE feed_cursor SET position = position + $1 WHERE feed = 'core'"
    await books.execute("payments", change, 1_000_000)
    yield [Expected("feed_went_back", "payments/core")]
    await books.execute("payments", change, -1_000_000)


MADE: Mapping[Callable[[Books, Sender], Made], str] = {
    _a_wire_that_we_lack: "wiring",
    _a_wire_in_another_state: "wiring",
    _an_account_without_an_owner: "sender",
    _a_field_at_core: "sender",
    _a_sensitive_field_at_identity: "sender",
    _a_primary_that_was_moved: "sender",
    _locations_that_are_not_what_was_swept: "sender",
    _a_balance_beside_its_postings: "sender",
    _an_account_that_we_forgot: "forgotten",
    _a_feed_that_went_back: "sender",
}
"""In this order, and mended in the opposite one: at whose customer each is made."""


async def _ein_at_identity(books: Books, sender: Sender) -> str:
    return str(
        await books.databases["provider_sandbox"].fetchval(
            "SELECT fields::jsonb->>'ein' FROM identity_record WHERE identity_id = $1",
            await books.identity_id(sender.account.customer_id),
        )
    )


async def _record_wire(books: Books, sender: Sender, transaction_id: str, amount: Decimal) -> None:
    """As an operator would restore it: accepted and completed."""
    await books.execute(
        "payments",
        "INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount,"
        " purpose, state, sequence, send_begun_at, created_at) VALUES ($1, 'anvil', $2, $3, $4, $5, 'Restored',"
        " 'completed', 3, clock_timestamp(), clock_timestamp())",
        uuid.UUID(transaction_id),
        sender.account.customer_id,
        sender.account_id,
        sender.external_account_id,
        amount,
    )
    await books.execute(
        "payments",
        "INSERT INTO wire_history (transaction_id, sequence, state, at) SELECT $1, number, state, clock_timestamp()"
        " FROM unnest(ARRAY['pending_submission', 'submitted', 'completed'])"
        " WITH ORDINALITY AS step (state, number)",
        uuid.UUID(transaction_id),
    )
