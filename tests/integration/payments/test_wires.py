"""A wire from its sender to its end, and who may see it."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from libs.contracts import errors as e
from libs.contracts import payments_operations as table
from tests.integration.payments.desk import A_FAULT, C_1, C_2, C_3, Desk, customer, wire
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_wire_is_sent_and_followed_to_its_completion(desk: Desk) -> None:
    sent = await desk.send()
    transaction_id = sent["transaction_id"]
    desk.core.tell("completed", transaction_id)
    completed = await desk.has_state(transaction_id, "completed")

    assert sent == {
        "transaction_id": transaction_id,
        "sending_account_id": "acc_1",
        "external_account_id": "ext_1",
        "amount": Decimal("10.00"),
        "note": "Invoice 2047",
    }
    assert desk.core.executed[transaction_id] == 1
    assert sent.items() <= completed.items()
    history = completed["history"]
    states = ["pending_submission", "submitted", "completed"]
    assert [step["state"] for step in history] == states
    assert completed["created_at"] == history[0]["at"]
    assert completed["updated_at"] == history[-1]["at"]
    await desk.has_events(transaction_id, "created", "submitted", "completed")
    [data] = desk.data_of(transaction_id, "completed")
    assert (data["object"], data["customer_id"]) == ("wire", customer().customer_id)
    assert [step["state"] for step in data["history"]] == states


async def test_a_return_after_completion_has_its_reason(desk: Desk) -> None:
    transaction_id = (await desk.send())["transaction_id"]
    desk.core.tell("completed", transaction_id)
    desk.core.tell("returned", transaction_id, "account_of_beneficiary_closed")

    returned = await desk.has_state(transaction_id, "returned")

    said = {"reason": "returned", "reason_detail": "account_of_beneficiary_closed"}
    assert returned == returned | said
    assert returned["history"][-1] == returned["history"][-1] | said
    await desk.has_events(transaction_id, "created", "submitted", "completed", "returned")


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ({"restricted": True}, e.AccountRestricted),
        ({"closed": True}, e.AccountClosed),
        ({"available": Decimal("9.99")}, e.InsufficientFunds),
    ],
    ids=["restricted", "closed", "short"],
)
async def test_a_refusal_is_answered_by_the_banks_reason(
    desk: Desk, condition: dict[str, Any], error: type[e.BanksideError]
) -> None:
    for name, value in condition.items():
        setattr(desk.core.accounts["acc_1"], name, value)
    transaction_id = str(uuid.uuid4())

    with pytest.raises(error):
        await desk.send(command_id=transaction_id)

    rejected = await desk.get(transaction_id)
    assert (rejected["state"], rejected["reason"]) == ("rejected", error.code)
    assert rejected["reason_detail"] is None
    assert not desk.core.executed
    await desk.has_events(transaction_id, "created", "rejected")


async def test_a_refusal_for_a_reason_of_the_banks_own_is_provider_refused(desk: Desk) -> None:
    del desk.core.accounts["acc_1"]
    transaction_id = str(uuid.uuid4())

    with pytest.raises(e.ProviderRefused) as refused:
        await desk.send(command_id=transaction_id)

    assert "the wire is recorded as rejected" in refused.value.detail
    rejected = await desk.get(transaction_id)
    words = "not_found: The bank says not_found."
    assert (rejected["reason"], rejected["reason_detail"]) == ("provider_refused", words)
    told = {name: rejected[name] for name in ("transaction_id", "reason", "reason_detail")}
    assert refused.value.extra == told


async def test_an_external_account_that_the_bank_does_not_have_linked_is_not_linked(
    desk: Desk,
) -> None:
    desk.core.linked.clear()

    with pytest.raises(e.ExternalAccountNotLinked):
        await desk.send()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"sending_account_id": "acc_nobody"}, e.NotFound),
        ({"sending_account_id": "acc_2"}, e.NotFound),
        ({"sending_account_id": "acc_3"}, e.NotFound),
        ({"external_account_id": "ext_nobody"}, e.ExternalAccountNotLinked),
        ({"external_account_id": "ext_2"}, e.ExternalAccountNotLinked),
        ({"external_account_id": "ext_3"}, e.ExternalAccountNotLinked),
        ({"sending_account_id": "acc_2", "external_account_id": "ext_2"}, e.NotFound),
    ],
)
async def test_accounts_of_another_customer_do_not_exist(
    desk: Desk, changes: dict[str, str], error: type[e.BanksideError]
) -> None:
    for number, other in (("2", C_2), ("3", C_3)):
        desk.fund(f"acc_{number}", Decimal(100), other)
        desk.owned[f"ext_{number}"] = other
        desk.core.linked.add(f"ext_{number}")

    with pytest.raises(error):
        await desk.send(wire(**changes))

    assert not desk.core.received["send_wire"]
    assert not await desk.rows("SELECT 1 FROM wires WHERE created_at > $1", desk.began)


@pytest.mark.parametrize("stranger", [C_2, C_3])
async def test_a_wire_is_its_customers_alone(desk: Desk, stranger: str) -> None:
    transaction_id = (await desk.send())["transaction_id"]
    other = customer(stranger)

    with pytest.raises(e.NotFound):
        await desk.get(transaction_id, other)
    with pytest.raises(e.NotFound):
        await desk.cancel(transaction_id, other)

    page = await desk.page(other)
    assert transaction_id not in {item["transaction_id"] for item in page["data"]}
    assert page["pagination"]["total"] == len(page["data"]) == 0


@pytest.mark.parametrize("unknown", ["no-uuid", str(uuid.UUID(int=7)), uuid.UUID(int=7).hex])
async def test_an_id_that_no_wire_has_is_not_found(desk: Desk, unknown: str) -> None:
    with pytest.raises(e.NotFound):
        await desk.get(unknown)
    with pytest.raises(e.NotFound):
        await desk.cancel(unknown)


async def test_the_list_is_newest_first_and_filtered_by_state_and_by_days_at_the_bank(
    desk: Desk,
) -> None:
    ids = [(await desk.send())["transaction_id"] for _ in range(5)]
    # 03:30 UTC on the 2nd is still the 1st in New York; 05:30 UTC is the 2nd there.
    moments = [datetime(2020, 1, 2, 3, 30, tzinfo=UTC), datetime(2020, 1, 2, 5, 30, tzinfo=UTC)]
    for transaction_id, moment in zip(ids, moments, strict=False):
        await desk.database.execute(
            "UPDATE wires SET created_at = $2 WHERE transaction_id = $1",
            uuid.UUID(transaction_id),
            moment,
        )
    desk.core.tell("completed", ids[4])
    await desk.has_state(ids[4], "completed")

    async def found(**asked: Any) -> list[str]:
        return [item["transaction_id"] for item in (await desk.page(**asked))["data"]]

    everything = await desk.page(limit=100)
    newest = [item["created_at"] for item in everything["data"]]
    assert newest == sorted(newest, reverse=True)
    of_two_days = await desk.page(end_date="2020-01-02", limit=1)
    assert (len(of_two_days["data"]), of_two_days["pagination"]["total"]) == (1, 2)
    assert await found(start_date="2020-01-01", end_date="2020-01-01") == [ids[0]]
    assert await found(start_date="2020-01-02", end_date="2020-01-02") == [ids[1]]
    assert await found(end_date="2020-01-02", state="submitted") == [ids[1], ids[0]]
    assert await found(end_date="9999-12-31", limit=3) == [ids[4], ids[3], ids[2]]
    assert (await found(state="completed"))[0] == ids[4]
    assert await found(page=1_000_000) == []
    second = await desk.page(limit=2, page=2)
    assert second["data"][0]["transaction_id"] == ids[2]
    assert second["pagination"] == {
        "limit": 2,
        "page": 2,
        "total": everything["pagination"]["total"],
    }


async def test_history_is_only_appended_to(desk: Desk) -> None:
    await desk.send()

    for change in (
        "UPDATE wire_history SET state = 'completed'",
        "DELETE FROM wire_history",
        "TRUNCATE wire_history",
    ):
        with pytest.raises(asyncpg.RaiseError, match="only appended to"):
            await desk.database.execute(change)


async def test_without_onboarding_a_wire_is_unavailable_and_its_key_is_not_burned(
    desk: Desk,
) -> None:
    await desk.office.replicas[0].stop()
    await desk.office.run(1)  # whose memory of owners is empty
    await desk.onboarding_down()
    transaction_id = str(uuid.uuid4())
    with pytest.raises(e.Unavailable):
        await desk.send(command_id=transaction_id)
    await desk.onboarding_up()

    sent = await desk.send(command_id=transaction_id)

    assert sent["transaction_id"] == transaction_id
    assert desk.core.executed == {transaction_id: 1}


async def test_a_fault_of_onboarding_does_not_end_a_wire_whose_sender_was_answered_504(
    desk: Desk,
) -> None:
    account = f"acc_{uuid.uuid4().hex}"
    desk.fund(account, Decimal(100), A_FAULT)
    transaction_id = str(uuid.uuid4())
    with pytest.raises(e.OutcomePending):
        await desk.send(
            wire(sending_account_id=account), command_id=transaction_id, wait_seconds=0.5
        )

    async def broke() -> bool:
        return bool(
            await desk.rows(
                "SELECT 1 FROM inbox WHERE command_id = $1 AND last_error IS NOT NULL",
                uuid.UUID(transaction_id),
            )
        )

    await desk.until("it was driven, and put off", broke)
    desk.owned[account] = C_1
    await desk.due_now()

    await desk.has_state(transaction_id, "submitted")

    assert desk.core.executed == {transaction_id: 1}


async def test_the_feed_ahead_of_the_drive_changes_no_answer_and_tells_nothing_twice(
    desk: Desk,
) -> None:
    transaction_id = str(uuid.uuid4())
    desk.core.completes_at_once = True
    desk.core.faults["accept_then_drop"] = 1
    desk.core.only = "send_wire"
    sending = asyncio.create_task(desk.send(command_id=transaction_id))
    await desk.has_state(transaction_id, "completed")
    desk.core.tell("returned", transaction_id, "mistake")
    desk.core.heal()

    sent = await sending

    assert sent["transaction_id"] == transaction_id
    await desk.has_state(transaction_id, "returned")
    await desk.has_events(transaction_id, "created", "submitted", "completed", "returned")
    assert desk.core.executed == {transaction_id: 1}


async def test_a_wire_that_the_bank_took_and_later_rejected_was_accepted(desk: Desk) -> None:
    transaction_id = str(uuid.uuid4())
    desk.core.faults["accept_then_drop"] = 1
    desk.core.only = "send_wire"
    sending = asyncio.create_task(desk.send(command_id=transaction_id))

    async def taken() -> bool:
        return desk.core.executed[transaction_id] == 1

    await desk.until("the bank has it", taken)
    desk.core.events.clear()  # no report of its submission
    desk.core.tell("rejected", transaction_id, "no_such_beneficiary")
    rejected = await desk.has_state(transaction_id, "rejected")
    sent = await sending

    assert sent["transaction_id"] == transaction_id
    why = {"reason": "provider_refused", "reason_detail": "no_such_beneficiary"}
    assert rejected == rejected | why
    await desk.has_events(transaction_id, "created", "submitted", "rejected")
    [data] = desk.data_of(transaction_id, "rejected")
    assert data == data | why


async def test_news_that_contradict_what_is_known_change_nothing(desk: Desk) -> None:
    transaction_id = (await desk.send())["transaction_id"]
    desk.core.tell("completed", transaction_id)
    await desk.has_state(transaction_id, "completed")

    desk.core.tell("rejected", transaction_id, "too late")
    desk.core.tell("completed", str(uuid.uuid4()))
    desk.core.tell("completed", "not-one-of-ours")
    desk.core.tell("submitted", transaction_id)
    desk.core.tell("returned", transaction_id)
    await desk.has_state(transaction_id, "returned")

    await desk.has_events(transaction_id, "created", "submitted", "completed", "returned")
    assert "illegal_transition" in desk.office.replicas[0].log
    assert desk.office.replicas[0].log.count("news_of_unknown_wire") >= 2


async def test_wires_are_counted_by_state_and_the_oldest_unknown_has_an_age(desk: Desk) -> None:
    desk.core.faults["error"] = 1
    with pytest.raises(e.OutcomePending):
        await desk.send(wait_seconds=4)
    await desk.database.execute(
        "UPDATE wires SET send_begun_at = now() - interval '1 hour' WHERE state = 'pending_submission'"
    )
    await desk.office.replicas[0].stop()
    await desk.office.run(1)

    async def is_measured() -> bool:
        metrics = await desk.metrics()
        assert metrics['bankside_wires{state="pending_submission"}'] >= 1
        return metrics["bankside_oldest_unknown_wire_seconds"] >= 3600

    await eventually("the oldest unknown wire is measured", is_measured)


async def test_the_rows_of_payments_are_a_customers_but_for_the_policy_that_its_partner_sets() -> (
    None
):
    families = {row.name: row.family for row in table.OPERATIONS if row.path}
    of_partners = {table.GET_WIRE_POLICY.name, table.SET_WIRE_POLICY.name}
    assert families.keys() >= of_partners
    assert all(
        family == ("partner" if name in of_partners else "customer")
        for name, family in families.items()
    )
