"""Operators and the keys that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import (
    Text,
    bindparam,
    case,
    exists,
    func,
    not_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, array, insert

from libs.contracts.operating.operators import OperatorView
from libs.contracts.operating.pages import Order, Place
from libs.contracts.principal import Family, Role
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.tables import INSTANT
from services.gateway.rotation import ROTATED
from services.gateway.tables import credentials, operator_logins, operators

READS_PER_MINUTE = 6000
WRITES_PER_MINUTE = 600
WIRES_PER_MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOperatorKey:
    """A key of an operator to be stored; `secret` is sealed already. `registered`: by the gateway's settings."""

    subscription_key: str
    operator: str
    secret: str
    registered: bool = False


_KEYS = (
    select(
        func.coalesce(
            func.array_agg(
                aggregate_order_by(credentials.c.subscription_key, credentials.c.id)
            ).filter(credentials.c.revoked_at.is_(None)),
            array([], type_=Text),
        ).label("subscription_keys"),
        func.max(credentials.c.last_used_at).label("last_used_at"),
    )
    .where(credentials.c.operator == operators.c.name)
    .lateral("keys")
)
_LOGIN = case(
    (operator_logins.c.operator.is_(None), None),
    (operator_logins.c.one_time_until.is_(None), "enrolled"),
    (operator_logins.c.one_time_until > func.now(), "one_time_password"),
    else_="expired",
).label("login")
_OPERATORS = (
    select(operators, _KEYS.c.subscription_keys, _KEYS.c.last_used_at, _LOGIN)
    .select_from(operators)
    .join(_KEYS, onclause=true())
    .outerjoin(operator_logins, operator_logins.c.operator == operators.c.name)
)
_AFTER = tuple_(operators.c.created_at, operators.c.name)
_PLACE = tuple_(bindparam("at", type_=INSTANT), bindparam("id", type_=Text))
_OLDEST = _OPERATORS.order_by(operators.c.created_at, operators.c.name).limit(bindparam("count"))
_NEWEST = _OPERATORS.order_by(operators.c.created_at.desc(), operators.c.name.desc()).limit(
    bindparam("count")
)
_PAGES = {
    (Order.OLDEST, False): _OLDEST,
    (Order.OLDEST, True): _OLDEST.where(_AFTER > _PLACE),
    (Order.NEWEST, False): _NEWEST,
    (Order.NEWEST, True): _NEWEST.where(_AFTER < _PLACE),
}
_ONE = _OPERATORS.where(operators.c.name == bindparam("wanted"))
_ACTIVE_ADMINS = (
    select(operators.c.name)
    .where(operators.c.role == Role.ADMIN.value, operators.c.revoked_at.is_(None))
    .order_by(operators.c.name)
    .with_for_update(key_share=True)
)
_ADMINS_WITH_KEYS = select(operators.c.name).where(
    operators.c.role == Role.ADMIN.value,
    operators.c.revoked_at.is_(None),
    exists().where(credentials.c.operator == operators.c.name, credentials.c.revoked_at.is_(None)),
)
_LOCK = (
    select(operators.c.name, operators.c.role, operators.c.revoked_at)
    .where(operators.c.name == bindparam("wanted"))
    # FOR NO KEY UPDATE lets a log-in, which has locked the row of the login, add a session: each would wait for the
    # other where both want the two rows.
    .with_for_update(key_share=True)
)
_REVOKE = (
    update(operators)
    .where(operators.c.name == bindparam("wanted"), operators.c.revoked_at.is_(None))
    .values(revoked_at=func.now())
)
_REVOKE_KEYS = (
    update(credentials)
    .where(credentials.c.operator == bindparam("wanted"), credentials.c.revoked_at.is_(None))
    .values(revoked_at=func.now())
)
_REVOKE_KEY = (
    update(credentials)
    .where(
        credentials.c.operator == bindparam("wanted"),
        credentials.c.subscription_key == bindparam("key"),
    )
    .values(revoked_at=func.coalesce(credentials.c.revoked_at, func.now()))
)
_ROTATE_KEY = (
    update(credentials)
    .where(
        credentials.c.operator == bindparam("wanted"),
        credentials.c.subscription_key == bindparam("key"),
        credentials.c.revoked_at.is_(None),
    )
    .values(ROTATED)
)
_SET_ROLE = (
    update(operators)
    .where(operators.c.name == bindparam("wanted"))
    .values(role=bindparam("new_role"))
)
_ADD = insert(operators).on_conflict_do_nothing().returning(operators.c.name)
_ADD_KEY = insert(credentials)
_KNOWN_KEY = select(credentials.c.id, credentials.c.secret).where(
    credentials.c.subscription_key == bindparam("subscription_key")
)
_ACTIVE_KEY = _KNOWN_KEY.where(
    credentials.c.operator == bindparam("operator"), credentials.c.revoked_at.is_(None)
)
_ACTIVE_KEY_OF_ROLE = _KNOWN_KEY.join(operators, operators.c.name == credentials.c.operator).where(
    credentials.c.revoked_at.is_(None),
    operators.c.revoked_at.is_(None),
    operators.c.role == bindparam("role"),
)
_MARK_REGISTERED = (
    update(credentials)
    .where(
        credentials.c.subscription_key == bindparam("key"),
        credentials.c.operator == bindparam("wanted"),
        credentials.c.revoked_at.is_(None),
        not_(credentials.c.registered),
    )
    .values(registered=True)
)
_GIVEN = credentials.alias("given")
_OF_KEY = select(_GIVEN.c.id).where(_GIVEN.c.subscription_key == bindparam("given_key"))
_REVOKE_BEFORE = (
    update(credentials)
    .where(
        credentials.c.operator == bindparam("wanted"),
        credentials.c.revoked_at.is_(None),
        credentials.c.id < _OF_KEY.scalar_subquery(),
        credentials.c.registered,
    )
    .values(revoked_at=func.now())
    .returning(credentials.c.subscription_key)
)


async def list_operators(
    connection: AsyncConnection, order: Order, place: Place | None, count: int
) -> list[OperatorView]:
    """At most `count` of them, after this place."""
    values: dict[str, object] = {"count": count}
    if place is not None:
        values |= {"at": place.at, "id": place.id}
    rows = await connection.execute(_PAGES[order, place is not None], values)
    return [OperatorView.model_validate(dict(row), extra="ignore") for row in rows.mappings()]


async def find_operator(connection: AsyncConnection, name: str) -> OperatorView | None:
    row = (await connection.execute(_ONE, {"wanted": name})).mappings().first()
    return OperatorView.model_validate(dict(row), extra="ignore") if row else None


async def lock_admins(connection: AsyncConnection) -> frozenset[str]:
    """The active admins who have a key. All active admins are kept from others until the end of the transaction."""
    locked = {row.name for row in await connection.execute(_ACTIVE_ADMINS)}
    # A statement of its own: it sees what the one before waited for.
    with_keys = await connection.execute(_ADMINS_WITH_KEYS)
    return frozenset(row.name for row in with_keys if row.name in locked)


async def lock_role(connection: AsyncConnection, name: str) -> str | None:
    """The role of an active operator, kept from others until the end of the transaction; None when there is none."""
    row = (await connection.execute(_LOCK, {"wanted": name})).first()
    return row.role if row and row.revoked_at is None else None


async def set_role(connection: AsyncConnection, name: str, role: str) -> None:
    await connection.execute(_SET_ROLE, {"wanted": name, "new_role": role})


async def revoke(connection: AsyncConnection, name: str) -> None:
    """With all its keys. Revoking again changes nothing."""
    await connection.execute(_REVOKE, {"wanted": name})
    await connection.execute(_REVOKE_KEYS, {"wanted": name})


async def revoke_key(connection: AsyncConnection, name: str, subscription_key: str) -> bool:
    """False when the operator has no such key. Revoking again changes nothing."""
    updated = await connection.execute(_REVOKE_KEY, {"wanted": name, "key": subscription_key})
    return updated.rowcount == 1


async def rotate_key(
    connection: AsyncConnection,
    name: str,
    subscription_key: str,
    secret: str,
    overlap_hours: float,
) -> bool:
    """Make `secret` (sealed) the current one; the one before stays valid for the overlap.

    Returns:
        False when the operator has no such key, or it is revoked.
    """
    updated = await connection.execute(
        _ROTATE_KEY,
        {
            "wanted": name,
            "key": subscription_key,
            "new_secret": secret,
            "overlap": timedelta(hours=overlap_hours),
        },
    )
    return updated.rowcount == 1


async def add_operator(connection: AsyncConnection, name: str, role: str) -> bool:
    """False when there is one of that name, revoked or not."""
    added = await connection.execute(_ADD, {"name": name, "role": role})
    return added.first() is not None


async def is_known_key(connection: AsyncConnection, subscription_key: str) -> bool:
    """Whether it is or was anyone's."""
    found = await connection.execute(_KNOWN_KEY, {"subscription_key": subscription_key})
    return found.first() is not None


async def is_active_key_of_a(connection: AsyncConnection, role: str, subscription_key: str) -> bool:
    """Whether it is an active key of an active operator of this role."""
    values = {"role": role, "subscription_key": subscription_key}
    return (await connection.execute(_ACTIVE_KEY_OF_ROLE, values)).first() is not None


async def secret_of_active_key(
    connection: AsyncConnection, operator: str, subscription_key: str
) -> str | None:
    """The sealed secret of a key of this operator; None when there is none that was not revoked."""
    values = {"operator": operator, "subscription_key": subscription_key}
    row = (await connection.execute(_ACTIVE_KEY, values)).first()
    return row.secret if row else None


async def mark_registered(
    connection: AsyncConnection, operator: str, subscription_key: str
) -> None:
    """Note that the gateway's settings name this key, if it is an active one of this operator."""
    await connection.execute(_MARK_REGISTERED, {"wanted": operator, "key": subscription_key})


async def revoke_registered_before(
    connection: AsyncConnection, operator: str, subscription_key: str
) -> list[str]:
    """End the keys of an operator that the gateway registered before this one; which these are."""
    rows = await connection.execute(
        _REVOKE_BEFORE, {"wanted": operator, "given_key": subscription_key}
    )
    return [row.subscription_key for row in rows]


async def add_key(connection: AsyncConnection, new: NewOperatorKey) -> None:
    values = {
        "subscription_key": new.subscription_key,
        "operator": new.operator,
        "family": Family.OPERATOR.value,
        "scopes": [],
        "secret": new.secret,
        "reads_per_minute": READS_PER_MINUTE,
        "writes_per_minute": WRITES_PER_MINUTE,
        "wires_per_minute": WIRES_PER_MINUTE,
    }
    if new.registered:
        values["registered"] = True
    await connection.execute(_ADD_KEY, values)
