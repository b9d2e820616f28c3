"""Sealing of sensitive values (AES-256-GCM, RFC 5116) and finding them again by keyed hash.

A token is `s2.<key id>.<base64url of nonce and ciphertext>`. The context, `<row or message>#<field>`, is authenticated
with it, so a token moved to another row, message or field does not open. Tokens of earlier releases, `s1`, are bound to
the row or message alone. The first key of the ring seals; every key of it opens, which is how keys rotate: put the new
one in front, keep the old one until nothing sealed with it is left.

The cipher itself (`aes_gcm`) is imported by the first key ring, since it takes memory: payments, which imports this
module too, has none.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libs.persistence.aes_gcm import Cipher

VERSION = "s2"
EARLIER_VERSION = "s1"
NONCE_BYTES = 12
KEY_BYTES = 32
DIGEST_BYTES = 32
CHECKED = b"bankside key check"
"""What the check value of a key is the HMAC of: no digest's message, since those have a zero byte."""


_TOKEN = re.compile(r"s[12]\.(?P<key_id>[A-Za-z0-9_-]{1,32})\.[A-Za-z0-9_-]+=*")


class BadKey(ValueError):
    """A configured key cannot be used; the message says why and never quotes it."""


class CannotOpen(Exception):
    """The token was altered, belongs elsewhere, or its key is not on the ring.

    The message, a clause for operators, says which of these, with the name of the ring and no value.
    """


def _key(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise BadKey("a key is the base64 of 32 bytes") from None
    if len(key) != KEY_BYTES:
        raise BadKey("a key is the base64 of 32 bytes")
    return key


def _keys(entries: str) -> dict[str, bytes]:
    """By id, from `id:base64[,id:base64…]`. The id of an entry without one is empty. Raises BadKey."""
    keys: dict[str, bytes] = {}
    for entry in entries.split(","):
        key_id, _, text = entry.strip().rpartition(":")
        if key_id in keys:
            raise BadKey(f"the key id {key_id} is there twice")
        keys[key_id] = _key(text)
    if not all(not key_id or re.fullmatch(r"[A-Za-z0-9_-]{1,32}", key_id) for key_id in keys):
        raise BadKey("keys are id:base64, separated by commas")
    return keys


def _check_values(keys: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """By id, a value that is another one for another key (HMAC-SHA256). It tells neither the key nor a digest by it."""
    return {key_id: hmac.digest(key, CHECKED, hashlib.sha256) for key_id, key in keys.items()}


class Keyring:
    """Keys by id, from `id:base64[,id:base64…]`; the first seals.

    Args:
        name: what operators know the ring by.
    """

    def __init__(self, keys: str, name: str = "the ring") -> None:
        ring = _keys(keys)
        if "" in ring:
            raise BadKey("keys are id:base64, separated by commas")
        from libs.persistence.aes_gcm import cipher  # noqa: PLC0415 - see above

        self._ciphers: dict[str, Cipher] = {key_id: cipher(key) for key_id, key in ring.items()}
        self._sealing_id = next(iter(ring))
        self._name = name
        self.check_values = _check_values(ring)

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self._ciphers)})"

    def seal(self, plaintext: str, context: str) -> str:
        nonce, cipher = os.urandom(NONCE_BYTES), self._ciphers[self._sealing_id]
        sealed = cipher.encrypt(plaintext.encode(), context.encode(), nonce)
        return f"{VERSION}.{self._sealing_id}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def open(self, token: str, context: str) -> str:
        """The plaintext.

        Raises:
            CannotOpen: the token is not one of this ring and context.
        """
        key_id = self.require_key(token)
        version, _, data = token.split(".", 2)
        if version == EARLIER_VERSION:
            context = context.rpartition("#")[0]
        try:
            raw = base64.urlsafe_b64decode(data)
            nonce, sealed = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
            return self._ciphers[key_id].decrypt(sealed, context.encode(), nonce).decode()
        except ValueError:  # as all are: no base64, no UTF-8, NotAuthentic
            raise CannotOpen(
                f"it was altered, belongs elsewhere, or was sealed by another key than {key_id} of {self._name}"
            ) from None

    def require_key(self, token: str) -> str:
        """The id of the key that the token names, which is on this ring. Raises CannotOpen."""
        key_id = self.key_id_of(token)
        if key_id is None:
            raise CannotOpen(f"it is no value that {self._name} has sealed")
        if key_id not in self._ciphers:
            raise CannotOpen(f"its key {key_id} is not on {self._name}")
        return key_id

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The first one seals."""
        return tuple(self._ciphers)

    @staticmethod
    def key_id_of(token: str) -> str | None:
        """The id of the key that a token names; None for what is no token."""
        named = _TOKEN.fullmatch(token)
        return named["key_id"] if named else None

    def is_current(self, token: str) -> bool:
        """Whether the token is as this ring would seal it now: by its first key."""
        return token.startswith(f"{VERSION}.{self._sealing_id}.")

    def reseal(self, token: str, context: str) -> str:
        """The same value, sealed by the first key: the token itself where it is. It is opened in any case, since the id
        of its key may have been another key's.

        Raises:
            CannotOpen
        """
        value = self.open(token, context)
        return token if self.is_current(token) else self.seal(value, context)


class LookupKeys:
    """Keyed hashes (HMAC-SHA256) under which a sealed value is found again, from `id:base64[,id:base64…]`.

    A digest begins with the id of its key. Only those of earlier releases do not: their key stands on the ring without
    an id. While a key is replaced, each value has a digest by the new key, the first one, and one by the old key, so
    that processes find it whichever they have.
    """

    def __init__(self, keys: str) -> None:
        self._keys = _keys(keys)
        self.check_values = _check_values(self._keys)

    def __repr__(self) -> str:
        return f"LookupKeys({', '.join(self._keys)})"

    @property
    def key_ids(self) -> tuple[str, ...]:
        return tuple(self._keys)

    @staticmethod
    def beginning(key_id: str) -> bytes:
        """How digests by the key begin; `DIGEST_BYTES` follow."""
        return f"{key_id}:".encode() if key_id else b""

    @staticmethod
    def key_id_of(digest: bytes) -> str:
        return digest[:-33].decode("ascii", "replace") if len(digest) > DIGEST_BYTES else ""

    def digests(self, purpose: str, value: str | bytes) -> tuple[bytes, ...]:
        """By each key; different purposes give unrelated digests of one value."""
        data = value.encode() if isinstance(value, str) else value
        message = purpose.encode() + b"\x00" + data
        return tuple(
            self.beginning(key_id) + hmac.digest(key, message, hashlib.sha256)
            for key_id, key in self._keys.items()
        )
