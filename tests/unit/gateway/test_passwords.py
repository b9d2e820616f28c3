"""How many passwords are hashed side by side."""

from __future__ import annotations

import asyncio
import threading

import pytest
from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from services.gateway.passwords import AT_ONCE, Passwords
from tests.support.waiting import eventually

COMPOSED, DECOMPOSED = "caf\u00e9 au lait", "cafe\u0301 au lait"


class Hashing:
    """In place of argon2: hashes that end when they are told to."""

    def __init__(self) -> None:
        self.begun = 0
        self.end = threading.Event()

    def hash(self, password: str) -> str:
        self.begun += 1
        assert self.end.wait(30)
        return password


async def test_a_hash_keeps_its_turn_after_its_request_was_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashing = Hashing()
    monkeypatch.setattr(PasswordHasher, "from_parameters", lambda _: hashing)
    passwords = Passwords()
    cancelled = [asyncio.create_task(passwords.hashed("first")) for _ in range(AT_ONCE)]

    async def all_begun() -> bool:
        return hashing.begun == AT_ONCE

    await eventually("as many as may hash side by side", all_begun)
    for task in cancelled:
        task.cancel()
    waiting = asyncio.create_task(passwords.hashed("second"))
    for _ in range(10):
        await asyncio.sleep(0)
    begun_meanwhile = hashing.begun
    hashing.end.set()
    await asyncio.wait(cancelled)

    assert await waiting == "second"
    assert begun_meanwhile == AT_ONCE
    assert all(task.cancelled() for task in cancelled)


class Plain:
    """In place of argon2: a hash is the text itself."""

    def __init__(self) -> None:
        self.verified: list[str] = []

    def hash(self, password: str) -> str:
        return password

    def verify(self, stored: str, password: str) -> bool:
        self.verified.append(password)
        if stored != password:
            raise VerifyMismatchError
        return True


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Plain:
    made = Plain()
    monkeypatch.setattr(PasswordHasher, "from_parameters", lambda _: made)
    return made


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("chosen", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("typed", [COMPOSED, DECOMPOSED])
async def test_an_accented_letter_matches_however_a_keyboard_sends_it(
    chosen: str, typed: str
) -> None:
    passwords = Passwords()

    stored = await passwords.hashed(chosen)

    assert await passwords.matches(stored, typed)


@pytest.mark.usefixtures("plain")
async def test_a_hash_of_the_text_as_it_was_typed_is_matched_by_that_text() -> None:
    passwords = Passwords()

    assert await passwords.matches(DECOMPOSED, DECOMPOSED)


@pytest.mark.parametrize(("typed", "times"), [("plain text", 1), (COMPOSED, 1), (DECOMPOSED, 2)])
@pytest.mark.parametrize("stored", [None, "another"])
async def test_a_wrong_password_takes_as_long_for_a_name_that_there_is_not(
    plain: Plain, stored: str | None, typed: str, times: int
) -> None:
    passwords = Passwords()

    assert not await passwords.matches(stored, typed)

    assert len(plain.verified) == times


async def test_a_password_is_hashed_as_rfc_9106_has_it_and_matches_its_hash_alone() -> None:
    passwords = Passwords()

    stored = await passwords.hashed("correct horse")

    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert await passwords.matches(stored, "correct horse")
    assert not await passwords.matches(stored, "another")
    assert not await passwords.matches(None, "")
