"""AES-256-GCM (RFC 5116), by the library that takes least memory on this processor.

libsodium takes 1 MiB, and can do it on x86-64 with AES, PCLMUL and AVX instructions alone. cryptography can do it
everywhere, and takes 8 MiB with the OpenSSL that it brings. Both give the same bytes.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from nacl.bindings import crypto_aead_aes256gcm_decrypt, crypto_aead_aes256gcm_encrypt
from nacl.exceptions import CryptoError, UnavailableError


class NotAuthentic(ValueError):
    """The ciphertext was altered, or was made with another key, nonce or context."""


class Cipher(Protocol):
    """AES-256-GCM with a key of 32 bytes. A nonce has 12 bytes and is used for one plaintext only."""

    def encrypt(self, plaintext: bytes, context: bytes, nonce: bytes) -> bytes:
        """The ciphertext, and with it the tag that authenticates it and the context."""

    def decrypt(self, ciphertext: bytes, context: bytes, nonce: bytes) -> bytes:
        """Raises NotAuthentic."""


class Libsodium:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, plaintext: bytes, context: bytes, nonce: bytes) -> bytes:
        return crypto_aead_aes256gcm_encrypt(plaintext, context, nonce, self._key)

    def decrypt(self, ciphertext: bytes, context: bytes, nonce: bytes) -> bytes:
        try:
            return crypto_aead_aes256gcm_decrypt(ciphertext, context, nonce, self._key)
        except (CryptoError, ValueError):  # the latter for a ciphertext that is shorter than a tag
            raise NotAuthentic from None


class Cryptography:
    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - see above

        self._aes = AESGCM(key)

    def encrypt(self, plaintext: bytes, context: bytes, nonce: bytes) -> bytes:
        return self._aes.encrypt(nonce, plaintext, context)

    def decrypt(self, ciphertext: bytes, context: bytes, nonce: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see above

        try:
            return self._aes.decrypt(nonce, ciphertext, context)
        except (InvalidTag, ValueError):  # the latter for a nonce of less than 8 bytes
            raise NotAuthentic from None


def cipher(key: bytes) -> Cipher:
    return Libsodium(key) if libsodium_can() else Cryptography(key)


@cache
def libsodium_can() -> bool:
    """Whether libsodium can do AES-256-GCM on this processor."""
    try:
        crypto_aead_aes256gcm_encrypt(b"", b"", bytes(12), bytes(32))
    except UnavailableError:
        return False
    return True
