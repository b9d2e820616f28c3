"""What the gateway knows of a subscription key."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from libs.contracts.principal import Principal, Scope


@dataclass(frozen=True, slots=True)
class Credential:
    """A subscription key that is known. Whether it is active is decided when its nonce is recorded, too."""

    id: int
    principal: Principal
    scopes: frozenset[Scope]
    secret: bytes = field(repr=False)
    previous_secret: bytes | None = field(repr=False)
    previous_secret_expires_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None

    def is_active(self, at: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)

    def secrets(self, at: datetime) -> tuple[bytes, ...]:
        """The secrets that may sign at this time: one, or two while a rotation overlaps."""
        expires = self.previous_secret_expires_at
        if self.previous_secret is not None and expires is not None and at < expires:
            return (self.secret, self.previous_secret)
        return (self.secret,)
