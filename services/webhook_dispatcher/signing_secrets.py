"""Signing secrets of subscriptions: random, sealed at rest, bound to the row of their subscription."""

from __future__ import annotations

import secrets
from base64 import b64encode
from uuid import UUID

from libs.contracts.sensitive import Sealer
from libs.signing.webhook import SECRET_PREFIX

SECRET_BYTES = 32


def new_secret() -> str:
    return SECRET_PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def seal_secret(sealer: Sealer, subscription_id: UUID, secret: str) -> bytes:
    return sealer.seal(secret, context_of(subscription_id)).encode("ascii")


def open_secret(sealer: Sealer, subscription_id: UUID, sealed: bytes) -> str:
    """The secret, or the previous one, of this subscription. Raises CannotOpen."""
    return sealer.open(sealed.decode("ascii"), context_of(subscription_id))


def context_of(subscription_id: UUID) -> str:
    """What the sealed secrets of the row are bound to; one that is rotated out is moved, and stays bound to it."""
    return f"webhook_dispatcher.subscription/{subscription_id}/secret#secret"
