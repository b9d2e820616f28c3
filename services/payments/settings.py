"""What an operator sets for payments: `BANKSIDE_PAYMENTS_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from libs.runtime.service_settings import CommandSettings
from libs.runtime.settings import settings_of


class Settings(CommandSettings):
    service: ClassVar[str] = "payments"
    model_config = settings_of("PAYMENTS")

    core_url: str
    provider_token: SecretStr
    provider_timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    provider_connections: int = Field(default=128, ge=1, le=1000)
    """One for each command that is driven, and one for the feed."""
    provider_key_hours: float = Field(default=24.0, gt=0, le=24 * 365)
    """How long core banking remembers idempotency keys, at least. No wire is sent again later than a little before
    this time has passed since its first send.
    """
    provider_transit_seconds: float = Field(default=60.0, gt=0, le=24 * 3600)
    """A wire takes effect at core banking no later than so long after it was sent: then the refusal of a later send
    counts, when the bank does not know the earlier one.
    """
    database_connections: int = Field(default=20, ge=5, le=200)
    """One relays the outbox, one leads the feed, the others work."""
    ownership_seconds: float = Field(default=5.0, gt=0, le=60)
    """How long onboarding is waited for before a wire is answered 503."""
    remembered_owners: int = Field(default=100_000, ge=1, le=10_000_000)
    """Accounts, and external accounts, whose owner is kept in memory; about 300 bytes each."""
    feed_poll_seconds: float = Field(default=0.25, gt=0, le=60)
    feed_page_size: int = Field(default=500, ge=1, le=500)
