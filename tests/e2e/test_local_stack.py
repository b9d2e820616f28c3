"""The stack of `make up`, in a copy of the checkout, without the making of the environment."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import asyncpg
import pytest

from deploy.local.__main__ import run
from deploy.local.ports import LOOPBACK
from deploy.local.state import LocalState
from libs.client.errors import OperatorError
from libs.runtime.processes import ProcessIdentity, end_processes
from libs.runtime.supervision_state import ChildState, SupervisorStatus
from tests.support.command_line import Finished, run_bankside
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

    def run_here(self, command: str) -> tuple[int, str]:
        """Likewise in this process, and the `bankside` that it calls is forked, without the time to load interpreters:
        the exit code and what is shown.
        """
        with (
            contextlib.redirect_stdout(io.StringIO()) as shown,
            patch("deploy.local.keys.subprocess.run", forked_bankside),
        ):
            code = run(command, LocalState(self.folder / ".local"))
        return code, shown.getvalue()

    def onboard(self) -> Finished:
        """One signed onboarding, by the command line."""
        body = self.folder / "application.json"
        body.write_text(json.dumps(application()))
        call = ("call", "POST", "/partner/reseller/customers", "--data", f"@{body}")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BANKSIDE_")}
        return asyncio.run(run_bankside(call, environment, folder=self.folder))

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
        while not self._are_replaced(before, names):
            assert time.monotonic() < deadline, self.run_here("status")
            time.sleep(0.1)
        while (answer := self.run_here("status"))[0] != 0:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def _are_replaced(self, before: Mapping[str, ProcessIdentity], names: Iterable[str]) -> bool:
        status = SupervisorStatus.read(self.state)
        assert status is not None, "the supervisor runs"
        now = {child.name: child for child in status.children}
        return all(
            now[name].process not in {None, before[name]} and now[name].state is ChildState.READY
            for name in names
        )


def forked_bankside(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], **_: object
) -> subprocess.CompletedProcess[str]:
    program, *arguments = command
    assert Path(program).name == "bankside"
    done = asyncio.run(run_bankside(tuple(arguments), env, folder=cwd))
    return subprocess.CompletedProcess(command, done.status, done.out, done.err)


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


async def use_one_time_password(state: LocalState) -> str:
    """As if the first operator had enrolled at the console: its role."""
    url = state.read_environment()["BANKSIDE_GATEWAY_DATABASE_URL"]
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    await connection.execute("UPDATE gateway.operator_logins SET one_time_until = NULL")
    role: str = await connection.fetchval(
        "SELECT role FROM gateway.operators WHERE name = 'operator'"
    )
    await connection.close()
    return role


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
    second = local_stack.run_here("up")
    assert second[0] == 0
    assert "running already" in second[1]
    completed = json.loads(credentials.read_text())
    assert completed["partner"] == made["partner"]
    assert completed["operator"] != made["operator"]
    assert "first log-in" in second[1]

    assert asyncio.run(use_one_time_password(LocalState(local_stack.folder / ".local"))) == "admin"
    third = local_stack.run_here("up")
    assert third[0] == 0
    assert "first log-in" not in third[1], "it has been used"
    assert "one_time_password" not in json.loads(credentials.read_text())["operator"]

    # That the broker comes back under this supervision is shown by faults/test_servers.py.
    before, killed = local_stack.processes(), {"postgres", "onboarding"}
    for name in killed:
        os.kill(before[name].pid, 9)
    local_stack.until_replaced(before, *killed)
    after = local_stack.processes()
    assert {name for name in before if before[name] != after[name]} == killed
    healed = local_stack.onboard()
    assert healed.status == 0, healed.out + healed.err

    assert local_stack.run_here("down")[0] == 0
    assert not [name for name, process in after.items() if process.is_running()]
    assert local_stack.run_here("status")[0] == 1


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
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("BANKSIDE_AMQP_URL", f"amqp://me:hidden@{LOOPBACK}:{port}/x")

    with pytest.raises(OperatorError) as raised:
        run("up", LocalState(tmp_path / ".local"))

    said = str(raised.value)
    assert "\n" not in said
    assert f"{LOOPBACK}:{port}" in said
    printed = capfd.readouterr()
    assert "hidden" not in said + printed.out
    assert printed.err == ""
