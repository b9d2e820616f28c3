"""Makes new subscription keys and secrets, for partners, customers and operators; stores those of operators."""

from __future__ import annotations

import secrets
import string

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.sealing import Keyring
from services.gateway import operator_repository as repository
from services.gateway.credentials import secret_context


def new_subscription_key() -> str:
    alphabet = string.ascii_letters + string.digits
    return "sub_" + "".join(secrets.choice(alphabet) for _ in range(24))


def new_secret() -> str:
    return secrets.token_urlsafe(32)


async def add_key(connection: AsyncConnection, keyring: Keyring, operator: str) -> tuple[str, str]:
    """A new key of an operator: its public id, and its secret, which is stored sealed."""
    subscription_key, secret = new_subscription_key(), new_secret()
    await repository.add_key(
        connection,
        repository.NewOperatorKey(
            subscription_key=subscription_key,
            operator=operator,
            secret=keyring.seal(secret, secret_context(subscription_key)),
        ),
    )
    return subscription_key, secret
