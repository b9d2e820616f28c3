"""Wires as a customer sends them: signed, over the gateway."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from libs.persistence import inbox_housekeeping
from libs.persistence.engine import open_database
from tests.integration.payments.desk import A_FAULT, C_1, C_2, Desk
from tests.integration.tables import audit_finished
from tests.support.api import Answer, Api, public_interface
from tests.support.people import new_key

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIRE = {
    "sending_account_id": "acc_1",
    "external_account_id": "ext_1",
    "amount": 10,
    "purpose": "Invoice 2047",
}


@pytest_asyncio.fixture(loop_scope="session")
async def customers(desk: Desk) -> tuple[Api, Api]:
    """Two customers of one tenant."""
    stack = desk.office.stack
    gateway = await desk.office.gateway()
    apis = []
    for customer_id in (C_1, C_2):
        key = await desk.office.key_of(customer_id)
        apis.append(
            Api(desk.http, stack.base_url, public_interface(), key, lambda: gateway.log[-3000:])
        )
    return apis[0], apis[1]


async def send(api: Api, key: str | None = None, **changes: Any) -> Answer:
    return await api.post("/customer/wire", WIRE | changes, idempotency_key=key)


async def sent_raw(api: Api, amount: str) -> Answer:
    body = (
        '{"sending_account_id":"acc_1","external_account_id":"ext_1","purpose":"x",'
        f'"amount":{amount}}}'
    )
    return await api.call("POST", "/customer/wire", body.encode())


async def test_a_wire_is_sent_listed_and_read(customers: tuple[Api, Api], desk: Desk) -> None:
    mine, other = customers

    answer = await send(mine)
    transaction_id = answer.data["transaction_id"]
    found = await mine.get(f"/customer/wires/{transaction_id}")
    listed = await mine.get("/customer/wires?limit=1")

    assert answer.body["message"] == "Wire submitted"
    assert found.data["state"] == "submitted"
    assert [item["transaction_id"] for item in listed.data] == [transaction_id]
    assert (await other.get(f"/customer/wires/{transaction_id}")).code == "not_found"
    canceled = await other.post(f"/customer/wires/{transaction_id}/cancel", {})
    assert canceled.code == "not_found"
    canceled = await mine.call("POST", f"/customer/wires/{transaction_id}/cancel")
    assert canceled.code == "invalid_state"
    assert desk.core.executed == {transaction_id: 1}


async def test_what_is_no_amount_is_refused_before_anything_is_done(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    for amount, kind in (
        ("0", "greater_than"),
        ("-1", "greater_than"),
        ("1.001", "decimal_max_places"),
        ('"12"', "decimal_type"),
        ("true", "decimal_type"),
        ("10000000000", "less_than_equal"),
        ("null", "decimal_type"),
    ):
        answer = await sent_raw(customers[0], amount)

        assert answer.status == 422, amount
        assert [(item["loc"], item["type"]) for item in answer.body["detail"]] == [
            (["body", "amount"], kind)
        ]
    assert not desk.core.received["send_wire"]


async def test_nan_is_not_json(customers: tuple[Api, Api]) -> None:
    answer = await sent_raw(customers[0], "NaN")

    assert answer.code == "malformed_json"


async def test_a_number_is_that_amount_however_it_is_written(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    amounts = {"1e3": "1000.00", "0.01": "0.01", "12.50": "12.50", "7": "7.00"}

    answers = {amount: await sent_raw(customers[0], amount) for amount in amounts}

    assert {amount: str(a.data["amount"]) for amount, a in answers.items()} == amounts
    at_bank = {amount: desk.core.wires[a.data["transaction_id"]] for amount, a in answers.items()}
    assert {amount: wire["amount"] for amount, wire in at_bank.items()} == amounts


async def test_the_largest_amount_is_carried_to_the_cent(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    answer = await sent_raw(customers[0], "9999999999.99")

    assert answer.code == "insufficient_funds"
    assert not desk.core.executed


async def test_a_purpose_has_at_most_140_characters(customers: tuple[Api, Api]) -> None:
    longest = await send(customers[0], purpose="p" * 140)
    longer = await send(customers[0], purpose="p" * 141)

    assert longest.data["note"] == "p" * 140
    assert [item["type"] for item in longer.body["detail"]] == ["string_too_long"]


async def test_filters_that_make_no_sense_are_refused(customers: tuple[Api, Api]) -> None:
    for query, wrong in (
        ("start_date=2026-02-02&end_date=2026-02-01", "end_date"),
        ("state=sent", "state"),
        ("start_date=yesterday", "start_date"),
        ("limit=101", "limit"),
    ):
        answer = await customers[0].get(f"/customer/wires?{query}")

        assert [item["loc"] for item in answer.body["detail"]] == [["query", wrong]]


async def test_one_key_from_fifty_clients_is_one_wire(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    key = new_key()

    answers = await asyncio.gather(*(send(customers[0], key) for _ in range(50)))

    done = [answer for answer in answers if answer.status == 200]
    codes = Counter(answer.code for answer in answers if answer.status != 200)
    assert set(codes) <= {"idempotency_in_progress"}
    assert len({answer.raw for answer in done}) == 1
    assert sum(not answer.is_replayed for answer in done) == 1
    assert desk.core.executed == {done[0].data["transaction_id"]: 1}
    assert (await send(customers[0], key)).is_replayed
    reused = await send(customers[0], key, amount=11)
    assert reused.code == "idempotency_key_reused"
    assert reused.body["transaction_id"] == done[0].data["transaction_id"]
    assert (await send(customers[0], new_key())).data != done[0].data
    # A key is its customer's own: for another it is another wire, here of an account that is not its own.
    assert (await send(customers[1], key)).code == "not_found"


async def test_a_504_names_the_wire_and_replays_as_the_final_answer(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    key = new_key()
    desk.core.faults["fail_after_success"], desk.core.only = 1, "send_wire"
    desk.core.faults["error"] = 0
    desk.core.gate.clear()

    pending = await send(customers[0], key)
    transaction_id = pending.body["transaction_id"]
    meanwhile = await send(customers[0], key)
    desk.core.heal()
    await desk.has_state(transaction_id, "submitted")
    await desk.until_quiet()
    final = await send(customers[0], key)

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert meanwhile.code == "idempotency_in_progress"
    assert final.is_replayed
    assert final.data["transaction_id"] == transaction_id
    assert desk.core.executed == {transaction_id: 1}


async def test_the_gateways_own_504_names_the_wire(customers: tuple[Api, Api], desk: Desk) -> None:
    another = str(uuid.uuid4())
    await desk.office.replicas[0].stop()
    pending, canceling = await asyncio.gather(
        send(customers[0]),
        customers[0].call("POST", f"/customer/wires/{another}/cancel"),
    )
    await desk.office.run(1)

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert uuid.UUID(pending.body["transaction_id"]).version == 7
    assert (canceling.code, canceling.body["transaction_id"]) == ("outcome_pending", another)
    await desk.has_state(pending.body["transaction_id"], "submitted")


async def test_a_fault_of_ours_amid_a_send_is_a_pending_outcome_that_names_the_wire(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    """Told of the fault, its sender would send again what is still going to be recorded as sent."""
    key = new_key()
    desk.core.silent = True
    await desk.database.execute(
        "ALTER TABLE wires ADD CONSTRAINT broken CHECK (state <> 'submitted') NOT VALID"
    )

    async def has_failed() -> bool:
        return "command_failed" in desk.office.replicas[0].log

    try:
        pending = await send(customers[0], key)
        await desk.until("the fault has struck", has_failed)
    finally:
        await desk.database.execute("ALTER TABLE wires DROP CONSTRAINT broken")
    await desk.until_quiet(without_pauses=True)
    final = await send(customers[0], key)

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert (final.status, final.is_replayed) == (200, True)
    assert final.data["transaction_id"] == pending.body["transaction_id"]
    assert desk.core.executed == {final.data["transaction_id"]: 1}


async def test_what_breaks_in_onboarding_is_told_as_unavailable_and_makes_no_wire(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    account = f"acc_{uuid.uuid4().hex}"
    desk.fund(account, Decimal(100), A_FAULT)
    key = new_key()

    refused = await send(customers[0], key, sending_account_id=account)
    await desk.until_quiet()

    assert (refused.status, refused.code) == (503, "unavailable")
    found = "SELECT 1 FROM wires WHERE sending_account_id = $1"
    assert not await desk.rows(found, account)
    desk.owned[account] = C_1
    sent = await send(customers[0], key, sending_account_id=account)
    assert (sent.status, sent.is_replayed) == (200, False)
    assert desk.core.executed == {sent.data["transaction_id"]: 1}


async def test_in_a_year_a_key_is_still_answered_as_it_was(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    mine = customers[0]
    accepted, refused, canceled = new_key(), new_key(), new_key()
    desk.core.linked.clear()
    refusal = await send(mine, refused)
    desk.core.linked.add("ext_1")
    sent = await send(mine, accepted)
    path = f"/customer/wires/{sent.data['transaction_id']}/cancel"
    await mine.post(path, {}, idempotency_key=canceled)
    await _a_year_later(desk)

    replayed = await send(mine, accepted)
    refused_again = await send(mine, refused)
    reused = [await send(mine, key, amount=11) for key in (accepted, refused)]
    not_kept = await mine.post(path, {}, idempotency_key=canceled)

    assert replayed.is_replayed
    assert replayed.raw == sent.raw
    assert refused_again.is_replayed
    assert refused_again.code == refusal.code == "external_account_not_linked"
    assert [answer.code for answer in reused] == ["idempotency_key_reused"] * 2
    assert not not_kept.is_replayed
    assert desk.core.executed == {sent.data["transaction_id"]: 1}


async def test_after_the_lookup_key_was_replaced_a_key_is_still_answered_as_it_was(
    customers: tuple[Api, Api], desk: Desk
) -> None:
    mine = customers[0]
    accepted, refused = new_key(), new_key()
    sent = await send(mine, accepted)
    refusal = await send(mine, refused, external_account_id="ext_none")
    await desk.database.execute(
        "UPDATE inbox SET body_hash = encode('gone:', 'hex') || right(body_hash, 64)"
    )

    replayed = await send(mine, accepted)
    refused_again = await send(mine, refused, external_account_id="ext_none")
    reused = [await send(mine, key, amount=11) for key in (accepted, refused)]

    assert replayed.is_replayed
    assert replayed.raw == sent.raw
    assert refused_again.is_replayed
    assert refused_again.code == refusal.code == "external_account_not_linked"
    assert [answer.code for answer in reused] == ["idempotency_key_reused"] * 2
    assert desk.core.executed == {sent.data["transaction_id"]: 1}


async def _a_year_later(desk: Desk) -> None:
    """What was done so far was done a year ago, and what is not kept for ever was cleared away."""
    database = open_database(desk.office.environment.database_urls["payments"], "housekeeping")
    try:
        await audit_finished(database)
        for moment in ("accepted_at", "finished_at", "due_at"):
            await desk.database.execute(f"UPDATE inbox SET {moment} = {moment} - interval '1 year'")
        async with database.transaction() as connection:
            assert await inbox_housekeeping.purge(connection) >= 1
    finally:
        await database.close()
