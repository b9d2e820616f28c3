"""Passwords of operators: argon2id, off the event loop, few at a time.

One hash takes 64 MiB and a tenth of a second, so that a stolen table is dear to search; a process computes no more than
`AT_ONCE` side by side, and lets no more than `WAITING` wait.

Passwords are hashed in Unicode's normal form C (RFC 8265, section 4.2): one keyboard sends an accented letter as one
character, another as two.
"""

from __future__ import annotations

import asyncio
import unicodedata
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
        return await self._in_turn(lambda: self._hasher.hash(_composed(password)))

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
        """Hashes of earlier releases are of the text as it was typed, which is tried only where it differs."""
        texts = dict.fromkeys((_composed(password), password))
        return any(self._is_hash_of(stored, text) for text in texts)

    def _is_hash_of(self, stored: str, text: str) -> bool:
        try:
            return self._hasher.verify(stored, text)
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


def _composed(password: str) -> str:
    return unicodedata.normalize("NFC", password)
