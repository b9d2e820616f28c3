"""The stack of `make up`, in a copy of the checkout, without the making of the environment."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import asyncpg
import pytest

from deploy.local.ports import LOOPBACK
from deploy.local.state import LocalState
from libs.runtime.processes import ProcessIdentity, end_processes
from libs.runtime.supervision_state import ChildState, SupervisorStatus
from tests.support.own_servers import until_settled
from tests.support.pace import pace
from tests.support.people import application
from tests.support.ports import free_ports

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND_SECONDS = 150
READY_SECONDS = 60


class LocalStack:
    """`python -m deploy.local` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        gateway, operators, sandbox, console = free_ports(4)
        self.ports = {
            "BANKSIDE_GATEWAY_PORT": str(gateway),
            "BANKSIDE_GATEWAY_OPERATOR_PORT": str(operators),
            "BANKSIDE_SANDBOX_PORT": str(sandbox),
            "BANKSIDE_CONSOLE_PORT": str(console),
        }

    def bankside(self, *arguments: str) -> str:
        """What the command prints, by the settings and keys of this stack."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BANKSIDE_")}
        done = subprocess.run(
            [sys.executable, "-m", "libs.cli", *arguments],
            cwd=self.folder,
            env=inherited,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def state(self) -> Path:
        """What the supervisor keeps up to date."""
        return self.folder / ".local" / "supervisor.json"

    def run(self, command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("BANKSIDE_")}
        return subprocess.run(
            [sys.executable, "-m", "deploy.local", command],
            cwd=self.folder,
            env=inherited | self.ports | settings,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def onboard(self) -> subprocess.CompletedProcess[str]:
        """One signed onboarding, by the command line."""
        body = self.folder / "application.json"
        body.write_text(json.dumps(application()))
        return subprocess.run(
            [
                str(Path(sys.executable).with_name("bankside")),
                *("call", "POST", "/partner/reseller/customers", "--data", f"@{body}"),
            ],
            cwd=self.folder,
            env={k: v for k, v in os.environ.items() if not k.startswith("BANKSIDE_")},
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def processes(self) -> Mapping[str, ProcessIdentity]:
        """What runs now, by name."""
        status = SupervisorStatus.read(self.state)
        if status is None:
            return {}
        children = {child.name: child.process for child in status.children if child.process}
        return {"supervisor": status.process, **children}

    def until_replaced(self, before: Mapping[str, ProcessIdentity], *names: str) -> None:
        """Return when each of these is another process than before, and everything is ready."""
        deadline = time.monotonic() + READY_SECONDS * pace()
        # Of the state on disk, for each `status` takes a second of processor time.
        while not self._are_replaced(before, names):
            assert time.monotonic() < deadline, self.run("status").stdout
            time.sleep(0.1)
        while (done := self.run("status")).returncode != 0:
            assert time.monotonic() < deadline, done.stdout
            time.sleep(1)  # more often, the question itself would slow what it waits for

    def _are_replaced(self, before: Mapping[str, ProcessIdentity], names: Iterable[str]) -> bool:
        status = SupervisorStatus.read(self.state)
        assert status is not None, "the supervisor runs"
        now = {child.name: child for child in status.children}
        return all(
            now[name].process not in {None, before[name]} and now[name].state is ChildState.READY
            for name in names
        )


@pytest.fixture
def local_stack(tmp_path: Path) -> Iterator[LocalStack]:
    # With compiled code, but not with what other processes are just writing of it.
    unfinished = shutil.ignore_patterns("*.pyc.*")
    for folder in ("deploy", "libs", "services"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder, ignore=unfinished)
    stack = LocalStack(tmp_path)
    yield stack
    running = list(stack.processes().values())
    if running:
        stack.run("clean")
        end_processes(running)


async def use_one_time_password(state: LocalState) -> None:
    """As if the first operator had enrolled at the console."""
    url = state.read_environment()["BANKSIDE_GATEWAY_DATABASE_URL"]
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    await connection.execute("UPDATE gateway.operator_logins SET one_time_until = NULL")
    await connection.close()


def test_up_is_idempotent_heals_what_is_killed_and_down_leaves_nothing(
    local_stack: LocalStack,
) -> None:
    first = local_stack.run("up")
    assert first.returncode == 0, first.stdout + first.stderr
    credentials = local_stack.folder / ".local" / "credentials.json"
    made = json.loads(credentials.read_text())
    urls = {"base_url", "operator_url", "console_url", "sandbox_url"}
    assert made.keys() == {*urls, "operator", "partner"}
    assert f"{made['console_url']}  first log-in: operator" in first.stdout
    assert made["operator"]["one_time_password"] in first.stdout
    assert credentials.stat().st_mode & 0o777 == 0o600

    # What an earlier release has left has no operator.
    credentials.write_text(
        json.dumps({name: made[name] for name in ("base_url", "sandbox_url", "partner")})
    )
    second = local_stack.run("up")
    assert second.returncode == 0
    assert "running already" in second.stdout
    completed = json.loads(credentials.read_text())
    assert completed["partner"] == made["partner"]
    assert completed["operator"] != made["operator"]
    assert "operator  admin  active" in local_stack.bankside("operators", "list")

    assert "first log-in" in second.stdout
    asyncio.run(use_one_time_password(LocalState(local_stack.folder / ".local")))
    third = local_stack.run("up")
    assert third.returncode == 0
    assert "first log-in" not in third.stdout, "it has been used"
    assert "one_time_password" not in json.loads(credentials.read_text())["operator"]

    asyncio.run(until_settled(local_stack.folder / ".local"))
    before = local_stack.processes()
    for name in ("postgres", "rabbitmq", "onboarding"):
        os.kill(before[name].pid, 9)
    local_stack.until_replaced(before, "postgres", "rabbitmq", "onboarding")
    after = local_stack.processes()
    assert {name for name in before if before[name] != after[name]} == {
        "postgres",
        "rabbitmq",
        "onboarding",
    }
    healed = local_stack.onboard()
    assert healed.returncode == 0, healed.stdout + healed.stderr

    assert local_stack.run("down").returncode == 0
    assert not [name for name, process in after.items() if process.is_running()]
    assert local_stack.run("status").returncode == 1


def test_a_busy_port_is_one_sentence_with_the_setting_that_changes_it(
    local_stack: LocalStack,
) -> None:
    with socket.create_server((LOOPBACK, 0)) as busy:
        port = str(busy.getsockname()[1])

        done = local_stack.run("up", BANKSIDE_GATEWAY_PORT=port)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"Port {port}" in done.stderr
    assert f"(pid {os.getpid()})" in done.stderr
    assert "BANKSIDE_GATEWAY_PORT=" in done.stderr


def test_a_broker_that_does_not_answer_is_one_sentence_without_its_password(
    local_stack: LocalStack,
) -> None:
    (port,) = free_ports(1)

    done = local_stack.run("up", BANKSIDE_AMQP_URL=f"amqp://me:hidden@{LOOPBACK}:{port}/x")

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"{LOOPBACK}:{port}" in done.stderr
    assert "hidden" not in done.stderr
