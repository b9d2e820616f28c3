"""What an operator sets for the sandbox: `BANKSIDE_SANDBOX_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

import ipaddress
from decimal import Decimal
from typing import ClassVar

from pydantic import Field, SecretStr, field_validator

from libs.runtime.settings import ServiceSettings, settings_of


class Settings(ServiceSettings):
    service: ClassVar[str] = "provider_sandbox"
    model_config = settings_of("SANDBOX")

    host: str = "127.0.0.1"
    port: int = Field(default=8090, ge=0, le=65535)
    public_url: str = "http://127.0.0.1:8090"
    """Where the outside reaches the sandbox: the base of the links that it hands out."""
    provider_token: SecretStr = Field(min_length=16)
    """The bearer token of the three provider APIs."""
    database_connections: int = Field(default=16, ge=2, le=100)

    wire_seconds: float = Field(default=2, ge=0, le=315_360_000)
    """How long a wire takes from its acceptance to its completion."""
    key_hours: float = Field(default=24, gt=0, le=87_600)
    """How long core banking remembers an Idempotency-Key."""

    page_limit: int = Field(default=200, ge=1, le=200)
    """Rows in one page of the financial provider at most, also when more are asked for."""
    statement_url_seconds: int = Field(default=900, ge=1, le=86_400)
    """How long a link to a statement is good."""
    sweep_floor: Decimal = Field(default=Decimal(0), ge=0, decimal_places=2)
    """What the sweep leaves in an account."""
    sweep_bank_limit: Decimal = Field(default=Decimal(250_000), gt=0, decimal_places=2)
    """The most that the sweep lays on one program bank for one account."""

    @field_validator("host")
    @classmethod
    def _not_public(cls, host: str) -> str:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return host
        if not (address.is_private or address.is_loopback or address.is_unspecified):
            raise ValueError("the sandbox listens on loopback or a private network only")
        return host
