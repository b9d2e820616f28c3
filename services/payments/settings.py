"""The settings of payments: `BANKSIDE_PAYMENTS_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar

from pydantic import Field

from libs.providers.companies import DEFAULT, Company
from libs.runtime.provider_settings import ProviderSettings
from libs.runtime.service_settings import CommandSettings
from libs.runtime.settings import settings_of
from services.payments.effective_policies import EffectivePolicies
from services.payments.policies import Policy


class Settings(CommandSettings, ProviderSettings):
    service: ClassVar[str] = "payments"
    model_config = settings_of("PAYMENTS")

    core_provider: Company = DEFAULT
    """The company that keeps customers, accounts and payments."""
    provider_timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    """How long one request to a provider may take."""
    provider_connections: int = Field(default=160, ge=1, le=1000)
    """Connections to core banking, at most; a command that is driven uses one, and so does the feed."""
    provider_key_hours: float | None = Field(default=None, gt=0, le=24 * 365)
    """How long core banking remembers idempotency keys, at least; None: as it promises (`bankside provider show`). A
    wire is sent again only while a send surely arrives within this time of the first one.
    """
    provider_transit_seconds: float = Field(default=60.0, gt=0, le=24 * 3600)
    """The longest time from a send to its effect at core banking. After it, the refusal of a later send is final when
    the bank does not know the earlier send. Not less than 30 in production: so late our own connections may deliver it.
    """
    approval_business_days: int = Field(default=5, ge=1, le=90)
    """A wire that waits for approval is canceled after this many business days."""
    wire_ceiling_per_wire: Decimal | None = Field(default=None, gt=0)
    """In dollars, of one wire: no policy allows more, and it holds where there is no policy."""
    wire_ceiling_daily: Decimal | None = Field(default=None, gt=0)
    """In dollars, of one customer's wires in a day: no policy allows more, and it holds where there is no policy."""
    wire_ceiling_daily_count: int | None = Field(default=None, ge=1)
    """The number of one customer's wires in a day: no policy allows more, and it holds where there is no policy."""
    wire_default_per_wire_limit: Decimal | None = Field(default=None, gt=0)
    """In dollars, of one wire, for customers without a policy of their own."""
    wire_default_daily_limit: Decimal | None = Field(default=None, gt=0)
    """In dollars a day, for customers without a policy of their own."""
    wire_default_daily_count: int | None = Field(default=None, ge=1)
    """Wires a day, for customers without a policy of their own."""
    wire_default_approval_threshold: Decimal | None = Field(default=None, gt=0)
    """In dollars: a wire of this amount or more needs a second key; for customers without a policy of their own."""
    wire_default_new_payee_hours: int | None = Field(default=None, ge=1)
    """Wires to an external account that was linked less than this many hours ago need a second key; for customers
    without a policy of their own.
    """
    database_connections: int = Field(default=20, ge=5, le=200)
    """Connections of each of two pools, at most (`libs.persistence.engine`). One of asyncpg's renews the lease of the
    outbox relay, and one that of the feed.
    """
    ownership_seconds: float = Field(default=5.0, gt=0, le=60)
    """The longest wait for onboarding; then a wire is answered 503."""
    remembered_owners: int = Field(default=100_000, ge=1, le=10_000_000)
    """The size of three caches: the owners of accounts, about 300 bytes each, the holders of external accounts, about
    900 bytes each, and the customers that were open seconds ago, about 400 bytes each.
    """
    feed_poll_seconds: float = Field(default=0.25, gt=0, le=60)
    """The pause between two reads of a feed for what is new at the provider. Each read is a request: at a provider that
    limits these, a second is short enough.
    """
    feed_page_size: int = Field(default=100, ge=1, le=500)
    """Entries of a feed that are taken at a time."""

    def effective_policies(self) -> EffectivePolicies:
        return EffectivePolicies(
            Policy(
                per_wire_limit=self.wire_default_per_wire_limit,
                daily_limit=self.wire_default_daily_limit,
                daily_count=self.wire_default_daily_count,
                approval_threshold=self.wire_default_approval_threshold,
                new_payee_hours=self.wire_default_new_payee_hours,
            ),
            Policy(
                per_wire_limit=self.wire_ceiling_per_wire,
                daily_limit=self.wire_ceiling_daily,
                daily_count=self.wire_ceiling_daily_count,
            ),
            approval_business_days=self.approval_business_days,
        )
