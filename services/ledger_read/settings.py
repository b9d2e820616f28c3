"""What an operator sets for ledger_read: `BANKSIDE_LEDGER_READ_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from libs.providers.companies import DEFAULT, Company
from libs.runtime.provider_settings import ProviderSettings
from libs.runtime.service_settings import MessagingSettings
from libs.runtime.settings import settings_of


class Settings(MessagingSettings, ProviderSettings):
    service: ClassVar[str] = "ledger_read"
    model_config = settings_of("LEDGER_READ")

    gateway_keys: SecretStr
    """The key ring that this service and gateway share: it seals sensitive fields of their messages."""

    financial_provider: Company = DEFAULT
    """The company that balances, transactions and statements are read from."""
    provider_timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    """How long one request to a provider may take."""
    provider_connections: int = Field(default=128, ge=1, le=1000)
    """Connections to the financial provider, at most."""
    database_connections: int = Field(default=5, ge=3, le=200)
    """Connections of each of two pools, at most (`libs.persistence.engine`). One of asyncpg's renews the lease of the
    outbox relay, and one that of the feed.
    """
    ownership_seconds: float = Field(default=5.0, gt=0, le=60)
    """How long onboarding is waited for before a read is answered 503."""
    remembered_owners: int = Field(default=100_000, ge=1, le=10_000_000)
    """Accounts whose owner is kept in memory; about 300 bytes each."""
    mirror: bool = False
    """Transactions come from the mirror also where the provider has page numbers and totals."""
    feed_poll_seconds: float = Field(default=0.25, gt=0, le=60)
    """The pause between two reads of a feed for what is new at the provider. Each read is a request: at a provider that
    limits these, a second is short enough.
    """
    feed_page_size: int = Field(default=100, ge=1, le=500)
    """Entries of a feed that are taken at a time."""
