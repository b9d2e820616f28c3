"""What an operator sets for the sandbox: `BANKSIDE_SANDBOX_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import Field, SecretStr, field_validator

from libs.runtime.process import Misconfigured
from libs.runtime.settings import ServiceSettings, settings_of
from services.provider_sandbox.callers import MAY
from services.provider_sandbox.operations import Api

Token = Annotated[SecretStr, Field(min_length=16)]


class Settings(ServiceSettings):
    service: ClassVar[str] = "provider_sandbox"
    simulates_providers: ClassVar[bool] = True
    model_config = settings_of("SANDBOX")

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(default=8090, ge=0, le=65535)
    """The port to listen on."""
    public_url: str = "http://127.0.0.1:8090"
    """Where the outside reaches the sandbox: the base of the links that it hands out."""
    onboarding_identity_token: Token
    """By which onboarding is known to the identity API."""
    onboarding_core_token: Token
    """By which onboarding is known to the core API."""
    onboarding_financial_token: Token
    """By which onboarding is known to the financial API."""
    payments_core_token: Token
    """By which payments is known to the core API."""
    ledger_read_financial_token: Token
    """By which ledger_read is known to the financial API."""
    reconciliation_identity_token: Token
    """By which reconciliation is known to the identity API."""
    reconciliation_core_token: Token
    """By which reconciliation is known to the core API."""
    reconciliation_financial_token: Token
    """By which reconciliation is known to the financial API."""
    link_key: Token
    """Signs the links to statements."""
    database_connections: int = Field(default=16, ge=2, le=100)
    """Connections in the pool, at most."""

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

    def refusals(self) -> Iterator[str]:
        yield "the sandbox simulates a bank and is refused in production: do not start it."

    def tokens(self) -> Mapping[tuple[str, Api], str]:
        """The bearer token of each caller at each API. Raises Misconfigured when two are the same."""
        known: dict[str, tuple[str, Api]] = {}
        for caller, api in MAY:
            secret: SecretStr = getattr(self, f"{caller}_{api}_token")
            token = secret.get_secret_value()
            if token in known:
                names = (
                    f"BANKSIDE_{'_'.join(name).upper()}_TOKEN"
                    for name in (known[token], (caller, api))
                )
                raise Misconfigured(f"set {' and '.join(names)}: they must differ.")
            known[token] = (caller, api)
        return {name: token for token, name in known.items()}
