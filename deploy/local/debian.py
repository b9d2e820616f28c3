"""Packages of the system, for what pip cannot give. Used before there is an environment: standard library only."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_POLICY = Path("/usr/sbin/policy-rc.d")
_WAIT_FOR_LOCK = ("-o", "DPkg::Lock::Timeout=120")
_REFUSE_ALL = "#!/bin/sh\nexit 101\n"


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
    """Debian asks /usr/sbin/policy-rc.d before a package starts its service: have it say no, unless it is set."""
    if _POLICY.exists():
        yield
        return
    put = [*root, "install", "-m", "755", "/dev/stdin", str(_POLICY)]
    subprocess.run(put, input=_REFUSE_ALL.encode(), check=True)
    try:
        yield
    finally:
        subprocess.run([*root, "rm", "-f", str(_POLICY)], check=True)
