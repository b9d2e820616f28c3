"""Passwords of operators: argon2id, off the event loop, few at a time.

One hash takes 64 MiB and a tenth of a second, so that a stolen table is dear to search; a process computes no more than
`AT_ONCE` side by side, and lets no more than `WAITING` wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.profiles import RFC_9106_LOW_MEMORY

from libs.contracts.errors import Unavailable

AT_ONCE = 2
WAITING = 16

T = TypeVar("T")


class Passwords:
    """Hashes passwords and verifies them."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._of_no_one: str | None = None

    async def hashed(self, password: str) -> str:
        """Raises Unavailable: too many wait."""
        return await self._in_turn(lambda: self._hasher.hash(password))

    async def matches(self, stored: str | None, password: str) -> bool:
        """Whether it is the password; without a stored one the work is the same.

        Raises:
            Unavailable: too many wait.
        """
        if stored is None:
            if self._of_no_one is None:
                self._of_no_one = await self.hashed("")
            await self._in_turn(lambda: self._verify(self._of_no_one or "", password))
            return False
        return await self._in_turn(lambda: self._verify(stored, password))

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _in_turn(self, work: Callable[[], T]) -> T:
        if self._waiting >= WAITING:
            raise Unavailable
        self._waiting += 1
        try:
            async with self._turns:
                hashing = asyncio.create_task(asyncio.to_thread(work), name="argon2")
                try:
                    return await asyncio.shield(hashing)
                finally:
                    # The thread goes on after its request was cancelled, and keeps its turn until it ends.
                    await asyncio.wait({hashing})
        finally:
            self._waiting -= 1
