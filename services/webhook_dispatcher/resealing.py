"""Which columns of the dispatcher are sealed, and for what."""

from __future__ import annotations

from libs.handling.resealing import SealedStore, inbox_columns
from libs.persistence.resealing import SealedColumn
from services.webhook_dispatcher import signing_secrets
from services.webhook_dispatcher.handlers import outcomes
from services.webhook_dispatcher.settings import Settings
from services.webhook_dispatcher.tables import inbox, outcome, subscription


def sealed_store(settings: Settings) -> SealedStore:
    storage = Settings.variable("storage_keys")
    secrets = [
        SealedColumn(column, lambda row: signing_secrets.context_of(row.id), lambda _: storage)
        for column in (subscription.c.secret, subscription.c.previous_secret)
    ]
    of_outcomes = SealedColumn(
        outcome.c.data,
        lambda row: outcomes.context_of(row.command_id),
        lambda _: storage,
        shape=lambda _: outcomes.SEALED,
    )
    shared = {"gateway": Settings.variable("gateway_keys")}
    return SealedStore(
        (*secrets, of_outcomes, *inbox_columns(Settings.service, inbox, shared)),
        settings.rings(),
    )
