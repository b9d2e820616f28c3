"""Subscriptions in the dispatcher's tables: of many customers of several partners, each with one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from uuid_utils import uuid7

from libs.contracts.principal import Family, Principal
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring
from services.webhook_dispatcher.repository import subscriptions
from services.webhook_dispatcher.signing_secrets import seal_secret

CUSTOMERS_PER_PARTNER = 4


@dataclass(frozen=True)
class Subscriber:
    """Whoever subscribed, to everything that is theirs."""

    subscription_id: uuid.UUID
    tenant: str
    customer_id: str


async def subscribe(
    database: Database, keyring: Keyring, endpoints: list[tuple[str, str]]
) -> list[Subscriber]:
    """One subscriber for each endpoint, which is a URL and a secret."""
    found = []
    async with database.transaction() as connection:
        for number, (url, secret) in enumerate(endpoints):
            subscriber = Subscriber(
                uuid.UUID(bytes=uuid7().bytes),
                f"partner-{number // CUSTOMERS_PER_PARTNER}",
                f"customer-{number}",
            )
            await subscriptions.add(
                connection,
                Principal(
                    tenant=subscriber.tenant,
                    tenant_name=subscriber.tenant,
                    family=Family.CUSTOMER,
                    subscription_key="",
                    customer_id=subscriber.customer_id,
                ),
                subscriber.subscription_id,
                event_type="*",
                callback_url=url,
                description="",
                secret=seal_secret(keyring, subscriber.subscription_id, secret),
            )
            found.append(subscriber)
    return found
