"""Which columns of the gateway are sealed, and for what."""

from __future__ import annotations

from libs.handling.resealing import SealedStore
from libs.persistence.resealing import SealedColumn
from libs.persistence.sealing import Keyring
from services.gateway.credentials import secret_context
from services.gateway.logins import totp_context
from services.gateway.settings import Settings
from services.gateway.tables import credentials, operator_logins


def sealed_store(keyring: Keyring) -> SealedStore:
    ring = Settings.variable("storage_keys")
    columns = [
        SealedColumn(
            column,
            lambda row: secret_context(row.subscription_key),
            lambda _: ring,
            also=(credentials.c.subscription_key,),
        )
        for column in (credentials.c.secret, credentials.c.previous_secret)
    ]
    columns += [
        SealedColumn(column, lambda row: totp_context(row.operator), lambda _: ring)
        for column in (operator_logins.c.totp, operator_logins.c.pending_totp)
    ]
    # What is sealed with the rings that it shares is stored by the services that it asks, if at all.
    return SealedStore(columns, {ring: keyring})
