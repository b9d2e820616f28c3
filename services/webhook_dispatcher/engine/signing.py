"""Deliveries as signed posts (Standard Webhooks)."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from cachetools import LRUCache

from libs.contracts.sensitive import Sealer
from libs.signing.webhook import key_of, signature_header
from services.webhook_dispatcher.delivery_headers import headers_of, message_id_of, timestamp_of
from services.webhook_dispatcher.ports import Post
from services.webhook_dispatcher.repository.claims import DueSubscription
from services.webhook_dispatcher.signing_secrets import open_secret

CACHED_KEYS: Final = 10_000


class Signer:
    """Signs with each active secret. Opened secrets are cached, up to `CACHED_KEYS`."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._keys: LRUCache[bytes, bytes] = LRUCache(CACHED_KEYS)

    def post(
        self, subscription: DueSubscription, event_id: UUID, body: bytes, now: datetime
    ) -> Post:
        """The post, with a timestamp and signature of its own.

        Raises:
            CannotOpen: the secret was sealed with a key that is not on the ring.
        """
        signature = signature_header(
            self._active(subscription, now), message_id_of(event_id), timestamp_of(now), body
        )
        headers = headers_of(event_id, now, signature)
        return Post(subscription.tenant, subscription.callback_url, headers, body)

    def _active(self, subscription: DueSubscription, now: datetime) -> list[bytes]:
        keys = [self._key(subscription.id, subscription.secret)]
        expires_at = subscription.previous_secret_expires_at
        if subscription.previous_secret is not None and expires_at is not None and expires_at > now:
            keys.append(self._key(subscription.id, subscription.previous_secret))
        return keys

    def _key(self, subscription_id: UUID, sealed: bytes) -> bytes:
        # Each sealing of a secret differs, so the sealed bytes identify one version of it.
        key = self._keys.get(sealed)
        if key is None:
            key = key_of(open_secret(self._sealer, subscription_id, sealed))
            self._keys[sealed] = key
        return key
