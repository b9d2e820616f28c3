"""A package is installed while Debian is told to start no service, and Debian is told so no longer than that."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.local import debian

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def interrupted_as_a_process_is() -> Iterator[None]:
    """By KeyboardInterrupt. The event loop of a session that is shared may have SIGINT do nothing."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What stands in for /usr/sbin/policy-rc.d."""
    path = tmp_path / "policy-rc.d"
    monkeypatch.setattr("deploy.local.debian._POLICY", path)
    monkeypatch.setattr("deploy.local.debian.as_root", list)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return path


def install(policy: Path, script: str) -> str | None:
    """Install with a script in the place of apt-get."""
    apt = policy.with_name("apt-get")
    apt.write_text(f"#!/bin/sh\n{script}\n")
    apt.chmod(0o755)
    return debian.install("a-package", policy.with_name("log"))


def test_no_service_is_started_while_a_package_is_installed(policy: Path) -> None:
    seen = policy.with_name("seen")

    assert install(policy, f"{policy}; echo $? >>{seen}") is None

    assert seen.read_text() == "101\n101\n"
    assert not policy.exists()


@pytest.mark.parametrize("signum", ENDING, ids=lambda signum: signum.name)
def test_services_can_be_started_again_after_an_installation_that_was_ended(
    policy: Path, monkeypatch: pytest.MonkeyPatch, signum: signal.Signals
) -> None:
    run = subprocess.run

    def run_and_be_ended(command: list[str], **given: Any) -> subprocess.CompletedProcess[bytes]:
        if "apt-get" in command:
            assert policy.exists()
            signal.raise_signal(signum)
        return run(command, **given)

    monkeypatch.setattr("deploy.local.debian.subprocess.run", run_and_be_ended)
    is_int = signum is signal.SIGINT
    inherited = signal.signal(signum, signal.default_int_handler if is_int else signal.SIG_DFL)
    try:
        before = [signal.getsignal(one) for one in ENDING]
        with pytest.raises(KeyboardInterrupt if is_int else SystemExit) as raised:
            install(policy, "exit 0")
        after = [signal.getsignal(one) for one in ENDING]
    finally:
        signal.signal(signum, inherited)

    assert not policy.exists()
    assert after == before
    if isinstance(raised.value, SystemExit):
        assert raised.value.code == 128 + signum


def test_a_signal_that_is_ignored_stays_ignored(policy: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert install(policy, "kill -HUP $PPID") is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_a_killed_installation_has_left_is_removed(policy: Path) -> None:
    left = policy.with_name("left")
    install(policy, f"cp {policy} {left}")
    left.rename(policy)

    install(policy, "exit 0")

    assert not policy.exists()


def test_a_policy_of_the_machine_stays(policy: Path) -> None:
    policy.write_text("#!/bin/sh\nexit 101\n")

    install(policy, "exit 0")

    assert policy.read_text() == "#!/bin/sh\nexit 101\n"
