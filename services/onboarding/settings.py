"""What an operator sets for onboarding: `BANKSIDE_ONBOARDING_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from libs.providers.companies import DEFAULT, Company
from libs.runtime.provider_settings import ProviderSettings
from libs.runtime.service_settings import CommandSettings
from libs.runtime.settings import settings_of


class Settings(CommandSettings, ProviderSettings):
    service: ClassVar[str] = "onboarding"
    model_config = settings_of("ONBOARDING")

    storage_keys: SecretStr
    """Seal personal data in the database."""
    lookup_keys: SecretStr
    """The keys of the digests by which tax and account numbers are found."""
    gateway_keys: SecretStr
    """The key ring that this service and gateway share: it seals sensitive fields of their messages."""
    reconciliation_keys: SecretStr
    """The key ring that this service and reconciliation share: it seals sensitive fields of their messages."""

    identity_provider: Company = DEFAULT
    """The company that verifies businesses and persons."""
    core_provider: Company = DEFAULT
    """The company that keeps customers, accounts and payments."""
    financial_provider: Company = DEFAULT
    """The company that balances, transactions and statements are read from."""
    provider_timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    """How long one request to a provider may take."""
    provider_connections: int = Field(default=160, ge=1, le=1000)
    """Connections to providers, at most; a command uses one at a time."""
    identity_key_hours: float | None = Field(default=None, gt=0)
    """How long the identity provider remembers idempotency keys, at least; None: as it promises (`bankside provider
    show`). No step is sent again later than a little before this time has passed since its first send.
    """
    core_key_hours: float | None = Field(default=None, gt=0)
    """How long core banking remembers idempotency keys, at least; None: as it promises (`bankside provider show`). No
    step is sent again later than a little before this time has passed since its first send.
    """
    provider_transit_seconds: float = Field(default=60.0, gt=0, le=3600)
    """A request takes effect at a provider no later than this time after it was sent. Younger sends of unknown outcome
    keep a refusal of a later send from counting. Not less than 30 in production: so late our own connections may
    deliver it.
    """
    database_connections: int = Field(default=20, ge=5, le=200)
    """Connections of each of two pools, at most (`libs.persistence.engine`). One of asyncpg's renews the lease of the
    outbox relay, and two those of the feeds.
    """
    feed_poll_seconds: float = Field(default=0.25, gt=0, le=60)
    """The pause between two reads of a feed for what is new at the provider. Each read is a request: at a provider that
    limits these, a second is short enough.
    """
    feed_page_size: int = Field(default=100, ge=1, le=500)
    """Entries of a feed that are taken at a time."""
    saga_step_days: int = Field(default=30, ge=1, le=3650)
    """How long the steps of finished commands are kept, for an operator to look at."""
