"""Faults that tests order, and what the bank still knows after them and after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from increase import (
    APIConnectionError,
    AsyncIncrease,
    IdempotencyKeyAlreadyUsedError,
    IncreaseError,
    InternalServerError,
    RateLimitError,
)
from increase.types import WireTransfer

from deploy.local.banks import PORT_SETTING
from tests.support.increase_bank.faults import FaultKind, FaultRule
from tests.support.increase_bank.server import RunningBank, running_bank
from tests.support.increase_clients import (
    client_of,
    fund,
    link_external,
    open_account,
    send_wire,
)
from tests.support.launching import forked
from tests.support.ports import free_ports
from tests.support.stack import IncreaseFake

WIRES = "POST /wire_transfers"


@pytest.mark.parametrize(
    ("kind", "raised", "effects"),
    [
        ("rate_limit", RateLimitError, 0),
        ("error", InternalServerError, 0),
        ("drop", APIConnectionError, 0),
        ("key_conflict", IdempotencyKeyAlreadyUsedError, 1),
        ("fail_after_success", InternalServerError, 1),
        ("accept_then_drop", APIConnectionError, 1),
    ],
)
async def test_each_fault_has_its_answer_and_its_effect(
    running: RunningBank,
    increase: AsyncIncrease,
    kind: FaultKind,
    raised: type[IncreaseError],
    effects: int,
) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 1_000)
    running.bank.faults.put(FaultRule(operation=WIRES, kind=kind, times=1))

    with pytest.raises(raised):
        await send_wire(increase, account, external, 100, "wire-1")

    async def made() -> list[str]:
        return [wire.id for wire in (await increase.wire_transfers.list()).data]

    assert len(await made()) == effects
    again = await send_wire(increase, account, external, 100, "wire-1")
    assert await made() == [again.id]


@pytest.mark.parametrize(("has_header", "header"), [(True, "7"), (False, None)])
async def test_a_rate_limit_says_when_to_come_again(
    running: RunningBank, increase: AsyncIncrease, has_header: bool, header: str | None
) -> None:
    running.bank.faults.put(FaultRule(kind="rate_limit", retry_after=7, has_header=has_header))

    with pytest.raises(RateLimitError) as limited:
        await increase.groups.retrieve()

    assert limited.value.response.headers.get("Retry-After") == header
    assert limited.value.response.json()["retry_after"] == 7


async def test_what_was_acknowledged_survives_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "bank"
    async with running_bank(folder, {"a-key": "everything"}) as first:
        first.bank.conduct.wire_seconds = 3600.0
        async with client_of(first.url, "a-key") as increase:
            account, external = await open_account(increase), await link_external(increase)
            await fund(increase, account, 1_000)
            wire = await send_wire(increase, account, external, 100, "wire-1")

    async with (
        running_bank(folder, {"a-key": "everything"}) as second,
        client_of(second.url, "a-key") as increase,
    ):
        again = await send_wire(increase, account, external, 100, "wire-1")

        assert again.id == wire.id
        assert (await increase.accounts.balance(account.id)).available_balance == 900


async def test_a_bank_that_is_killed_has_made_each_wire_once(tmp_path: Path) -> None:
    [port] = free_ports(1)
    settings = {PORT_SETTING: str(port), "BANKSIDE_PAYMENTS_INCREASE_KEY": "a-key"}
    arguments = ("--port", str(port), "--data", str(tmp_path / "bank"))
    module, log = "tests.support.increase_bank", tmp_path / "bank.log"
    process = IncreaseFake(module, settings, log, forked, *arguments)
    await process.start()
    try:
        async with client_of(f"http://127.0.0.1:{port}", "a-key") as increase:
            account, external = await open_account(increase), await link_external(increase)
            await fund(increase, account, 1_000)
            sending = [
                asyncio.create_task(send_wire(increase, account, external, 1, f"wire-{number}"))
                for number in range(100)
            ]
            await sending[20]
            await process.kill()
            before = await asyncio.gather(*sending, return_exceptions=True)
        await process.start()
        async with client_of(f"http://127.0.0.1:{port}", "a-key") as increase:
            for number in range(100):
                await send_wire(increase, account, external, 1, f"wire-{number}")
            wires = [wire.id async for wire in increase.wire_transfers.list(account_id=account.id)]
            balance = await increase.accounts.balance(account.id)
    finally:
        await process.kill()

    acknowledged = {wire.id for wire in before if isinstance(wire, WireTransfer)}
    assert len(wires) == 100
    assert acknowledged <= {*wires}
    assert balance.available_balance == 900


async def test_tests_order_and_read_over_http(
    running: RunningBank, increase: AsyncIncrease
) -> None:
    account, external = await open_account(increase), await link_external(increase)
    await fund(increase, account, 1_000)
    async with aiohttp.ClientSession(f"{running.url}/fake/") as fake:
        await fake.put("conduct", json={"wire_seconds": 3600})
        wire = await send_wire(increase, account, external, 100, "wire-1")
        async with fake.post(f"wires/{wire.id}", json={"status": "rejected"}) as answer:
            moved = await answer.json()
        async with fake.put("faults", json={"kind": "no such fault"}) as answer:
            refused = answer.status
        async with fake.get("truth/wires", params={"account_id": account.id}) as answer:
            wires = (await answer.json())["wires"]
        async with fake.get("truth/balances") as answer:
            balances = (await answer.json())["balances"]
        async with fake.get("violations") as answer:
            violations = (await answer.json())["violations"]

    assert (moved["status"], refused, violations) == ("rejected", 422, [])
    assert [item["idempotency_key"] for item in wires] == ["wire-1"]
    assert balances == [{"account_id": account.id, "current": 1_000, "held": 0}]
