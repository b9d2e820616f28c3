"""Wires, ACH transfers and what they do to balances and transactions."""

from __future__ import annotations

import pytest
from increase import (
    AsyncIncrease,
    ConflictError,
    IdempotencyKeyAlreadyUsedError,
    InvalidOperationError,
    InvalidParametersError,
)

from libs.providers.increase.wires import retrieve_wire
from tests.support.increase_bank.server import RunningBank, advance
from tests.support.increase_clients import fund, link_external, open_account, send_wire
from tests.support.waiting import eventually


async def test_a_wire_holds_its_amount_then_is_booked_and_complete(
    running: RunningBank, increase: AsyncIncrease
) -> None:
    running.bank.conduct.wire_seconds = 3600.0
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 10_000)

    wire = await send_wire(increase, account, external, 2_525, "wire-1")
    before = await increase.accounts.balance(account.id)
    await increase.simulations.wire_transfers.submit(wire.id)

    assert wire.status == "pending_creating"
    assert (before.current_balance, before.available_balance) == (10_000, 7_475)
    sent = await increase.wire_transfers.retrieve(wire.id)
    after = await increase.accounts.balance(account.id)
    assert sent.status == "complete"
    assert sent.transaction_id is not None
    assert (after.current_balance, after.available_balance) == (7_475, 7_475)
    booked = await increase.transactions.retrieve(sent.transaction_id)
    assert booked.amount == -2_525
    assert booked.source.wire_transfer_intention is not None
    assert booked.source.wire_transfer_intention.transfer_id == wire.id
    assert running.bank.violations == []


async def test_a_creditor_has_the_lines_of_its_address(increase: AsyncIncrease) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 10_000)

    wire = await increase.wire_transfers.create(
        account_id=account.id,
        external_account_id=external.id,
        amount=100,
        creditor={
            "name": "Supplier Inc",
            "address": {
                "structured": {
                    "line1": "21 Harbor Street",
                    "city": "Portland",
                    "state": "ME",
                    "postal_code": "04101",
                    "country": "US",
                }
            },
        },
        remittance={"category": "unstructured", "unstructured": {"message": "Nets"}},
    )

    assert wire.creditor is not None
    assert wire.creditor.address is not None
    assert wire.creditor.address.unstructured is not None
    assert wire.creditor.address.unstructured.line1 == "21 Harbor Street"
    assert wire.creditor.address.unstructured.line2 == "Portland, ME 04101"


async def test_a_wire_moves_on_by_itself(increase: AsyncIncrease) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 10_000)

    wire = await send_wire(increase, account, external, 100, "wire-1")

    async def is_complete() -> bool:
        return (await increase.wire_transfers.retrieve(wire.id)).status == "complete"

    await eventually("the wire is complete", is_complete)


@pytest.mark.parametrize(
    ("cents", "status", "left"),
    [(166, "rejected", 10_000), (167, "requires_attention", 9_833), (168, "reversed", 10_000)],
)
async def test_the_cents_of_a_wire_decide_its_fate(
    increase: AsyncIncrease, cents: int, status: str, left: int
) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 10_000)

    wire = await send_wire(increase, account, external, cents, "wire-1")

    async def is_decided() -> bool:
        return (await retrieve_wire(increase, wire.id)).status == status

    await eventually("the wire is decided", is_decided)
    assert (await increase.accounts.balance(account.id)).available_balance == left


async def test_one_key_makes_one_wire(running: RunningBank, increase: AsyncIncrease) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 10_000)

    first = await send_wire(increase, account, external, 100, "wire-1")
    again = await increase.wire_transfers.with_raw_response.create(
        account_id=account.id,
        external_account_id=external.id,
        amount=100,
        creditor={"name": "Supplier Inc"},
        remittance={"category": "unstructured", "unstructured": {"message": "Nets and buoys"}},
        idempotency_key="wire-1",
    )
    with pytest.raises(IdempotencyKeyAlreadyUsedError) as refused:
        await send_wire(increase, account, external, 101, "wire-1")

    assert (await again.parse()).id == first.id
    assert again.headers["Idempotent-Replayed"] == "true"
    assert refused.value.resource_id == first.id
    found = await increase.wire_transfers.list(idempotency_key="wire-1")
    assert [wire.id for wire in found.data] == [first.id]


async def test_a_refused_wire_leaves_its_key_free(increase: AsyncIncrease) -> None:
    account, external = await open_account(increase), await link_external(increase)

    with pytest.raises(InvalidOperationError):
        await send_wire(increase, account, external, 100, "wire-1")
    await fund(increase, account, 100)

    assert (await send_wire(increase, account, external, 100, "wire-1")).amount == 100


async def test_what_the_types_do_not_allow_is_refused_and_recorded(
    running: RunningBank, increase: AsyncIncrease
) -> None:
    account, external = await open_account(increase), await link_external(increase)
    fields = {
        "account_id": account.id,
        "external_account_id": external.id,
        "amount": 100,
        "creditor": {"name": "Café Supplier"},
        "remittance": {"category": "unstructured", "unstructured": {"message": "Nets"}},
    }

    for wrong in ({}, {"creditor": {"name": "Supplier"}, "colour": "red"}, {"amount": "100"}):
        with pytest.raises(InvalidParametersError):
            await increase.post("/wire_transfers", body=fields | wrong, cast_to=object)

    assert len(running.bank.violations) == 3


async def test_a_wire_may_need_approval(running: RunningBank, increase: AsyncIncrease) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 10_000)
    wires = [
        await increase.wire_transfers.create(
            account_id=account.id,
            external_account_id=external.id,
            amount=100,
            creditor={"name": "Supplier Inc"},
            remittance={"category": "unstructured", "unstructured": {"message": "Nets"}},
            require_approval=True,
        )
        for _ in range(2)
    ]

    canceled = await increase.wire_transfers.cancel(wires[0].id)
    approved = await increase.wire_transfers.approve(wires[1].id)

    assert (wires[0].status, canceled.status) == ("pending_approval", "canceled")
    assert approved.approval is not None
    with pytest.raises(ConflictError):
        await increase.wire_transfers.approve(wires[0].id)
    advance(running.bank)
    assert (await increase.accounts.balance(account.id)).available_balance == 9_900


async def test_an_ach_credit_is_submitted_settled_and_returned(increase: AsyncIncrease) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 10_000)

    transfer = await increase.ach_transfers.create(
        account_id=account.id,
        external_account_id=external.id,
        amount=400,
        statement_descriptor="Invoice 7",
    )
    held = await increase.accounts.balance(account.id)
    settled = await increase.simulations.ach_transfers.settle(transfer.id)
    acknowledged = await increase.simulations.ach_transfers.acknowledge(transfer.id)
    returned = await increase.simulations.ach_transfers.return_(
        transfer.id, reason="account_closed"
    )

    assert transfer.status == "pending_submission"
    assert (held.current_balance, held.available_balance) == (10_000, 9_600)
    assert (settled.status, settled.settlement is not None) == ("submitted", True)
    assert acknowledged.acknowledgement is not None
    assert returned.return_ is not None
    assert returned.return_.raw_return_reason_code == "R02"
    listed = await increase.transactions.list(account_id=account.id)
    assert [t.amount for t in listed.data] == [400, -400, 10_000]


async def test_an_ach_debit_beyond_the_balance_is_declined(increase: AsyncIncrease) -> None:
    account = await open_account(increase)
    number = await fund(increase, account, 500)

    paid = await increase.simulations.inbound_ach_transfers.create(
        account_number_id=number.id, amount=-400, company_name="Wharf Properties"
    )
    declined = await increase.simulations.inbound_ach_transfers.create(
        account_number_id=number.id, amount=-400, company_name="Wharf Properties"
    )

    assert (paid.status, declined.status) == ("accepted", "declined")
    assert declined.decline is not None
    assert declined.decline.reason == "insufficient_funds"
    assert (await increase.accounts.balance(account.id)).current_balance == 100
