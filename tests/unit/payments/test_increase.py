"""Wires at Increase: each sent once under every fault, what it is sent, and what its events report."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from libs.contracts.errors import ProviderError
from libs.contracts.wires import WireState
from libs.providers.feed_entries import FeedCursor, UndecodableEntry
from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.client import IncreaseClient
from libs.providers.outcomes import Accepted, Reason, Refused, Unknown
from libs.providers.sessions import open_session
from libs.providers.writing import Attempt, Earlier, write_once
from services.payments.adapters.increase.core import (
    ILLEGIBLE_NAME,
    AcceptedWire,
    IncreaseCoreBanking,
    NewestWires,
)
from services.payments.adapters.increase.feed import WireFeed
from services.payments.adapters.increase.wire_text import wire_text
from services.payments.models import Creditor, FeedEntry, PostalAddress, Step, WireRecord
from tests.contract.ports.increase_wire_bank import IncreaseWireBank, increase_bank
from tests.support.ids import made_id
from tests.support.with_each import with_each
from tests.unit.payments.bench import CREDITOR
from tests.unit.providers.conftest import Answer, Provider, provider, session, soon
from tests.unit.providers.increase.conftest import (
    increase,
    lists,
    refuses,
    shows,
    wire_transfer,
)

__all__ = ["increase", "provider", "session"]

AMOUNT = Decimal("10.50")
AT = "2026-03-02T15:00:00Z"
ACCOUNT = {
    "id": "account_1",
    "created_at": AT,
    "entity_id": "entity_1",
    "interest_rate": "0.01",
    "name": "Operating",
    "status": "open",
}
EXTERNAL_ACCOUNT = {
    "id": "external_account_1",
    "account_number": "123456789012",
    "routing_number": "021000021",
    "status": "active",
}
BALANCE = {"account_id": "account_1", "current_balance": 1050, "type": "balance_lookup"}


@pytest.fixture
async def bank(tmp_path: Path) -> AsyncIterator[IncreaseWireBank]:
    async with open_session(8) as session, increase_bank(tmp_path, session) as running:
        yield running


async def new_wire(bank: IncreaseWireBank, **changes: Any) -> WireRecord:
    funded = await bank.open_funded(Decimal(100))
    return wire_between(funded.account_id, funded.external_account_id, **changes)


def wire_between(account_id: str, external_account_id: str, /, **changes: Any) -> WireRecord:
    now = datetime.now(UTC)
    wire = WireRecord(
        transaction_id=made_id(),
        tenant="t_1",
        customer_id="c_1",
        sending_account_id=account_id,
        external_account_id=external_account_id,
        amount=AMOUNT,
        purpose="Invoice 2047",
        send_age_seconds=None,
        last_sent_at=None,
        last_send_age_seconds=None,
        canceled_by=None,
        created_at=now,
        creditor=CREDITOR,
        history=(Step(WireState.PENDING_SUBMISSION, now, None),),
    )
    return replace(wire, **changes)


async def send_until_known(bank: IncreaseWireBank, wire: WireRecord) -> object:
    """As payments does it: every attempt after the first asks before it sends."""
    earlier = None
    for _ in range(5):
        attempt = Attempt(wire.transaction_id, soon(), 5.0, earlier)
        outcome = await write_once(bank.core.send_wire(wire), attempt)
        if not isinstance(outcome, Unknown):
            return outcome
        earlier = Earlier(1.0, 1.0)
    raise AssertionError(outcome)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "fault",
    [
        "rate_limit",
        "error",
        "drop",
        "duplicate_reply",
        "key_conflict",
        "fail_after_success",
        "accept_then_drop",
    ],
)
async def test_a_wire_is_carried_out_once_under_every_fault(
    bank: IncreaseWireBank, fault: str, times: int
) -> None:
    wire = await new_wire(bank)
    await bank.order("PUT", "faults", operation="POST /wire_transfers", kind=fault, times=times)

    outcome = await send_until_known(bank, wire)

    assert isinstance(outcome, Accepted)
    assert outcome.answer.transaction_id == str(wire.transaction_id)
    assert await bank.carried_out(wire.sending_account_id) == [(str(wire.transaction_id), AMOUNT)]


@pytest.mark.parametrize(
    "other",
    [{"amount": 1051}, {"account_id": "account_2"}, {"external_account_id": "external_account_2"}],
)
async def test_a_wire_under_our_key_that_is_another_is_left_to_an_operator(
    provider: Provider, increase: IncreaseClient, other: dict[str, Any]
) -> None:
    wire = wire_between("account_1", "external_account_1")
    provider.answers = [lists([wire_transfer(wire.transaction_id, **other)])]
    attempt = Attempt(wire.transaction_id, soon(), 5.0, Earlier(1.0, 1.0))

    outcome = await write_once(IncreaseCoreBanking(increase, WRITES).send_wire(wire), attempt)

    assert isinstance(outcome, Unknown)
    assert outcome.needs_operator
    assert len(provider.seen) == 1, "the look-up"


async def test_a_wire_whose_lookup_fails_is_not_sent_again(bank: IncreaseWireBank) -> None:
    wire = await new_wire(bank)
    await bank.order("PUT", "faults", operation="GET /wire_transfers", kind="error")
    attempt = Attempt(wire.transaction_id, soon(), 5.0, Earlier(1.0, 1.0))

    outcome = await write_once(bank.core.send_wire(wire), attempt)

    assert isinstance(outcome, Unknown)
    assert not outcome.sent
    assert await bank.carried_out(wire.sending_account_id) == []


async def test_a_wire_that_was_carried_out_is_not_refused_under_a_key_of_another_group(
    bank: IncreaseWireBank, tmp_path: Path
) -> None:
    """Such a key sees neither the wire nor our accounts, as at a bank that has neither."""
    wire = await new_wire(bank)
    await bank.fail_next_send("accept_then_drop")
    await bank.core.send_wire(wire).send(wire.transaction_id, soon())
    long_ago = Attempt(wire.transaction_id, soon(), 5.0, Earlier(120.0, 120.0))

    async with (
        open_session(8) as session,
        increase_bank(tmp_path / "another group", session) as another,
    ):
        under_its_key = await write_once(another.core.send_wire(wire), long_ago)
    under_ours = await write_once(bank.core.send_wire(wire), long_ago)

    assert isinstance(under_its_key, Unknown)
    assert isinstance(under_ours, Accepted)
    assert await bank.carried_out(wire.sending_account_id) == [(str(wire.transaction_id), AMOUNT)]


async def test_a_wire_names_its_creditor_and_its_purpose_as_wires_carry_them(
    bank: IncreaseWireBank,
) -> None:
    address = PostalAddress("Straße des 17. Juni 135", "Zürich", "ZH", "8001", "CH", "2. Stock")
    wire = await new_wire(
        bank, creditor=Creditor("Café “Łódź” & Søn", address), purpose="Facture № 5 — août 日"
    )

    assert isinstance(await send_until_known(bank, wire), Accepted)

    [sent] = (await bank.order("GET", "truth/wires"))["wires"]
    assert sent["amount"] == 1050
    assert sent["creditor"]["name"] == 'Cafe "Lodz" & Son'
    assert sent["creditor"]["address"]["unstructured"] == {
        "line1": "Strasse des 17. Juni 135",
        "line2": "2. Stock",
        "line3": "Zurich, ZH 8001",
    }
    assert sent["remittance"]["unstructured"]["message"] == "Facture No. 5 - aout Ri"


def named(name: str) -> Creditor:
    return Creditor(name, CREDITOR.address)


async def test_a_wire_whose_creditor_has_no_legible_name_is_refused_rather_than_sent(
    bank: IncreaseWireBank,
) -> None:
    wire = await new_wire(bank, creditor=named("—\u200b!?"))

    outcome = await send_until_known(bank, wire)

    assert isinstance(outcome, Refused)
    assert (outcome.reason, outcome.code) == (Reason.PROVIDER_REFUSED, ILLEGIBLE_NAME)
    assert await bank.carried_out(wire.sending_account_id) == []


async def test_no_legible_name_says_nothing_of_an_earlier_send_that_may_still_arrive(
    bank: IncreaseWireBank,
) -> None:
    wire = await new_wire(bank, creditor=named("!?"))
    attempt = Attempt(wire.transaction_id, soon(), 5.0, Earlier(1.0, 1.0))

    outcome = await write_once(bank.core.send_wire(wire), attempt)

    assert isinstance(outcome, Unknown)
    assert not outcome.sent


@pytest.mark.parametrize(
    ("name", "earlier"),
    [("Иван Петров", None), ("Иван Петров", Earlier(1.0, 1.0)), ("!?", Earlier(99.0, 99.0))],
)
async def test_a_wire_that_a_release_sent_with_other_text_is_found_and_not_sent_again(
    bank: IncreaseWireBank, name: str, earlier: Earlier | None
) -> None:
    before = await new_wire(bank, creditor=named("x???"), purpose="????")
    await bank.core.send_wire(before).send(before.transaction_id, soon())
    wire = replace(before, creditor=named(name), purpose="счёт")

    sent = await write_once(
        bank.core.send_wire(wire), Attempt(wire.transaction_id, soon(), 5.0, earlier)
    )

    assert isinstance(sent, Accepted)
    assert sent.answer.transaction_id == str(wire.transaction_id)
    assert await bank.carried_out(wire.sending_account_id) == [(str(wire.transaction_id), AMOUNT)]


async def test_a_wire_beyond_the_balance_is_refused_for_that_whatever_issues_the_entity_has(
    bank: IncreaseWireBank,
) -> None:
    wire = await new_wire(bank, amount=Decimal(101))
    [account] = (await bank.order("GET", "truth/accounts"))["accounts"]
    entity_id = account["entity_id"]
    await bank.order("POST", f"entities/{entity_id}", issues=["of_a_later_release"])

    outcome = await send_until_known(bank, wire)

    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.INSUFFICIENT_FUNDS


@pytest.mark.parametrize(
    ("account", "external_account", "balance", "reason"),
    [
        ({"status": "closed"}, {}, 1050, Reason.ACCOUNT_CLOSED),
        ({"status": "of_a_later_release", "closed_at": AT}, {}, 1050, Reason.ACCOUNT_CLOSED),
        ({"status": "of_a_later_release"}, {}, 1050, Reason.PROVIDER_REFUSED),
        ({}, {"status": "archived"}, 1050, Reason.EXTERNAL_ACCOUNT_NOT_LINKED),
        ({}, {"status": "of_a_later_release"}, 1050, Reason.PROVIDER_REFUSED),
        ({}, {}, 1049, Reason.INSUFFICIENT_FUNDS),
    ],
)
async def test_a_refusal_has_the_reason_that_the_accounts_show_for_certain(
    provider: Provider,
    increase: IncreaseClient,
    account: dict[str, Any],
    external_account: dict[str, Any],
    balance: int,
    reason: Reason,
) -> None:
    """Not one that a status shows which Increase has added: of that it is not known what it means."""
    wire = wire_between("account_1", "external_account_1")
    provider.answers = [
        refuses(409, "invalid_operation_error"),
        shows(ACCOUNT | account),
        shows(EXTERNAL_ACCOUNT | external_account),
        shows({"id": "entity_1", "status": "active", "structure": "corporation"}),
        shows(BALANCE | {"available_balance": balance}),
    ]

    outcome = await IncreaseCoreBanking(increase, WRITES).send_wire(wire).send(made_id(), soon())

    assert isinstance(outcome, Refused)
    assert outcome.reason is reason


@pytest.mark.parametrize("earlier", [None, Earlier(1.0, 1.0)])
async def test_a_wire_whose_creditor_is_not_known_waits_for_an_operator(
    bank: IncreaseWireBank, earlier: Earlier | None
) -> None:
    wire = await new_wire(bank, creditor=None)

    outcome = await write_once(
        bank.core.send_wire(wire), Attempt(wire.transaction_id, soon(), 5.0, earlier)
    )

    assert isinstance(outcome, Unknown)
    assert (outcome.sent, outcome.needs_operator) == (False, True)
    assert await bank.carried_out(wire.sending_account_id) == []


@with_each(
    [
        ("Invoice 2047", 140, "Invoice 2047"),
        ("x" * 141, 140, "x" * 140),
        ("a\tb\n c", 140, "a b c"),
        ("{1|2}*[3]^", 140, "(1/2)-(3)-"),
        ("½ ﬁne", 140, "1/2 fine"),
        ("Иван Петров", 140, "Ivan Petrov"),
        ("株式会社", 140, "ZhuShiHuiShe"),
        ("株式会社", 5, "ZhuSh"),
        ("مرحبا", 140, "mrhb"),
        ("Zo\u200be\u0308 \u202eSmith\u200b", 140, "Zoe Smith"),
        ("\u0301", 140, "?"),
        ("a \ue000", 140, "a ?"),
        ("naïve — “quoted”…", 140, 'naive - "quoted"...'),
    ]
)
def test_text_is_written_in_the_characters_of_wires(case: tuple[str, int, str]) -> None:
    text, longest, expected = case

    assert wire_text(text, longest) == expected


async def all_entries(bank: IncreaseWireBank) -> list[Any]:
    return await bank.feed.fetch(FeedCursor(7), 100)


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        ("pending_reviewing", WireState.SUBMITTED, None),
        ("requires_attention", WireState.SUBMITTED, None),
        ("submitted", WireState.SUBMITTED, None),
        ("complete", WireState.COMPLETED, None),
        ("rejected", WireState.REJECTED, "rejected"),
        ("canceled", WireState.REJECTED, "canceled"),
    ],
)
async def test_a_status_is_reported_as_a_state_of_ours(
    bank: IncreaseWireBank, status: str, state: WireState, reason: str | None
) -> None:
    wire = await new_wire(bank)
    await send_until_known(bank, wire)
    await bank.move(wire.transaction_id, status)

    *_, last = await all_entries(bank)

    assert last.report.transaction_id == str(wire.transaction_id)
    assert (last.report.wire_state, last.report.reason) == (state, reason)


async def test_a_wire_that_was_reversed_is_read_like_any_other(bank: IncreaseWireBank) -> None:
    wire = await new_wire(bank)
    await send_until_known(bank, wire)
    await bank.move(wire.transaction_id, "complete")
    await bank.move(wire.transaction_id, "reversed")

    *_, last = await all_entries(bank)
    shown = await bank.core.look_up(wire.transaction_id, soon())
    sent_again = await send_until_known(bank, wire)
    found = await bank.core.send_wire(wire).find(wire.transaction_id, soon())
    newest = await NewestWires(bank.client).fetch(None, 100)

    reason = "Invalid creditor account number."
    assert (last.report.wire_state, last.report.reason) == (WireState.RETURNED, reason)
    assert shown is not None
    assert (shown.state, shown.status, shown.reason) == (WireState.RETURNED, "reversed", reason)
    accepted = Accepted(AcceptedWire(str(wire.transaction_id), WireState.RETURNED, reason))
    assert sent_again == found == accepted
    assert newest.ids == [str(wire.transaction_id)]


async def test_of_a_wire_that_came_back_in_part_the_words_say_how_much(
    bank: IncreaseWireBank,
) -> None:
    funded = await bank.open_funded(Decimal(1000))
    wire = await new_wire(
        bank,
        amount=Decimal(1000),
        sending_account_id=funded.account_id,
        external_account_id=funded.external_account_id,
    )
    await send_until_known(bank, wire)
    await bank.move(wire.transaction_id, "complete")

    await bank.move(wire.transaction_id, "reversed", came_back=97_500)
    *_, last = await all_entries(bank)

    words = "975.00 of 1,000.00 came back: Invalid creditor account number."
    assert (last.report.wire_state, last.report.reason) == (WireState.RETURNED, words)


@pytest.mark.parametrize("resource_id", [None, "wire_transfer_1"])
async def test_a_wire_in_a_status_that_increase_has_added_was_accepted(
    bank: IncreaseWireBank,
    provider: Provider,
    increase: IncreaseClient,
    resource_id: str | None,
) -> None:
    wire = await new_wire(bank)
    made = wire_transfer(
        wire.transaction_id,
        account_id=wire.sending_account_id,
        external_account_id=wire.external_account_id,
    ) | {"status": "pending_screening"}
    used = refuses(409, "idempotency_key_already_used_error", resource_id=resource_id)
    core = IncreaseCoreBanking(increase, WRITES)
    writing = core.send_wire(wire)

    provider.answers = [shows(made)] if resource_id is None else [used, shows(made)]
    sent = await writing.send(wire.transaction_id, soon())
    provider.answers = [lists([made])]
    found = await writing.find(wire.transaction_id, soon())
    shown = await core.look_up(wire.transaction_id, soon())

    assert sent == found == Accepted(AcceptedWire(str(wire.transaction_id), None, None))
    assert shown is not None
    assert (shown.state, shown.status) == (None, "pending_screening")


@pytest.mark.parametrize("key", ["of others", str(uuid.uuid4())])
async def test_wires_of_others_have_entries_without_a_report(
    bank: IncreaseWireBank, key: str
) -> None:
    wire = await new_wire(bank)
    await send_until_known(bank, wire)
    [made] = (await bank.order("GET", "truth/wires"))["wires"]
    await bank.order("PATCH", f"objects/{made['id']}", fields={"idempotency_key": key})

    entries = await all_entries(bank)

    assert [entry.position for entry in entries] == [8]
    assert entries[0].report is None


async def test_while_wires_cannot_be_read_the_feed_waits(bank: IncreaseWireBank) -> None:
    await send_until_known(bank, await new_wire(bank))
    await bank.order("PUT", "faults", operation="GET /wire_transfers/{id}", kind="error")

    with pytest.raises(ProviderError):
        await all_entries(bank)
    await bank.order("DELETE", "faults")

    assert len(await all_entries(bank)) == 1


def event(number: int, wire_id: str = "wire_transfer_1") -> dict[str, str]:
    return {
        "id": f"event_{number}",
        "category": "wire_transfer.updated",
        "associated_object_id": wire_id,
        "created_at": f"2026-03-02T1{number}:00:00Z",
    }


REVERSAL = {
    "amount": 1050,
    "created_at": "2026-03-02T15:40:00Z",
    "debtor_routing_number": None,
    "description": "Inbound wire reversal",
    "input_cycle_date": "-4712-01-01",
    "input_message_accountability_data": "20260302MMQFMP0P000001",
    "input_sequence_number": "000001",
    "input_source": "MMQFMP0P",
    "instruction_identification": None,
    "return_reason_additional_information": None,
    "return_reason_code": None,
    "return_reason_code_description": None,
    "transaction_id": "transaction_1",
    "wire_transfer_id": "wire_transfer_1",
}


@pytest.mark.parametrize(
    ("shown", "at"),
    [
        ({"status": "pending_reviewing"}, "09:58"),
        ({"status": "complete"}, "16:00"),
        ({"status": "rejected"}, "16:00"),
        (
            {
                "status": "canceled",
                "cancellation": {"canceled_at": "2026-03-02T15:20:00Z", "canceled_by": None},
            },
            "15:20",
        ),
        pytest.param(
            {
                "status": "canceled",
                "cancellation": {"canceled_at": "2026-03-02T15:20:00", "canceled_by": None},
            },
            "15:20",
            id="a moment without a zone is UTC",
        ),
        ({"status": "reversed", "reversal": REVERSAL}, "15:40"),
    ],
)
async def test_a_feed_that_is_behind_dates_no_state_before_it_was_reached(
    provider: Provider, increase: IncreaseClient, shown: dict[str, Any], at: str
) -> None:
    """The first of three events is of the wire's creation; the wire is read as it is after the last."""
    wire = wire_transfer(made_id(), created_at="2026-03-02T09:58:00Z") | shown

    async def answer(request: web.Request) -> web.StreamResponse:
        events = [event(0), event(5, "wire_transfer_2"), event(6)]
        return await (lists(events) if request.path.endswith("/events") else shows(wire))(request)

    provider.answers = [answer]

    first, _, last = await WireFeed(increase).fetch(FeedCursor(0), 100)

    assert first.report
    assert last.report
    expected = datetime.fromisoformat(f"2026-03-02T{at}:00Z")
    assert first.report.occurred_at == last.report.occurred_at == expected


def changes(*wires: tuple[str, Answer]) -> Answer:
    """A bank that lists an event of each wire, a second after the one before, and shows the wire so."""
    events = [
        event(0, wire_id) | {"id": f"event_{n}", "created_at": f"2026-03-02T12:00:0{n}Z"}
        for n, (wire_id, _) in enumerate(wires)
    ]
    shown = dict(wires)

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/events"):
            return await lists(events)(request)
        return await shown[request.path.rpartition("/")[2]](request)

    return answer


async def test_a_wire_in_a_status_that_increase_has_added_keeps_no_news_of_others_back(
    provider: Provider, increase: IncreaseClient
) -> None:
    """Its status may be its last: nothing is reported of it, and the log names the status once."""
    status = f"pending_{uuid.uuid4().hex}"
    new = shows(wire_transfer(made_id()) | {"status": status})
    ours = made_id()
    complete = shows(wire_transfer(ours, status="complete"))
    provider.answers = [changes(("new", new), ("complete", complete))]
    counted = partial(
        REGISTRY.get_sample_value, "bankside_increase_new_statuses_total", {"kind": "wire_transfer"}
    )
    before = counted() or 0

    with capture_logs() as logs:
        entries = [entry for _ in range(2) for entry in await fetched_anew(increase)]

    reports = [entry.report and entry.report.transaction_id for entry in entries]
    assert reports == [None, str(ours)] * 2
    [named] = [log for log in logs if log["event"] == "increase_has_a_new_status"]
    assert (named["kind"], named["status"]) == ("wire_transfer", status)
    assert counted() == before + 2


async def fetched_anew(client: IncreaseClient) -> list[FeedEntry]:
    return await WireFeed(client).fetch(FeedCursor(0), 100)


async def test_a_wire_that_cannot_be_read_stops_the_feed_at_its_event(
    provider: Provider, increase: IncreaseClient
) -> None:
    """An operator may skip the event: the feed goes on after it."""
    fine = shows(wire_transfer(made_id()))
    broken = refuses(404, "object_not_found_error")
    provider.answers = [changes(("fine", fine), ("broken", broken), ("fine", fine))]
    feed = WireFeed(increase)

    [before] = await feed.fetch(FeedCursor(0), 100)
    with pytest.raises(UndecodableEntry) as stopped:
        await feed.fetch(FeedCursor(before.position, before.provider_cursor), 100)
    entry = stopped.value.entry
    [after] = await feed.fetch(FeedCursor(entry.position, entry.provider_cursor), 100)

    assert (before.position, entry.position, after.position) == (1, 2, 3)
    assert (entry.type, entry.event_id) == ("wire_transfer.updated", "event_1")
    assert "associated_object_id" in (entry.outline or "")


async def test_the_newest_wires_are_listed_by_our_ids(bank: IncreaseWireBank) -> None:
    sent = [await new_wire(bank) for _ in range(3)]
    for wire in sent:
        await send_until_known(bank, wire)
    newest = NewestWires(bank.client)

    first = await newest.fetch(None, 2)
    rest = await newest.fetch(first.next, 2)

    assert [*first.ids, *rest.ids] == [str(wire.transaction_id) for wire in reversed(sent)]
    assert rest.next is None
