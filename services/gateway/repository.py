"""Tenants and credentials as the operator changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.principal import Family, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCredential:
    """A credential to be stored; `secret` is sealed already."""

    subscription_key: str
    tenant: str
    family: Family
    customer_id: UUID | None
    scopes: frozenset[Scope]
    secret: str
    reads_per_minute: int
    writes_per_minute: int
    wires_per_minute: int
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class CredentialRow:
    """What the operator sees of a credential."""

    subscription_key: str
    tenant: str
    family: str
    customer_id: UUID | None
    scopes: Sequence[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


async def ensure_tenant(connection: AsyncConnection, tenant: str, name: str) -> None:
    await connection.execute(
        text("INSERT INTO tenants (tenant, name) VALUES (:tenant, :name) ON CONFLICT DO NOTHING"),
        {"tenant": tenant, "name": name},
    )


async def tenant_exists(connection: AsyncConnection, tenant: str) -> bool:
    found = await connection.execute(
        text("SELECT 1 FROM tenants WHERE tenant = :tenant"), {"tenant": tenant}
    )
    return found.first() is not None


async def add_credential(connection: AsyncConnection, new: NewCredential) -> None:
    await connection.execute(
        text(
            "INSERT INTO credentials (subscription_key, tenant, family, customer_id, scopes, secret,"
            " reads_per_minute, writes_per_minute, wires_per_minute, expires_at)"
            " VALUES (:subscription_key, :tenant, :family, :customer_id, :scopes, :secret,"
            " :reads_per_minute, :writes_per_minute, :wires_per_minute, :expires_at)"
        ),
        {
            "subscription_key": new.subscription_key,
            "tenant": new.tenant,
            "family": new.family.value,
            "customer_id": new.customer_id,
            "scopes": sorted(new.scopes),
            "secret": new.secret,
            "reads_per_minute": new.reads_per_minute,
            "writes_per_minute": new.writes_per_minute,
            "wires_per_minute": new.wires_per_minute,
            "expires_at": new.expires_at,
        },
    )


async def list_credentials(connection: AsyncConnection, tenant: str | None) -> list[CredentialRow]:
    rows = await connection.execute(
        text(
            "SELECT subscription_key, tenant, family, customer_id, scopes, created_at, expires_at, revoked_at"
            " FROM credentials WHERE CAST(:tenant AS text) IS NULL OR tenant = :tenant ORDER BY id"
        ),
        {"tenant": tenant},
    )
    return [CredentialRow(*row) for row in rows]


async def revoke(connection: AsyncConnection, subscription_key: str) -> bool:
    """False when there is no such key. Revoking again changes nothing."""
    updated = await connection.execute(
        text(
            "UPDATE credentials SET revoked_at = coalesce(revoked_at, now()) WHERE subscription_key = :key"
        ),
        {"key": subscription_key},
    )
    return updated.rowcount == 1


async def rotate(
    connection: AsyncConnection, subscription_key: str, secret: str, overlap_hours: float
) -> tuple[str, str] | None:
    """Make `secret` (sealed) the current one; the one before stays valid for the overlap.

    Returns:
        Tenant and family; None when there is no such key, or it is revoked.
    """
    updated = await connection.execute(
        text(
            "UPDATE credentials SET previous_secret = credentials.secret, secret = :secret,"
            " previous_secret_expires_at = now() + make_interval(secs => :seconds)"
            " WHERE subscription_key = :key AND revoked_at IS NULL RETURNING tenant, family"
        ),
        {"key": subscription_key, "secret": secret, "seconds": overlap_hours * 3600},
    )
    row = updated.first()
    return (row.tenant, row.family) if row else None
