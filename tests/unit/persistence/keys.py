"""Keys for tests of sealing."""

from __future__ import annotations

import base64
import secrets

from libs.persistence.sealing import Keyring


def a_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def a_keyring(key_id: str = "k1") -> Keyring:
    return Keyring(f"{key_id}:{a_key()}")
