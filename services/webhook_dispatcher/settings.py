"""Settings of the dispatcher: `BANKSIDE_WEBHOOK_DISPATCHER_<NAME>`, else `BANKSIDE_<NAME>`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from libs.runtime.service_settings import CommandSettings
from libs.runtime.settings import settings_of
from services.webhook_dispatcher.engine.rules import POST_SECONDS, RETRY_SECONDS
from services.webhook_dispatcher.engine.run import CONNECTIONS
from services.webhook_dispatcher.engine.schedule import longest_days
from services.webhook_dispatcher.repository.claims import LONGEST_LEASE_SECONDS


def _parts(value: Any) -> Any:
    return tuple(value.split(",")) if isinstance(value, str) else value


class Settings(CommandSettings):
    service: ClassVar[str] = "webhook_dispatcher"
    model_config = settings_of("WEBHOOK_DISPATCHER")

    storage_keys: SecretStr
    """Seal the secrets of subscriptions in the database."""
    gateway_keys: SecretStr
    """The key ring that this service and gateway share: it seals sensitive fields of their messages."""

    database_connections: int = Field(default=20, ge=CONNECTIONS + 5, le=200)
    """Connections of each of two pools, at most (`libs.persistence.engine`). The engine has its own among them, the
    others are for commands and queries.
    """
    shutdown_seconds: float = Field(default=35, gt=0, le=300)
    """From SIGTERM until the process has ended, at most: long enough for what is under way, commands first, then
    posts.
    """
    callback_allow: str = ""
    """Where deliveries may go against the rules, for development: `host:port`, `host:*` or networks, separated by
    commas. Refused in production.
    """
    secret_overlap_hours: float = Field(default=24.0, ge=0, le=24 * 7)
    """How long the previous secret of a subscription goes on signing after a rotation."""
    retry_seconds: Annotated[
        tuple[Annotated[float, Field(ge=0, le=7 * 86400)], ...],
        BeforeValidator(_parts),
        Field(min_length=1, max_length=30),
    ] = RETRY_SECONDS
    """The pauses between the attempts of a delivery, separated by commas; each is varied by a fifth."""
    retention_days: int = Field(default=30, ge=30, le=365, validate_default=True)
    """How long events, deliveries and attempts are kept: longer than a delivery is tried. The database lets the service
    drop none that is younger than the interface says (§8).
    """
    slots: int = Field(default=256, ge=1, le=4096)
    """Attempts that one process has under way at most."""
    delivery_lease_seconds: float = Field(default=30.0, gt=POST_SECONDS, le=LONGEST_LEASE_SECONDS)
    """After a crash, another process goes on with a delivery when this time has passed."""

    def refusals(self) -> Iterator[str]:
        yield from super().refusals()
        if self.callback_allow.strip():
            yield f"unset {self.variable('callback_allow')}: it is refused in production."

    @field_validator("retention_days")
    @classmethod
    def _outlasts_the_schedule(cls, retention_days: int, known: ValidationInfo) -> int:
        if "retry_seconds" not in known.data:
            return retention_days
        needed = longest_days(known.data["retry_seconds"])
        if retention_days < needed:
            raise ValueError(
                "with the retry schedule that is set,"
                f" BANKSIDE_WEBHOOK_DISPATCHER_RETENTION_DAYS has to be at least {needed}"
            )
        return retention_days
