"""Subscription keys of partners and customers as operators manage them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from libs.contracts.errors import BanksideError, ErrorDetail, InvalidState, NotFound
from libs.contracts.onboarding_operations import FIND_CUSTOMER
from libs.contracts.operating import keys as k
from libs.contracts.operating import search
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.operation import GATEWAY
from libs.contracts.ownership import CustomerOwner, FindCustomer
from libs.contracts.principal import SERVICE, Family, Principal
from libs.contracts.result import Result
from libs.contracts.table import FAMILY_SCOPES
from libs.handling.operating.auditing import record
from libs.handling.queries import QueryHandler
from libs.handling.query_client import QueryClient
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring
from services.gateway import key_limits, new_keys, repository
from services.gateway.credentials import secret_context


class Keys:
    """The handlers of the rows about keys.

    Args:
        queries: asks onboarding, which owns customers.
    """

    def __init__(
        self,
        database: Database,
        keyring: Keyring,
        queries: QueryClient,
        *,
        require_idempotency_keys: bool,
    ) -> None:
        self._database = database
        self._keyring = keyring
        self._queries = queries
        self._require_idempotency_keys = require_idempotency_keys

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            k.LIST_KEYS.name: self._list,
            k.GET_KEY.name: self._get,
            k.CREATE_KEY.name: self._create,
            k.ROTATE_KEY.name: self._rotate,
            k.REVOKE_KEY.name: self._revoke,
            k.CHANGE_SCOPES.name: self._change_scopes,
            k.CHANGE_NETWORKS.name: self._change_networks,
            search.FIND_ID_OF[GATEWAY].name: self._find_id,
        }

    async def _list(self, _: Principal, command: k.ListKeys, __: float) -> Result:
        async with self._database.transaction() as connection:
            rows = await repository.list_keys(
                connection,
                command.tenant,
                command.order,
                command.place,
                command.limit + 1,
                expiring=command.expiring,
            )
        page, following = cut(
            rows, command.limit, lambda row: Place(row.created_at, row.subscription_key)
        )
        return Result(Listed(items=list(page), next=following))

    async def _get(self, _: Principal, command: k.GetKey, __: float) -> Result:
        async with self._database.transaction() as connection:
            return Result(await _found(connection, command.subscription_key))

    async def _create(self, principal: Principal, command: k.CreateKey, deadline: float) -> Result:
        family = Family(command.family)
        scopes = FAMILY_SCOPES[family] if command.scopes is None else frozenset(command.scopes)
        key_limits.refuse(
            [
                *_wrong_owner(command),
                *key_limits.wrong_scopes(family, scopes, "scopes"),
                *key_limits.wrong_networks(command.allowed_networks, "allowed_networks"),
                *_wrong_end(command),
            ]
        )
        networks = sorted(key_limits.networks_of(command.allowed_networks))
        required = command.require_idempotency_key
        if required is None:
            required = self._require_idempotency_keys
        tenant = await self._tenant(command, deadline)
        subscription_key, secret = new_keys.new_subscription_key(), new_keys.new_secret()
        async with self._database.transaction() as connection:
            await repository.ensure_tenant(connection, tenant, command.tenant_name or tenant)
            await repository.add_credential(
                connection,
                repository.NewCredential(
                    subscription_key=subscription_key,
                    tenant=tenant,
                    family=family,
                    customer_id=UUID(command.customer_id) if command.customer_id else None,
                    scopes=scopes,
                    allowed_networks=networks,
                    secret=self._keyring.seal(secret, secret_context(subscription_key)),
                    reads_per_minute=command.reads_per_minute,
                    writes_per_minute=command.writes_per_minute,
                    wires_per_minute=command.wires_per_minute,
                    requires_idempotency_key=required,
                    expires_at=command.expires_at,
                ),
            )
            await record(
                connection,
                principal,
                "keys.create",
                reason=command.reason,
                subscription_key=subscription_key,
                tenant=tenant,
                customer_id=command.customer_id,
                scopes=" ".join(sorted(scopes)),
                allowed_networks=" ".join(networks),
                reads_per_minute=command.reads_per_minute,
                writes_per_minute=command.writes_per_minute,
                wires_per_minute=command.wires_per_minute,
                requires_idempotency_key=required,
                expires_at=command.expires_at.isoformat() if command.expires_at else None,
            )
        made = {"subscription_key": subscription_key, "secret": secret}
        return Result(k.KeySecret(**made, tenant=tenant, family=command.family))

    async def _tenant(self, command: k.CreateKey, deadline: float) -> str:
        """Of the key, which names its partner or its customer. Raises NotFound."""
        if command.customer_id is None:
            assert command.tenant is not None
            return command.tenant
        found = await self._queries.query(
            FIND_CUSTOMER,
            SERVICE,
            FindCustomer(customer_id=command.customer_id),
            CustomerOwner,
            deadline,
        )
        if command.tenant not in (None, found.tenant):
            raise NotFound
        return found.tenant

    async def _rotate(self, principal: Principal, command: k.RotateKey, _: float) -> Result:
        key, secret = command.subscription_key, new_keys.new_secret()
        sealed = self._keyring.seal(secret, secret_context(key))
        hours = float(command.overlap_hours)
        async with self._database.transaction() as connection:
            rotated = await repository.rotate(connection, key, sealed, hours)
            if rotated is None:
                raise await _refusal(connection, key)
            await record(
                connection,
                principal,
                "keys.rotate",
                reason=command.reason,
                subscription_key=key,
                overlap_hours=hours,
            )
        tenant, family = rotated
        values: dict[str, Any] = {"tenant": tenant, "family": family}
        return Result(k.KeySecret(subscription_key=key, secret=secret, **values))

    async def _revoke(self, principal: Principal, command: k.RevokeKey, _: float) -> Result:
        key = command.subscription_key
        async with self._database.transaction() as connection:
            if not await repository.revoke(connection, key):
                raise NotFound
            revoked = await _found(connection, key)
            await record(
                connection, principal, "keys.revoke", reason=command.reason, subscription_key=key
            )
        return Result(revoked)

    async def _change_scopes(
        self, principal: Principal, command: k.ChangeScopes, _: float
    ) -> Result:
        key = command.subscription_key
        async with self._database.transaction() as connection:
            found = await repository.lock_scopes(connection, key)
            if found is None:
                raise await _refusal(connection, key)
            family, scopes = found
            key_limits.refuse(
                [
                    *key_limits.wrong_scopes(family, command.add, "add"),
                    *key_limits.wrong_scopes(family, command.remove, "remove"),
                ]
            )
            changed = (scopes | {*command.add}) - {*command.remove}
            if not changed:
                raise InvalidState("The key would be left without a scope: revoke it instead.")
            if changed != scopes:
                await repository.set_scopes(connection, key, changed)
            await record(
                connection,
                principal,
                "keys.scopes",
                reason=command.reason,
                subscription_key=key,
                scopes=" ".join(sorted(changed)),
            )
            return Result(await _found(connection, key))

    async def _change_networks(
        self, principal: Principal, command: k.ChangeNetworks, _: float
    ) -> Result:
        key = command.subscription_key
        errors = [
            *key_limits.wrong_networks(command.add, "add"),
            *key_limits.wrong_networks(command.remove, "remove"),
        ]
        if command.anywhere and (command.add or command.remove):
            errors += key_limits.error("anywhere", "it stands alone: without `add` and `remove`")
        key_limits.refuse(errors)
        added, removed = map(key_limits.networks_of, (command.add, command.remove))
        async with self._database.transaction() as connection:
            networks = await repository.lock_networks(connection, key)
            if networks is None:
                raise await _refusal(connection, key)
            changed = frozenset() if command.anywhere else (networks | added) - removed
            if networks and not changed and not command.anywhere:
                raise InvalidState(
                    "The key would be allowed from everywhere: say so by `anywhere`."
                )
            key_limits.refuse(key_limits.too_many_networks(changed, "add"))
            if changed != networks:
                await repository.set_networks(connection, key, changed)
            await record(
                connection,
                principal,
                "keys.allow",
                reason=command.reason,
                subscription_key=key,
                allowed_networks=" ".join(sorted(changed)),
            )
            return Result(await _found(connection, key))

    async def _find_id(self, _: Principal, command: search.FindId, __: float) -> Result:
        async with self._database.transaction() as connection:
            key = await repository.find_key(connection, command.q)
        return Result(search.FoundIds(found=[] if key is None else [_named(key)]))


def _wrong_owner(command: k.CreateKey) -> list[ErrorDetail]:
    if command.family == Family.CUSTOMER.value:
        if command.customer_id is None:
            return key_limits.error(
                "customer_id", "name the customer: the customer_id from onboarding"
            )
        return []
    errors = []
    if command.customer_id is not None:
        errors += key_limits.error("customer_id", "a partner's key is not for one customer")
    if command.tenant is None:
        errors += key_limits.error("tenant", "name the partner")
    return errors


def _wrong_end(command: k.CreateKey) -> list[ErrorDetail]:
    if command.expires_at is None or command.expires_at > datetime.now(UTC):
        return []
    return key_limits.error("expires_at", "a key that has expired is of no use: say a later time")


def _named(key: k.KeyView) -> search.FoundId:
    return search.FoundId(
        service=GATEWAY,
        kind=search.Kind.SUBSCRIPTION_KEY,
        id=key.subscription_key,
        tenant=key.tenant,
        customer_id=str(key.customer_id) if key.customer_id else None,
        label=key.family,
    )


async def _refusal(connection: AsyncConnection, subscription_key: str) -> BanksideError:
    """Why a key that is not active cannot be changed."""
    found = await repository.find_key(connection, subscription_key)
    if found is None or found.revoked_at is not None or found.expires_at is None:
        return NotFound()
    return InvalidState(f"The key expired {found.expires_at:%Y-%m-%d %H:%MZ}: create another.")


async def _found(connection: AsyncConnection, subscription_key: str) -> k.KeyView:
    """Raises NotFound."""
    found = await repository.find_key(connection, subscription_key)
    if found is None:
        raise NotFound
    return found
