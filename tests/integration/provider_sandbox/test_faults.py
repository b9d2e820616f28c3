from __future__ import annotations

import time
import uuid

import aiohttp
import pytest

from tests.integration.provider_sandbox.bank import Bank, Reply, business, new_key

ENDPOINT = "/core/customers"


async def create(bank: Bank, customer_id: str, key: str) -> Reply | None:
    """The answer to a create; None when the connection broke."""
    try:
        return await bank.write(ENDPOINT, business(customer_id), key=key)
    except aiohttp.ClientConnectionError:
        return None


@pytest.mark.parametrize(
    ("kind", "status", "records"),
    [
        ("error", 500, 0),
        ("refuse", 422, 0),
        ("fail_after_success", 500, 1),
        ("accept_then_drop", None, 1),
        ("duplicate_reply", 200, 1),
    ],
)
async def test_a_fault_strikes_a_create_before_or_after_its_effect(
    bank: Bank, kind: str, status: int | None, records: int
) -> None:
    customer_id, key = str(uuid.uuid4()), new_key()
    put = await bank.fault("core", kind, operation="create_customer", times=1)

    struck = await create(bank, customer_id, key)
    counted = len(await bank.truth("customers", customer_id=customer_id))
    known = await bank.get(f"/core/operations/{key}")
    retried = await create(bank, customer_id, key)

    assert put.status == 200
    assert (struck.status if struck else None) == status
    assert counted == records
    assert known.status == (200 if records else 404)
    assert retried is not None
    assert (retried.status, retried.replayed) == (200, bool(records))
    assert len(await bank.truth("customers", customer_id=customer_id)) == 1


async def test_a_duplicate_reply_is_the_second_answer(bank: Bank) -> None:
    await bank.fault("core", "duplicate_reply", times=1)

    reply = await create(bank, str(uuid.uuid4()), new_key())

    assert reply is not None
    assert reply.replayed


async def test_latency_delays_as_long_as_it_says(bank: Bank) -> None:
    await bank.fault("core", "latency", milliseconds=300, times=1)

    started = time.monotonic()
    await bank.get("/core/customers/cus_none")

    assert time.monotonic() - started >= 0.3


async def test_faults_apply_to_reads_as_to_writes(bank: Bank) -> None:
    opened = await bank.open_account()
    path = f"/financial/accounts/{opened.account_id}/balance"
    replies = []

    for kind in ("refuse", "error", "fail_after_success"):
        await bank.fault("financial", kind, operation="get_balance", times=1)
        replies.append(await bank.get(path))
    await bank.fault("financial", "accept_then_drop", operation="get_balance")
    with pytest.raises(aiohttp.ClientConnectionError):
        await bank.get(path)
    await bank.call("DELETE", "/faults", headers={})

    assert [(reply.status, reply.code) for reply in replies] == [
        (403, "refused"),
        (500, "internal_error"),
        (500, "internal_error"),
    ]
    assert (await bank.get(path)).status == 200


async def test_a_refusal_by_the_bank_is_not_hidden_and_spends_no_fault(bank: Bank) -> None:
    await bank.fault("core", "fail_after_success", times=1)
    await bank.fault("core", "accept_then_drop", times=1)

    reply = await bank.write("/core/customers/cus_none/close", {})

    assert (reply.status, reply.code) == (404, "not_found")
    standing = await bank.call("GET", "/faults", headers={})
    assert [rule["applied"] for rule in standing.body] == [0, 0]


async def test_faults_are_replaced_listed_and_removed(bank: Bank) -> None:
    await bank.fault("identity", "error", times=5)
    await bank.fault("identity", "error", probability=0.5, times=None)
    await bank.fault("identity", "latency", milliseconds=1.5)

    listed = await bank.call("GET", "/faults", headers={})
    removed = await bank.call("DELETE", "/faults", headers={})
    created = await bank.write("/identity/customers", business(str(uuid.uuid4())))

    rule = {"api": "identity", "operation": "*", "times": None, "applied": 0}
    assert listed.body == [
        rule | {"kind": "error", "probability": 0.5, "milliseconds": None},
        rule | {"kind": "latency", "probability": 1, "milliseconds": 1.5},
    ]
    assert (removed.status, removed.body) == (200, {"removed": 2})
    assert created.status == 200


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "flood"}, {"operation": "create_cutsomer"}, {"times": "1"}, {"kind": "latency"}],
    ids=str,
)
async def test_a_fault_that_makes_no_sense_is_refused(bank: Bank, wrong: dict[str, str]) -> None:
    reply = await bank.fault("core", **({"kind": "error"} | wrong))

    assert (reply.status, reply.code) == (422, "invalid")
    assert (await bank.call("GET", "/faults", headers={})).body == []
