"""Every crash point of the handlers: what each drive of a command makes of what the one before it left behind.

The handlers run in the test's own process: a command is stopped at one point after the other, where its process would
kill itself, and driven again after each. Processes that are killed, once in each phase, amid a crowd and beside a
second replica, are in tests/integration/payments/test_crashes.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from uuid import UUID, uuid4

import msgspec
import pytest
from sqlalchemy import text

import services.payments
from deploy.local.ports import LOOPBACK
from libs.contracts.errors import InsufficientFunds, OutcomePending
from libs.contracts.principal import Principal
from libs.contracts.wires import WireState
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sessions import open_session
from libs.runtime import crash
from services.payments.adapters.sandbox.core import SandboxCoreBanking
from services.payments.models import WireRecord
from services.payments.policies import Policy
from tests.support.capabilities import FOR_EVER
from tests.support.ports import free_ports
from tests.unit.payments.bench import MINE, Bench

RECORDING = ["called", "recording", "recorded"]
OF_A_SEND = ["intending", "intended", *RECORDING]
OF_ONE_THAT_WAS_NOT_SENT = ["withdrawing", "withdrawn"]
OF_ONE_THAT_FAILED = ["resumed", *RECORDING]
OF_AN_APPROVAL = ["approving", "approved", *RECORDING]
OF_A_DECLINE = ["declining", "declined"]
OF_A_CANCELLATION = ["canceling", "canceled"]
OF_A_POLICY = ["setting_policy", "set_policy"]
OF_EVERY_COMMAND = ["accepted", "driving", "concluding", "concluded"]
OF_THE_FEED = ["feed.core.before_commit", "feed.core.after_commit"]
TESTED = (
    *(OF_A_SEND, OF_ONE_THAT_WAS_NOT_SENT, OF_ONE_THAT_FAILED, OF_AN_APPROVAL, OF_A_DECLINE),
    *(OF_A_CANCELLATION, OF_A_POLICY),
)

DriveAgain = Callable[[int], Awaitable[Any]]
"""One drive of a command, told which it is."""


class Stopped(BaseException):
    """Stands for the death of the process."""


@pytest.fixture(autouse=True)
def stopped_rather_than_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> NoReturn:
        raise Stopped

    monkeypatch.setattr(crash, "os", SimpleNamespace(kill=stop, getpid=os.getpid))


@pytest.fixture(autouse=True)
def a_customer_of_its_own(bench: Bench) -> None:
    bench.owner = msgspec.structs.replace(MINE, customer_id=str(uuid4()))


@pytest.fixture
def approver(bench: Bench) -> Principal:
    return msgspec.structs.replace(bench.owner, subscription_key="sub_second")


async def stopped_at_each(points: Sequence[str], drive: DriveAgain, first: int = 1) -> int:
    """Drive, stopped once at each of these points, which are reached in this order; the number of the next drive."""
    for number, point in enumerate(points, start=first):
        crash.arm(f"payments.{point}")
        try:
            await drive(number)
        except Stopped:
            continue
        except OutcomePending as error:
            raise AssertionError(f"{point} was not reached") from error
        finally:
            crash.arm("")
        raise AssertionError(f"{point} was not reached")
    return first + len(points)


async def events_of(bench: Bench, transaction_id: UUID) -> list[str]:
    async with bench.database.transaction() as connection:
        rows = await connection.execute(
            text("SELECT type FROM outbox WHERE resource_id = :id ORDER BY sequence"),
            {"id": str(transaction_id)},
        )
        return [row.type.removeprefix("wire.") for row in rows]


def states_of(wire: WireRecord) -> list[WireState]:
    return [step.state for step in wire.history]


async def test_a_send_has_one_effect(bench: Bench) -> None:
    leased = await bench.accepted()

    following = await stopped_at_each(OF_A_SEND, lambda n: bench.send(leased, attempt=n))
    await bench.send(leased, attempt=following)

    assert bench.core.executed == {str(leased.command_id): 1}
    assert bench.core.received["send_wire"] == 1, "afterwards the bank is asked"
    assert states_of(await bench.found(leased)) == ["pending_submission", "submitted"]
    assert await events_of(bench, leased.command_id) == ["created", "submitted"]


async def test_a_send_that_the_bank_refuses_is_rejected_once(bench: Bench) -> None:
    leased = await bench.accepted()
    bench.core.accounts["acc_1"].available = Decimal(0)

    following = await stopped_at_each(OF_A_SEND, lambda n: bench.send(leased, attempt=n))
    bench.core.accounts["acc_1"].available = Decimal(1000)
    with pytest.raises(InsufficientFunds):
        await bench.send(leased, attempt=following)

    assert bench.core.executed == {}
    assert states_of(await bench.found(leased)) == ["pending_submission", "rejected"]
    assert await events_of(bench, leased.command_id) == ["created", "rejected"]


@pytest.mark.parametrize("point", OF_ONE_THAT_WAS_NOT_SENT)
async def test_a_send_that_did_not_reach_the_bank_is_sent_when_it_does(
    bench: Bench, point: str
) -> None:
    leased = await bench.accepted()
    [nowhere] = free_ports(1)

    async with open_session(1) as session:
        client = ProviderClient("core", f"http://{LOOPBACK}:{nowhere}", bench.core.token, session)
        away = SandboxCoreBanking(client, FOR_EVER)
        following = await stopped_at_each(
            [point], lambda n: bench.send(leased, attempt=n, bank=away)
        )
    await bench.send(leased, attempt=following)

    assert bench.core.executed == {str(leased.command_id): 1}
    assert bench.core.received["get_operation"] == (1 if point == "withdrawing" else 0)
    assert states_of(await bench.found(leased)) == ["pending_submission", "submitted"]


@pytest.mark.parametrize("fault", ["error", "fail_after_success"])
async def test_a_send_whose_answer_is_lost_has_one_effect(bench: Bench, fault: str) -> None:
    leased = await bench.accepted()
    bench.core.next_fault = fault
    with pytest.raises(OutcomePending):
        await bench.send(leased, attempt=1)

    following = await stopped_at_each(
        OF_ONE_THAT_FAILED, lambda n: bench.send(leased, attempt=n), 2
    )
    await bench.send(leased, attempt=following)

    assert bench.core.executed == {str(leased.command_id): 1}
    assert states_of(await bench.found(leased)) == ["pending_submission", "submitted"]


async def test_an_approval_sends_once(bench: Bench, approver: Principal) -> None:
    transaction_id = await bench.waiting()
    leased = await bench.accepted_approval(transaction_id, approver)

    def approve(attempt: int) -> Awaitable[Any]:
        return bench.approve(transaction_id, approver, leased=leased, attempt=attempt)

    await approve(await stopped_at_each(OF_AN_APPROVAL, approve))

    assert bench.core.executed == {str(transaction_id): 1}
    assert await events_of(bench, transaction_id) == [
        "approval_requested",
        "approved",
        "submitted",
    ]


async def test_a_decline_cancels_once(bench: Bench, approver: Principal) -> None:
    transaction_id = await bench.waiting()
    leased = await bench.accepted_decline(transaction_id, approver)

    def decline(attempt: int) -> Awaitable[Any]:
        return bench.decline(transaction_id, approver, leased=leased, attempt=attempt)

    await decline(await stopped_at_each(OF_A_DECLINE, decline))

    assert bench.core.executed == {}
    assert await events_of(bench, transaction_id) == ["approval_requested", "canceled"]


async def test_a_cancellation_cancels_once(bench: Bench) -> None:
    send = await bench.wire()
    leased = await bench.accepted_cancellation(send.command_id)

    def cancel(attempt: int) -> Awaitable[Any]:
        return bench.cancel(send.command_id, leased=leased, attempt=attempt)

    await cancel(await stopped_at_each(OF_A_CANCELLATION, cancel))

    assert states_of(await bench.found(send)) == ["pending_submission", "canceled"]


async def test_a_policy_that_was_set_is_not_set_again_over_a_later_one(bench: Bench) -> None:
    policy = Policy(approval_threshold=Decimal(500))
    leased = await bench.accepted_policy(policy)

    def set_policy(attempt: int) -> Awaitable[Any]:
        return bench.drive_policy(leased, policy, attempt=attempt)

    following = await stopped_at_each(OF_A_POLICY, set_policy)
    await bench.set_policy(Policy(approval_threshold=Decimal(100)))
    standing = await set_policy(following)

    assert standing.approval_threshold == Decimal(100)


def test_every_crash_point_is_in_the_readme_and_in_the_code() -> None:
    folder = Path(services.payments.__file__).parent
    readme = (folder / "README.md").read_text()
    code = "".join(path.read_text() for path in folder.rglob("*.py"))

    listed = set(re.findall(r"`([a-z_.]+)`", readme[readme.index("**Crash points**") :]))
    in_code = set(re.findall(r'crash_point\("payments\.(\w+)"\)', code))

    assert in_code == {point for points in TESTED for point in points}
    assert {*in_code, *OF_EVERY_COMMAND, *OF_THE_FEED} <= listed
