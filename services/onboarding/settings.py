"""What an operator sets for onboarding: `BANKSIDE_ONBOARDING_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, SecretStr

from libs.runtime.service_settings import CommandSettings
from libs.runtime.settings import settings_of


class Settings(CommandSettings):
    service: ClassVar[str] = "onboarding"
    model_config = settings_of("ONBOARDING")

    identity_url: str
    core_url: str
    financial_url: str
    provider_token: SecretStr
    provider_timeout_seconds: float = Field(default=5.0, gt=0, le=60)
    provider_connections: int = Field(default=64, ge=1, le=1000)
    """Over all providers; a command uses one at a time."""
    database_connections: int = Field(default=20, ge=5, le=200)
    """One relays the outbox, two lead the feeds, the others work."""
    feed_poll_seconds: float = Field(default=0.25, gt=0, le=60)
    feed_page_size: int = Field(default=100, ge=1, le=500)
    saga_step_days: int = Field(default=30, ge=1, le=3650)
    """How long the steps of finished commands are kept, for an operator to look at."""
