"""Subscription keys: read in batches, and cached for a second.

A new key works at once, since unknown keys are not cached; a revoked or changed one is seen within `FRESH_SECONDS` in
every gateway process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_network

from cachetools import TTLCache
from sqlalchemy import Text, any_, bindparam, select
from sqlalchemy.dialects.postgresql import ARRAY

from libs.batching import Batcher
from libs.contracts.principal import Family, Principal, Role, Scope
from libs.persistence.engine import Database
from libs.persistence.sealing import CannotOpen, Keyring
from libs.runtime.addresses import Network
from services.gateway.tables import credentials, operators, tenants

FRESH_SECONDS = 1.0
KEPT = 10_000
CONSOLE = "console"
"""In the place of a role: those who log in at the console have one each."""
LOADED_TOGETHER = 100
KNOWN_SCOPES = frozenset(map(str, Scope))
"""A key that a later release has made may have more, which allow nothing here."""

_BY_KEY = (
    select(credentials, tenants.c.name, operators.c.role)
    .outerjoin(tenants, tenants.c.tenant == credentials.c.tenant)
    .outerjoin(operators, operators.c.name == credentials.c.operator)
    .where(credentials.c.subscription_key == any_(bindparam("keys", type_=ARRAY(Text))))
)


def secret_context(subscription_key: str) -> str:
    """What a sealed secret is bound to; one that is rotated out is moved, and stays bound to it."""
    return f"credential/{subscription_key}#secret"


@dataclass(frozen=True, slots=True)
class Credential:
    """A subscription key. Whether it is active is checked again when a nonce is recorded."""

    id: int
    principal: Principal
    scopes: frozenset[Scope]
    allowed_networks: Sequence[Network]
    """Where its requests may come from; empty: from everywhere."""
    secret: bytes = field(repr=False)
    previous_secret: bytes | None = field(repr=False)
    previous_secret_expires_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    requires_idempotency_key: bool = False
    """Whether its writes need one."""
    role: Role | None = None
    """Of an operator; None for a console, and for the other families."""

    @property
    def is_console(self) -> bool:
        return self.principal.operator is not None and self.role is None

    def is_active(self, at: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)

    def secrets(self, at: datetime) -> tuple[bytes, ...]:
        """The secrets that may sign at this time: one, or two while a rotation overlaps."""
        expires = self.previous_secret_expires_at
        if self.previous_secret is not None and expires is not None and at < expires:
            return (self.secret, self.previous_secret)
        return (self.secret,)


class Credentials:
    """Looks credentials up by subscription key."""

    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        self._fresh: TTLCache[str, Credential] = TTLCache(KEPT, FRESH_SECONDS)
        self._loading = Batcher(
            self._load, name="credentials", limit=LOADED_TOGETHER, concurrency=2
        )

    async def find(self, subscription_key: str, *, anew: bool = False) -> Credential | None:
        """The credential, at most a second old, or read `anew`; None when there is none."""
        fresh = None if anew else self._fresh.get(subscription_key)
        if fresh is not None:
            return fresh
        loaded = await self._loading.submit(subscription_key)
        if isinstance(loaded, Exception):
            raise loaded
        return loaded

    async def _load(self, keys: list[str]) -> list[Credential | Exception | None]:
        async with self._database.transaction() as connection:
            rows = await connection.execute(_BY_KEY, {"keys": keys})
            found = {row.subscription_key: self._credential(row) for row in rows}
        for key in keys:
            credential = found.get(key)
            if isinstance(credential, Credential):
                self._fresh[key] = credential
            else:
                self._fresh.pop(key, None)
        return [found.get(key) for key in keys]

    def _credential(self, row) -> Credential | Exception:  # type: ignore[no-untyped-def]
        """One that cannot be opened, or is of a kind of a later release, must not fail the others of its batch."""
        try:
            return self._opened(row)
        except (CannotOpen, ValueError) as error:
            return error

    def _opened(self, row) -> Credential:  # type: ignore[no-untyped-def]
        context = secret_context(row.subscription_key)
        previous = row.previous_secret
        return Credential(
            id=row.id,
            principal=Principal(
                tenant=row.tenant or "",
                tenant_name=row.name or "",
                family=Family(row.family),
                subscription_key=row.subscription_key,
                customer_id=str(row.customer_id) if row.customer_id else None,
                operator=row.operator,
            ),
            scopes=frozenset(Scope(scope) for scope in row.scopes if scope in KNOWN_SCOPES),
            allowed_networks=tuple(map(ip_network, row.allowed_networks)),
            secret=self._keyring.open(row.secret, context).encode(),
            previous_secret=self._keyring.open(previous, context).encode() if previous else None,
            previous_secret_expires_at=row.previous_secret_expires_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            requires_idempotency_key=row.requires_idempotency_key,
            role=Role(row.role) if row.role not in (None, CONSOLE) else None,
        )
