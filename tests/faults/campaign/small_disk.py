"""A disk that can be full: a tmpfs in a user namespace and a mount namespace of its own, which need no privileges.

What works on it is started inside the namespaces. Outside of them its folder is an ordinary one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from tests.support.infrastructure import START_SECONDS

ROOM_MEGABYTES = 8192
"""Of a disk that is not full. Memory is taken for what is written, and no more."""
TRIES = 20
"""To make a disk as small as what is on it, while that grows."""
_MAKE = """
cd "$1" && mount -t tmpfs -o "size=$2m,mode=700" tmpfs "$1" && cp --archive . "$1" && echo made && exec cat
"""
"""The working folder remains the one that the tmpfs hides."""
_FILL = """
used=$(df --block-size=1K --output=used "$1" | tail -n 1) && mount -o "remount,size=${used}k" tmpfs "$1"
"""
_EMPTY = 'mount -o "remount,size=$2m" tmpfs "$1"'


class NoSmallDisk(Exception):
    """This machine gives no user namespaces. The message says what it said."""


class SmallDisk:
    """The disk of `folder`, with what was in it.

    Args:
        user, group: who uses it; None is ourselves.
    """

    def __init__(self, folder: Path, user: int | None, group: int | None) -> None:
        self._folder = folder
        self._user = user
        self._group = group
        self._keeper: asyncio.subprocess.Process | None = None

    @contextlib.asynccontextmanager
    async def mounted(self) -> AsyncIterator[None]:
        """It is there until the block ends and the processes on it have ended. Raises NoSmallDisk."""
        new = ("unshare", "--user", "--map-root-user", "--mount", "--", *_shell(_MAKE))
        # The keeper ends with us: `cat` reads until nothing holds the other end of its input.
        keeper = self._keeper = await self._start(
            *new, str(self._folder), str(ROOM_MEGABYTES), stdin=asyncio.subprocess.PIPE
        )
        assert keeper.stdout is not None
        assert keeper.stderr is not None
        try:
            async with asyncio.timeout(START_SECONDS):
                if await keeper.stdout.readline() != b"made\n":
                    raise NoSmallDisk((await keeper.stderr.read()).decode(errors="replace").strip())
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                keeper.kill()
            await keeper.wait()

    def inside(self, *command: str) -> tuple[str, ...]:
        """The command as one that runs on the disk, as the account, which is not root there either."""
        uid = os.getuid() if self._user is None else self._user
        gid = os.getgid() if self._group is None else self._group
        as_account = ("unshare", "--user", f"--map-user={uid}", f"--map-group={gid}", "--")
        # The signal that ends a child with its supervisor does not outlive the change of namespaces.
        ends_with_parent = ("setpriv", "--pdeathsig", "INT", "--")
        return (*self._enter(), *as_account, *ends_with_parent, *command)

    async def fill(self) -> None:
        """From now on nothing more can be written to it than takes the place of something else."""
        for _ in range(TRIES):
            if await self._run(_FILL) == 0:
                return
        raise AssertionError(f"{self._folder} cannot be made full")

    async def free(self) -> None:
        assert await self._run(_EMPTY, str(ROOM_MEGABYTES)) == 0, f"{self._folder} stays full"

    async def _run(self, script: str, *arguments: str) -> int:
        process = await self._start(*self._enter(), *_shell(script), str(self._folder), *arguments)
        async with asyncio.timeout(START_SECONDS):
            await process.communicate()
        assert process.returncode is not None, "it has ended"
        return process.returncode

    def _enter(self) -> tuple[str, ...]:
        assert self._keeper is not None, "mounted"
        target = str(self._keeper.pid)
        return ("nsenter", "--preserve-credentials", "--user", "--mount", "--target", target, "--")

    async def _start(
        self, *command: str, stdin: int = asyncio.subprocess.DEVNULL
    ) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_ENVIRONMENT,
            user=self._user,
            group=self._group,
            extra_groups=None if self._user is None else [],
        )


_ENVIRONMENT: Mapping[str, str] = {
    "LC_ALL": "C.UTF-8",
    "PATH": os.environ.get("PATH", os.defpath),
}


def _shell(script: str) -> Sequence[str]:
    return ("sh", "-c", script, "sh")
