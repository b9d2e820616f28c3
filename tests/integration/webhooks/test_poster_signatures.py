"""What arrives is verified by the receivers' own library, `standardwebhooks`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from services.webhook_dispatcher.engine.signing import Signer
from services.webhook_dispatcher.repository.claims import DueSubscription
from services.webhook_dispatcher.signing_secrets import new_secret, seal_secret
from tests.integration.webhooks.sending import poster
from tests.support.receivers import Received, receiver
from tests.unit.persistence.keys import a_keyring

BODY = '{"id": "evt_1", "data": {"amount": 1234567890123456.78, "name": "Zoë"}}'.encode()


def verifies(secret: str, request: Received) -> bool:
    try:
        Webhook(secret).verify(request.body, dict(request.headers))
    except WebhookVerificationError:
        return False
    return True


@pytest.mark.parametrize(
    ("overlap", "by_the_old_one"),
    [(timedelta(hours=1), True), (timedelta(seconds=-1), False)],
    ids=["while the old secret is active", "after it expired"],
)
async def test_a_delivery_is_verified_by_each_active_secret_and_by_no_other(
    overlap: timedelta, by_the_old_one: bool
) -> None:
    ring, subscription_id, now = a_keyring(), uuid4(), datetime.now(UTC)
    new, old, foreign = new_secret(), new_secret(), new_secret()
    async with receiver() as endpoint, poster() as sender:
        subscription = DueSubscription(
            id=subscription_id,
            tenant="t",
            callback_url=endpoint.url(),
            secret=seal_secret(ring, subscription_id, new),
            previous_secret=seal_secret(ring, subscription_id, old),
            previous_secret_expires_at=now + overlap,
            generation=0,
            is_half_open=False,
            is_slow=False,
            in_flight=0,
            due=1,
            due_since=now,
        )
        await sender.post(Signer(ring).post(subscription, uuid4(), BODY, now))

    (request,) = endpoint.requests
    assert request.body == BODY
    assert verifies(new, request)
    assert verifies(old, request) is by_the_old_one
    assert not verifies(foreign, request)
