from __future__ import annotations

import asyncio
import uuid

import pytest

from tests.integration.provider_sandbox.bank import Bank, business, new_key


async def test_twenty_equal_requests_at_once_make_one_record(bank: Bank) -> None:
    customer_id, key = str(uuid.uuid4()), new_key()

    replies = await asyncio.gather(
        *(bank.write("/core/customers", business(customer_id), key=key) for _ in range(20))
    )

    assert {reply.status for reply in replies} == {200}
    assert len({reply.body["core_id"] for reply in replies}) == 1
    assert sorted(reply.replayed for reply in replies) == [False] + [True] * 19
    assert len(await bank.truth("customers", customer_id=customer_id)) == 1


async def test_a_key_is_for_one_request_of_one_api(bank: Bank) -> None:
    customer_id, key = str(uuid.uuid4()), new_key()
    first = await bank.write("/core/customers", business(customer_id), key=key)

    other_body = await bank.write("/core/customers", business(customer_id, dba="A"), key=key)
    other_operation = await bank.write(
        f"/core/customers/{first.body['core_id']}/close", {}, key=key
    )
    other_api = await bank.write("/identity/customers", business(customer_id), key=key)

    assert (other_body.status, other_body.code) == (409, "idempotency_key_reused")
    assert (other_operation.status, other_operation.code) == (409, "idempotency_key_reused")
    assert other_api.status == 200
    assert not other_api.replayed


async def test_a_refusal_is_kept_like_an_answer(bank: Bank) -> None:
    opened = await bank.open_account()
    await bank.deposit(opened.account_id, "1.00")
    path, key = f"/core/accounts/{opened.account_id}/close", new_key()

    refused = await bank.write(path, {}, key=key)
    again = await bank.write(path, {}, key=key)
    asked = await bank.get(f"/core/operations/{key}")

    assert (refused.status, refused.code) == (409, "balance_not_zero")
    assert (again.status, again.body, again.replayed) == (409, refused.body, True)
    assert asked.body == {"operation": "close_account", "status": 409, "body": refused.body}


async def test_the_bank_tells_what_became_of_a_key(bank: Bank) -> None:
    key = f"a key/with {new_key()} signs?"
    reply = await bank.write("/core/customers", business(str(uuid.uuid4())), key=key)
    quoted = key.replace(" ", "%20").replace("?", "%3F")

    known = await bank.get(f"/core/operations/{quoted}")
    elsewhere = await bank.get(f"/identity/operations/{quoted}")

    assert known.body == {"operation": "create_customer", "status": 200, "body": reply.body}
    assert (elsewhere.status, elsewhere.code) == (404, "unknown_key")


@pytest.mark.parametrize("key", [None, "", "ü", "k" * 256])
async def test_a_write_without_a_proper_key_is_not_carried_out(bank: Bank, key: str | None) -> None:
    customer_id = str(uuid.uuid4())
    headers = {} if key is None else {"Idempotency-Key": key}

    reply = await bank.call(
        "POST",
        "/core/customers",
        headers=bank.authorization("POST", "/core/customers") | headers,
        json=business(customer_id),
    )

    assert reply.status == 400
    assert reply.code == ("idempotency_key_required" if key is None else "malformed")
    assert await bank.truth("customers", customer_id=customer_id) == []
