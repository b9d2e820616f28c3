"""AES-256-GCM (RFC 5116), by the library that takes least memory on this processor.

libsodium takes 1 MiB, and can do it on x86-64 with AES, PCLMUL and AVX instructions alone. cryptography can do it
everywhere, and takes 8 MiB with the OpenSSL that it brings. Both give the same bytes.
"""

from __future__ import annotations

from functools import cache

from nacl.bindings import crypto_aead_aes256gcm_decrypt, crypto_aead_aes256gcm_encrypt
from nacl.exceptions import CryptoError, UnavailableError


class NotAuthentic(Exception):
    """The ciphertext was altered, or was made with another key, nonce or context."""


def encrypt(plaintext: bytes, context: bytes, nonce: bytes, key: bytes) -> bytes:
    """The ciphertext, and with it the tag that authenticates it and the context."""
    if libsodium_can():
        return crypto_aead_aes256gcm_encrypt(plaintext, context, nonce, key)
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - see above

    return AESGCM(key).encrypt(nonce, plaintext, context)


def decrypt(ciphertext: bytes, context: bytes, nonce: bytes, key: bytes) -> bytes:
    """Raises NotAuthentic."""
    if libsodium_can():
        try:
            return crypto_aead_aes256gcm_decrypt(ciphertext, context, nonce, key)
        except (CryptoError, ValueError):  # the latter for a ciphertext that is shorter than a tag
            raise NotAuthentic from None
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    try:
        return AESGCM(key).decrypt(nonce, ciphertext, context)
    except (InvalidTag, ValueError):  # the latter for a nonce of another length
        raise NotAuthentic from None


@cache
def libsodium_can() -> bool:
    """Whether libsodium has it here."""
    try:
        crypto_aead_aes256gcm_encrypt(b"", b"", bytes(12), bytes(32))
    except UnavailableError:
        return False
    return True
