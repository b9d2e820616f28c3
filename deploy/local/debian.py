"""Packages of the system, for what pip cannot give. Used before there is an environment: standard library only."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

_POLICY = Path("/usr/sbin/policy-rc.d")
_WAIT_FOR_LOCK = ("-o", "DPkg::Lock::Timeout=120")
_REFUSE_ALL = b"""\
#!/bin/sh
# Bankside's `make` put this here, to be removed once it has installed a package.
exit 101
"""
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def as_root() -> list[str] | None:
    """What to put before a command that needs root: nothing, or sudo; None when we cannot become root."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None:
        return None
    if sys.stdin.isatty():
        return [sudo]
    usable = subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0
    return [sudo, "-n"] if usable else None


def install(package: str, log: Path) -> str | None:
    """Install a package without starting the services in it. None when it is there, else why it is not."""
    root = as_root()
    if root is None:
        return "we are not root and there is no sudo"
    if shutil.which("apt-get") is None:
        return "this system has no apt-get"
    apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", *_WAIT_FOR_LOCK]
    with log.open("ab") as output, _services_held_back(root):
        for command in (
            [*apt, "update"],
            [*apt, "install", "-y", "--no-install-recommends", package],
        ):
            done = subprocess.run(command, stdout=output, stderr=output, check=False)
    # A failed update is no matter when the lists are good enough for the install.
    return None if done.returncode == 0 else f"apt-get failed, see {log}"


def disable_service(service: str, log: Path) -> None:
    """Keep a service that came with a package from starting at the next boot."""
    root = as_root()
    if root is not None:
        with log.open("ab") as output:
            command = [*root, "update-rc.d", service, "disable"]
            subprocess.run(command, stdout=output, stderr=output, check=False)


@contextlib.contextmanager
def _services_held_back(root: list[str]) -> Iterator[None]:
    """Debian asks /usr/sbin/policy-rc.d before a package starts its service: have it say no, unless it is set.

    A file that an earlier run has left, because it was killed, is removed at the end, too.
    """
    if _POLICY.exists() and _POLICY.read_bytes() != _REFUSE_ALL:
        yield
        return
    put = [*root, "install", "-m", "755", "/dev/stdin", str(_POLICY)]
    with _exit_on_signals() as ignore_signals:
        try:
            subprocess.run(put, input=_REFUSE_ALL, check=True)
            yield
        finally:
            ignore_signals()
            subprocess.run([*root, "rm", "-f", str(_POLICY)], check=True)


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[Callable[[], None]]:
    """Have SIGHUP and SIGTERM raise SystemExit, once. With the given function all signals that end us are ignored from
    then on, also by the commands that are run, until the block ends.
    """
    before = {signum: signal.getsignal(signum) for signum in _ENDING}

    def ignore() -> None:
        for signum in _ENDING:
            signal.signal(signum, signal.SIG_IGN)

    def leave(signum: int, _: object) -> NoReturn:
        ignore()
        sys.exit(128 + signum)

    for signum in (signal.SIGHUP, signal.SIGTERM):
        if before[signum] != signal.SIG_IGN:  # as `nohup` has it
            signal.signal(signum, leave)
    try:
        yield ignore
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
