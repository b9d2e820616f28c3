"""What an operator sets for reconciliation: `BANKSIDE_RECONCILIATION_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from libs.providers.companies import DEFAULT, Company
from libs.runtime.provider_settings import ProviderSettings
from libs.runtime.service_settings import MessagingSettings
from libs.runtime.settings import settings_of


class Settings(MessagingSettings, ProviderSettings):
    service: ClassVar[str] = "reconciliation"
    model_config = settings_of("RECONCILIATION")

    onboarding_keys: SecretStr
    """The key ring that this service and onboarding share: it seals sensitive fields of their messages. Its first key
    also makes the digests of sensitive values that differ: with another one, the explained differences of such values
    are opened again.
    """

    identity_provider: Company = DEFAULT
    """The company that verifies businesses and persons."""
    core_provider: Company = DEFAULT
    """The company that keeps customers, accounts and payments."""
    financial_provider: Company = DEFAULT
    """The company that balances, transactions and statements are read from."""
    provider_timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    """How long one request to a provider may take."""
    provider_connections: int = Field(default=8, ge=1, le=100)
    """Connections to providers, at most. Some are asked for each record by itself, as many at once as there are
    connections: with fewer, a page may take longer than its minute.
    """
    provider_requests_per_second: float = Field(default=20.0, ge=5, le=1000)
    """Requests, at most, to a provider that is asked for each record by itself. What it allows in all is shared with
    the other services, whose wires would be turned away.
    """
    database_connections: int = Field(default=5, ge=4, le=50)
    """Connections of each of two pools, at most (`libs.persistence.engine`). Of asyncpg's, one renews the leader's
    lease.
    """
    run_seconds: float = Field(default=3600, ge=1, le=7 * 86400)
    """A run begins this long after the last complete one ended."""
    run_limit_seconds: float = Field(default=6 * 3600, ge=10, le=7 * 86400)
    """A run that takes longer is given up. If it was still scanning, the next scheduled run goes on with its scans; one
    that is requested begins from fresh data."""
    grace_seconds: float = Field(default=30.0, ge=0, le=3600)
    """The pause between two looks at what seems to differ. Only what both find alike is a difference."""
    feed_still_seconds: float = Field(default=300.0, ge=0, le=86400)
    """A feed that has entries and whose cursor has not moved for this long stands still."""
    poll_seconds: float = Field(default=1.0, gt=0, le=60)
    """How soon a requested run is noticed."""
    page_size: int = Field(default=500, ge=1, le=500)
    """Records that are compared at a time; at a provider that is asked for each by itself at most 100 wires."""
    customers_page_size: int = Field(default=100, ge=1, le=500)
    """Customers, external accounts, or stored answers of onboarding that are compared at a time: customers travel with
    their persons and accounts. At a provider that is asked for each record by itself: 25 customers and 33 answers at
    most.
    """
