"""Tenants and credentials as operators change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Integer, Text, and_, bindparam, func, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from libs.contracts.operating.keys import KeyView
from libs.contracts.operating.pages import Order, Place
from libs.contracts.principal import Family, Scope
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from services.gateway.expiry import EXPIRES_SOON
from services.gateway.rotation import ROTATED
from services.gateway.tables import credentials, tenants


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCredential:
    """A credential to be stored; `secret` is sealed already."""

    subscription_key: str
    tenant: str
    family: Family
    customer_id: UUID | None
    scopes: frozenset[Scope]
    allowed_networks: Sequence[str]
    """Where its requests may come from; empty: from everywhere."""
    secret: str
    reads_per_minute: int
    writes_per_minute: int
    wires_per_minute: int
    requires_idempotency_key: bool
    expires_at: datetime | None


_ADD_TENANT = insert(tenants).on_conflict_do_nothing()
_ADD_CREDENTIAL = insert(credentials)
_IS_OF_TENANT = credentials.c.tenant.is_not(None)
"""Those of operators are managed with their operators."""
_IS_ACTIVE = and_(
    _IS_OF_TENANT,
    credentials.c.revoked_at.is_(None),
    or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > func.now()),
)
_KEYS = select(
    *(credentials.c[name] for name in KeyView.model_fields),
).where(_IS_OF_TENANT)
_KEY = _KEYS.where(credentials.c.subscription_key == bindparam("key"))
_COUNT = bindparam("count", type_=Integer)
_AFTER = tuple_(credentials.c.created_at, credentials.c.subscription_key)
_PLACE = tuple_(bindparam("at", type_=INSTANT), bindparam("id", type_=Text))
_OF_TENANT = credentials.c.tenant == bindparam("tenant")
_SORTED = {
    Order.OLDEST: _KEYS.order_by(credentials.c.created_at, credentials.c.subscription_key).limit(
        _COUNT
    ),
    Order.NEWEST: _KEYS.order_by(
        credentials.c.created_at.desc(), credentials.c.subscription_key.desc()
    ).limit(_COUNT),
}
_BEYOND = {Order.OLDEST: _AFTER > _PLACE, Order.NEWEST: _AFTER < _PLACE}
_PAGES = {
    (order, of_tenant, expiring, goes_on): rows.where(
        *([_OF_TENANT] if of_tenant else []),
        *([EXPIRES_SOON] if expiring else []),
        *([_BEYOND[order]] if goes_on else []),
    )
    for order, rows in _SORTED.items()
    for of_tenant in (False, True)
    for expiring in (False, True)
    for goes_on in (False, True)
}
"""By order, by whether they are of one tenant and expire soon, and by whether the page is not the first."""
_REVOKE = (
    update(credentials)
    .where(credentials.c.subscription_key == bindparam("key"), _IS_OF_TENANT)
    .values(revoked_at=func.coalesce(credentials.c.revoked_at, func.now()))
)
_ROTATE = (
    update(credentials)
    .where(
        credentials.c.subscription_key == bindparam("key"),
        _IS_ACTIVE,
    )
    .values(ROTATED)
    .returning(credentials.c.tenant, credentials.c.family)
)

_SCOPES = (
    select(credentials.c.family, credentials.c.scopes)
    .where(
        credentials.c.subscription_key == bindparam("key"),
        _IS_ACTIVE,
    )
    .with_for_update()
)
_SET_SCOPES = (
    update(credentials)
    .where(credentials.c.subscription_key == bindparam("key"))
    .values(scopes=bindparam("new_scopes"))
)
_NETWORKS = (
    select(credentials.c.allowed_networks)
    .where(
        credentials.c.subscription_key == bindparam("key"),
        _IS_ACTIVE,
    )
    .with_for_update()
)
_SET_NETWORKS = (
    update(credentials)
    .where(credentials.c.subscription_key == bindparam("key"))
    .values(allowed_networks=bindparam("new_networks"))
)


async def ensure_tenant(connection: AsyncConnection, tenant: str, name: str) -> None:
    await connection.execute(_ADD_TENANT, {"tenant": tenant, "name": name})


async def add_credential(connection: AsyncConnection, new: NewCredential) -> None:
    values = asdict(new) | {"family": new.family.value, "scopes": sorted(new.scopes)}
    await connection.execute(_ADD_CREDENTIAL, values)


async def list_keys(
    connection: AsyncConnection,
    tenant: str | None,
    order: Order,
    place: Place | None,
    count: int,
    *,
    expiring: bool = False,
) -> list[KeyView]:
    """At most `count` keys of partners and customers, after this place; with `expiring`, of those that expire soon."""
    values: dict[str, object] = {"count": count}
    if tenant is not None:
        values["tenant"] = tenant
    if place is not None:
        values |= {"at": place.at, "id": place.id}
    statement = _PAGES[order, tenant is not None, expiring, place is not None]
    rows = await connection.execute(statement, values)
    return [KeyView.model_validate(dict(row)) for row in rows.mappings()]


async def find_key(connection: AsyncConnection, subscription_key: str) -> KeyView | None:
    row = (await connection.execute(_KEY, {"key": subscription_key})).mappings().first()
    return KeyView.model_validate(dict(row)) if row else None


async def revoke(connection: AsyncConnection, subscription_key: str) -> bool:
    """False when there is no such key. Revoking again changes nothing."""
    updated = await connection.execute(_REVOKE, {"key": subscription_key})
    return updated.rowcount == 1


async def lock_scopes(
    connection: AsyncConnection, subscription_key: str
) -> tuple[Family, frozenset[str]] | None:
    """The family and the scopes of a key, kept from others until the end of the transaction. A later release may have
    given it scopes that this one does not know.

    Returns:
        None when there is no such key, or it is revoked or has expired.
    """
    row = (await connection.execute(_SCOPES, {"key": subscription_key})).first()
    return (Family(row.family), frozenset(row.scopes)) if row else None


async def set_scopes(
    connection: AsyncConnection, subscription_key: str, scopes: frozenset[str]
) -> None:
    await connection.execute(_SET_SCOPES, {"key": subscription_key, "new_scopes": sorted(scopes)})


async def lock_networks(
    connection: AsyncConnection, subscription_key: str
) -> frozenset[str] | None:
    """Where a key may be used, empty for everywhere; kept from others until the end of the transaction.

    Returns:
        None when there is no such key, or it is revoked or has expired.
    """
    row = (await connection.execute(_NETWORKS, {"key": subscription_key})).first()
    return frozenset(row.allowed_networks) if row else None


async def set_networks(
    connection: AsyncConnection, subscription_key: str, networks: frozenset[str]
) -> None:
    await connection.execute(
        _SET_NETWORKS, {"key": subscription_key, "new_networks": sorted(networks)}
    )


async def rotate(
    connection: AsyncConnection, subscription_key: str, secret: str, overlap_hours: float
) -> tuple[str, str] | None:
    """Make `secret` (sealed) the current one; the one before stays valid for the overlap.

    Returns:
        Tenant and family; None when there is no such key, or it is revoked or has expired.
    """
    updated = await connection.execute(
        _ROTATE,
        {
            "key": subscription_key,
            "new_secret": secret,
            "overlap": timedelta(hours=overlap_hours),
        },
    )
    row = updated.first()
    return (row.tenant, row.family) if row else None
