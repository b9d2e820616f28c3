"""Payments' `CoreBanking` and its feed: what every bank behind the port does alike."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from libs.contracts.wires import WireState
from libs.providers.feed_entries import FeedCursor
from libs.providers.outcomes import Absent, Accepted, NotSent, Reason, Refused, Unknown
from services.payments import states
from services.payments.models import Creditor, FeedEntry, PostalAddress, Step, WireRecord
from services.payments.ports import Acceptance
from tests.contract.ports.wire_banks import Fault, Funded, WireBank
from tests.support.ids import made_id
from tests.support.pace import pace

HOLDER = Creditor(
    "Tidewater Goods LLC", PostalAddress("1 Main Street", "Norfolk", "VA", "23510", "US")
)
FUNDS = Decimal("100.00")
AMOUNT = Decimal("10.50")
PAGE = 100

Prepare = Callable[[WireBank, WireRecord], Awaitable[WireRecord]]


def soon() -> float:
    return time.time() + 10 * pace()


def new_wire(funded: Funded, amount: Decimal = AMOUNT) -> WireRecord:
    now = datetime.now(UTC)
    return WireRecord(
        transaction_id=made_id(),
        tenant="t_1",
        customer_id="c_1",
        sending_account_id=funded.account_id,
        external_account_id=funded.external_account_id,
        amount=amount,
        purpose="Invoice 2047",
        send_age_seconds=None,
        last_sent_at=None,
        last_send_age_seconds=None,
        canceled_by=None,
        created_at=now,
        creditor=HOLDER,
        history=(Step(WireState.PENDING_SUBMISSION, now, None),),
    )


async def funded_wire(bank: WireBank) -> WireRecord:
    return new_wire(await bank.open_funded(FUNDS))


async def send(bank: WireBank, wire: WireRecord) -> object:
    return await bank.core.send_wire(wire).send(wire.transaction_id, soon())


async def find(bank: WireBank, wire: WireRecord) -> object:
    return await bank.core.send_wire(wire).find(wire.transaction_id, soon())


def acceptance_of(outcome: object) -> Acceptance:
    assert isinstance(outcome, Accepted), outcome
    answer: Acceptance = outcome.answer
    return answer


def id_of(outcome: object) -> str:
    """The wire that the bank says it accepted."""
    return acceptance_of(outcome).transaction_id


async def carried_out(bank: WireBank, wire: WireRecord) -> list[tuple[str, Decimal]]:
    return await bank.carried_out(wire.sending_account_id)


def effect_of(wire: WireRecord) -> list[tuple[str, Decimal]]:
    return [(str(wire.transaction_id), wire.amount)]


async def test_a_wire_is_accepted_under_its_transaction_id_and_found_again(
    wire_bank: WireBank,
) -> None:
    wire = await funded_wire(wire_bank)

    sent = await send(wire_bank, wire)
    found = await find(wire_bank, wire)

    assert id_of(sent) == id_of(found) == str(wire.transaction_id)
    assert await carried_out(wire_bank, wire) == effect_of(wire)


async def test_a_wire_is_found_in_the_state_that_it_has_by_now(wire_bank: WireBank) -> None:
    wire = await funded_wire(wire_bank)
    await send(wire_bank, wire)
    before = await find(wire_bank, wire)
    await wire_bank.complete(wire.transaction_id)
    completed = await find(wire_bank, wire)
    why_returned = await wire_bank.send_back(wire.transaction_id, "Account closed.")

    returned = await find(wire_bank, wire)

    assert [acceptance_of(each).state for each in (before, completed, returned)] == [
        WireState.SUBMITTED,
        WireState.COMPLETED,
        WireState.RETURNED,
    ]
    assert acceptance_of(returned).reason == why_returned


async def test_a_wire_is_looked_up_as_the_bank_has_it(wire_bank: WireBank) -> None:
    wire = await funded_wire(wire_bank)
    await send(wire_bank, wire)

    shown = await wire_bank.core.look_up(wire.transaction_id, soon())
    unknown = await wire_bank.core.look_up(uuid.uuid4(), soon())

    assert shown is not None
    assert (shown.state, shown.amount) == (WireState.SUBMITTED, AMOUNT)
    assert shown.account_id == wire.sending_account_id
    assert shown.id
    assert unknown is None
    assert await wire_bank.core.transaction_id_of(shown.id, soon()) == wire.transaction_id
    assert await wire_bank.core.transaction_id_of(f"{shown.id}x", soon()) is None
    assert await wire_bank.core.transaction_id_of("another_1", soon()) is None


async def test_a_wire_that_is_sent_again_has_one_effect(wire_bank: WireBank) -> None:
    wire = await funded_wire(wire_bank)

    first = await send(wire_bank, wire)
    again = await asyncio.gather(*(send(wire_bank, wire) for _ in range(10)))

    assert {id_of(outcome) for outcome in (first, *again)} == {str(wire.transaction_id)}
    assert await carried_out(wire_bank, wire) == effect_of(wire)


async def test_another_wire_under_a_used_id_is_neither_carried_out_nor_refused(
    wire_bank: WireBank,
) -> None:
    wire = await funded_wire(wire_bank)
    await send(wire_bank, wire)
    another = replace(wire, amount=AMOUNT + 1)

    outcome = await send(wire_bank, another)
    found = await find(wire_bank, another)
    await wire_bank.forget_key(wire.transaction_id)
    found_by_id = await find(wire_bank, another)

    assert isinstance(outcome, Unknown)
    for finding in (found, found_by_id):
        assert isinstance(finding, Unknown)
        assert finding.needs_operator
    assert await carried_out(wire_bank, wire) == effect_of(wire)


async def beyond_its_funds(_: WireBank, wire: WireRecord) -> WireRecord:
    return replace(wire, amount=FUNDS + Decimal("0.01"))


async def from_a_restricted_account(bank: WireBank, wire: WireRecord) -> WireRecord:
    await bank.restrict(wire.sending_account_id)
    return wire


async def from_a_closed_account(bank: WireBank, wire: WireRecord) -> WireRecord:
    await bank.close(wire.sending_account_id)
    return wire


async def to_an_account_that_is_not_linked_any_more(bank: WireBank, wire: WireRecord) -> WireRecord:
    await bank.unlink(wire.external_account_id)
    return wire


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (beyond_its_funds, Reason.INSUFFICIENT_FUNDS),
        (from_a_restricted_account, Reason.ACCOUNT_RESTRICTED),
        (from_a_closed_account, Reason.ACCOUNT_CLOSED),
        (to_an_account_that_is_not_linked_any_more, Reason.EXTERNAL_ACCOUNT_NOT_LINKED),
    ],
)
async def test_a_refusal_has_a_reason_of_ours_and_no_effect(
    wire_bank: WireBank, prepare: Prepare, reason: Reason
) -> None:
    funded = await funded_wire(wire_bank)
    wire = await prepare(wire_bank, funded)

    outcome = await send(wire_bank, wire)
    found = await find(wire_bank, wire)

    assert isinstance(outcome, Refused)
    assert outcome.reason is reason
    assert outcome.code
    # A bank may keep its refusals or not. It never finds what it refused accepted.
    assert isinstance(found, Absent) or found == outcome
    assert await carried_out(wire_bank, funded) == []


@pytest.mark.parametrize(
    ("unknown", "reason"),
    [
        ({"external_account_id": "ext_unknown"}, Reason.EXTERNAL_ACCOUNT_NOT_LINKED),
        ({"sending_account_id": "acc_unknown"}, Reason.PROVIDER_REFUSED),
    ],
)
async def test_a_wire_of_an_account_that_the_bank_does_not_know_is_not_carried_out(
    wire_bank: WireBank, unknown: dict[str, str], reason: Reason
) -> None:
    funded = await funded_wire(wire_bank)
    wire = replace(funded, **unknown)  # type: ignore[arg-type]

    outcome = await send(wire_bank, wire)

    if wire_bank.refuses_unknown_ids:
        assert isinstance(outcome, Refused)
        assert outcome.reason is reason
    else:
        assert isinstance(outcome, Unknown)
    assert await carried_out(wire_bank, funded) == []


async def test_wires_of_one_account_are_accepted_as_far_as_its_funds_go(
    wire_bank: WireBank,
) -> None:
    funded = await wire_bank.open_funded(FUNDS)
    orders = [new_wire(funded, Decimal("30.00")) for _ in range(5)]

    outcomes = await asyncio.gather(*(send(wire_bank, wire) for wire in orders))

    accepted = {
        str(w.transaction_id)
        for w, outcome in zip(orders, outcomes, strict=True)
        if isinstance(outcome, Accepted)
    }
    refused = [outcome.reason for outcome in outcomes if isinstance(outcome, Refused)]
    assert len(accepted) == 3
    assert refused == [Reason.INSUFFICIENT_FUNDS] * 2
    assert {wire_id for wire_id, _ in await wire_bank.carried_out(funded.account_id)} == accepted


async def test_a_wire_that_was_never_sent_is_absent(wire_bank: WireBank) -> None:
    wire = await funded_wire(wire_bank)

    assert await find(wire_bank, wire) == Absent()


async def test_without_time_nothing_is_sent(wire_bank: WireBank) -> None:
    wire = await funded_wire(wire_bank)

    outcome = await wire_bank.core.send_wire(wire).send(wire.transaction_id, time.time() - 1)

    assert isinstance(outcome, NotSent)
    assert await carried_out(wire_bank, wire) == []


@pytest.mark.parametrize("fault", ["accept_then_drop", "fail_after_success"])
async def test_a_wire_whose_answer_was_lost_is_unknown_until_it_is_found(
    wire_bank: WireBank, fault: Fault
) -> None:
    wire = await funded_wire(wire_bank)
    await wire_bank.fail_next_send(fault)

    outcome = await send(wire_bank, wire)
    found = await find(wire_bank, wire)

    assert isinstance(outcome, Unknown)
    assert outcome.sent
    assert id_of(found) == str(wire.transaction_id)
    assert await carried_out(wire_bank, wire) == effect_of(wire)


async def test_an_error_before_any_effect_is_unknown_and_the_wire_can_be_sent_again(
    wire_bank: WireBank,
) -> None:
    wire = await funded_wire(wire_bank)
    await wire_bank.fail_next_send("error")

    outcome = await send(wire_bank, wire)
    found = await find(wire_bank, wire)
    again = await send(wire_bank, wire)

    assert isinstance(outcome, Unknown)
    assert found == Absent()
    assert id_of(again) == str(wire.transaction_id)
    assert await carried_out(wire_bank, wire) == effect_of(wire)


async def test_a_wire_is_found_by_its_id_after_its_key_was_forgotten(wire_bank: WireBank) -> None:
    wire = await funded_wire(wire_bank)
    await send(wire_bank, wire)
    await wire_bank.forget_key(wire.transaction_id)

    found = await find(wire_bank, wire)

    assert id_of(found) == str(wire.transaction_id)


async def test_what_the_bank_promises_about_keys_lets_a_young_send_be_repeated(
    wire_bank: WireBank,
) -> None:
    capabilities = wire_bank.core.send_wire(await funded_wire(wire_bank)).capabilities

    assert capabilities.longest_transit_seconds > 0
    assert capabilities.may_resend(first_sent_seconds_ago=1, send_seconds=15)


async def entries_about(bank: WireBank, *wires: WireRecord) -> list[FeedEntry]:
    """Those of the whole feed, read page by page."""
    ids = {str(wire.transaction_id) for wire in wires}
    entries: list[FeedEntry] = []
    cursor = FeedCursor(0)
    while page := await bank.feed.fetch(cursor, PAGE):
        assert len(page) <= PAGE
        entries += page
        cursor = FeedCursor(page[-1].position, page[-1].provider_cursor)
    return [entry for entry in entries if entry.report and entry.report.transaction_id in ids]


async def test_the_feed_tells_in_order_what_became_of_wires(wire_bank: WireBank) -> None:
    returned, rejected = await funded_wire(wire_bank), await funded_wire(wire_bank)
    for wire in (returned, rejected):
        id_of(await send(wire_bank, wire))
    await wire_bank.complete(returned.transaction_id)
    why_rejected = await wire_bank.reject(rejected.transaction_id, "No such account.")
    why_returned = await wire_bank.send_back(returned.transaction_id, "Account closed.")

    entries = await entries_about(wire_bank, returned, rejected)

    assert len(await wire_bank.feed.fetch(FeedCursor(0), 1)) == 1
    positions = [entry.position for entry in entries]
    assert positions == sorted(set(positions))
    assert applied(returned, entries) == [
        (WireState.PENDING_SUBMISSION, None),
        (WireState.SUBMITTED, None),
        (WireState.COMPLETED, None),
        (WireState.RETURNED, why_returned),
    ]
    assert applied(rejected, entries) == [
        (WireState.PENDING_SUBMISSION, None),
        (WireState.SUBMITTED, None),
        (WireState.REJECTED, why_rejected),
    ]


async def test_the_feed_goes_on_with_what_came_since(wire_bank: WireBank) -> None:
    """Each state in its turn, the feed read to its end in between."""
    wire = await funded_wire(wire_bank)
    id_of(await send(wire_bank, wire))
    seen = await entries_about(wire_bank, wire)
    await wire_bank.complete(wire.transaction_id)

    since = await entries_after(wire_bank, seen[-1])
    await wire_bank.send_back(wire.transaction_id, "Account closed.")
    later = await entries_after(wire_bank, since[-1])

    assert applied(wire, seen)[-1][0] is WireState.SUBMITTED
    assert applied(wire, [*seen, *since])[-1][0] is WireState.COMPLETED
    assert applied(wire, [*seen, *since, *later])[-1][0] is WireState.RETURNED
    assert not {entry.position for entry in seen} & {entry.position for entry in since}


async def entries_after(bank: WireBank, last: FeedEntry) -> list[FeedEntry]:
    found: list[FeedEntry] = []
    while page := await bank.feed.fetch(FeedCursor(last.position, last.provider_cursor), PAGE):
        found += page
        last = page[-1]
    return found


def applied(wire: WireRecord, entries: list[FeedEntry]) -> list[tuple[WireState, str | None]]:
    """The history of a wire to which the entries about it are applied, as the handler of the feed does it.

    A bank may report a state more than once, and the last one only when another followed.
    """
    for entry in entries:
        report = entry.report
        if report is None or report.transaction_id != str(wire.transaction_id):
            continue
        versions = states.catch_up(
            wire, report.wire_state, at=report.occurred_at, words=report.reason
        )
        wire = versions[-1] if versions else wire
    return [(step.state, step.reason_detail) for step in wire.history]
