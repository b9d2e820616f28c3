"""Both libraries make the same of a value, and refuse the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from nacl.exceptions import UnavailableError

from libs.persistence import aes_gcm
from libs.persistence.aes_gcm import Cipher, Cryptography, Libsodium, NotAuthentic
from tests.support.with_each import with_each

KEY, NONCE, CONTEXT = b"k" * 32, b"n" * 12, b"person/1#/tin"
Library = Callable[[bytes], Cipher]
LIBRARIES: list[Library] = [Cryptography, *([Libsodium] if aes_gcm.libsodium_can() else [])]
"""Those that can do it on this processor."""


@with_each(
    product(
        LIBRARIES,
        LIBRARIES,
        [b"", CONTEXT],
        [b"", b"x", b"123-45-6789", b"x" * 4096],
    ),
    lambda case: f"{case[0]} {case[1]} {case[2]!r} {case[3][:12]!r}",
)
def test_what_one_encrypts_the_other_decrypts(
    case: tuple[Library, Library, bytes, bytes],
) -> None:
    encrypts, decrypts, context, plaintext = case
    ciphertext = encrypts(KEY).encrypt(plaintext, context, NONCE)

    assert ciphertext == decrypts(KEY).encrypt(plaintext, context, NONCE)
    assert decrypts(KEY).decrypt(ciphertext, context, NONCE) == plaintext


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_not_authentic_is_refused(library: Library) -> None:
    ciphertext = library(KEY).encrypt(b"123-45-6789", CONTEXT, NONCE)
    altered = bytes([ciphertext[0] ^ 1]) + ciphertext[1:]
    attempts = [
        partial(library(KEY).decrypt, altered, CONTEXT, NONCE),
        *(partial(library(KEY).decrypt, ciphertext[:n], CONTEXT, NONCE) for n in range(27)),
        partial(library(KEY).decrypt, ciphertext, b"person/2#/tin", NONCE),
        partial(library(KEY).decrypt, ciphertext, CONTEXT, b"m" * 12),
        *(partial(library(KEY).decrypt, ciphertext, CONTEXT, NONCE[:n]) for n in range(12)),
        partial(library(b"l" * 32).decrypt, ciphertext, CONTEXT, NONCE),
    ]

    for attempt in attempts:
        with pytest.raises(NotAuthentic):
            attempt()


@pytest.mark.parametrize("can", [True, False])
def test_cryptography_does_it_where_libsodium_cannot(
    can: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def encrypt(*_: bytes) -> bytes:
        if not can:
            raise UnavailableError
        return b""

    request.addfinalizer(aes_gcm.libsodium_can.cache_clear)
    aes_gcm.libsodium_can.cache_clear()
    monkeypatch.setattr(aes_gcm, "crypto_aead_aes256gcm_encrypt", encrypt)

    assert isinstance(aes_gcm.cipher(KEY), Libsodium if can else Cryptography)
