"""Operators as admins manage them."""

from __future__ import annotations

from libs.contracts.errors import AlreadyExists, InvalidState, NotFound
from libs.contracts.operating import operators as o
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.principal import Principal, Role
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.queries import QueryHandler
from libs.persistence.engine import Database
from libs.persistence.sealing import Keyring
from services.gateway import new_keys
from services.gateway import operator_repository as repository
from services.gateway.credentials import CONSOLE, secret_context
from services.gateway.login_repository import end_sessions, set_one_time_password
from services.gateway.logins import new_one_time_password
from services.gateway.passwords import Passwords

LAST_ADMIN = "This is the last active admin with a key: make another admin first."
LAST_KEY = "It is the last key of an admin: make another admin first, or rotate it."


class Operators:
    """The handlers of the rows about operators."""

    def __init__(self, database: Database, keyring: Keyring, passwords: Passwords) -> None:
        self._database = database
        self._keyring = keyring
        self._passwords = passwords

    def by_operation(self) -> dict[str, QueryHandler]:
        return {
            o.LIST_OPERATORS.name: self._list,
            o.CREATE_OPERATOR.name: self._create,
            o.REVOKE_OPERATOR.name: self._revoke,
            o.REVOKE_OPERATOR_KEY.name: self._revoke_key,
            o.ROTATE_OPERATOR_KEY.name: self._rotate_key,
            o.CHANGE_ROLE.name: self._change_role,
            o.RESET_LOGIN.name: self._reset_login,
        }

    async def _list(self, _: Principal, command: o.ListOperators, __: float) -> Result:
        async with self._database.transaction() as connection:
            rows = await repository.list_operators(
                connection, command.order, command.place, command.limit + 1
            )
        page, following = cut(rows, command.limit, lambda row: Place(row.created_at, row.name))
        return Result(Listed(items=list(page), next=following))

    async def _create(self, principal: Principal, command: o.CreateOperator, _: float) -> Result:
        one_time = await new_one_time_password(self._passwords) if command.login else None
        async with self._database.transaction() as connection:
            if not await repository.add_operator(connection, command.name, command.role):
                raise AlreadyExists(
                    f"There is or was an operator {command.name}: take another name."
                )
            subscription_key, secret = await new_keys.add_key(
                connection, self._keyring, command.name
            )
            if one_time is not None:
                await set_one_time_password(connection, command.name, one_time)
            await record(
                connection,
                principal,
                "operators.create",
                reason=command.reason,
                operator=command.name,
                role=command.role,
                subscription_key=subscription_key,
            )
        return Result(
            o.CreatedOperator(
                name=command.name,
                role=command.role,
                subscription_key=subscription_key,
                secret=secret,
                one_time_password=one_time.password if one_time else None,
            )
        )

    async def _revoke(self, principal: Principal, command: o.RevokeOperator, _: float) -> Result:
        async with self._database.transaction() as connection:
            admins = await repository.lock_admins(connection)
            found = await repository.find_operator(connection, command.name)
            if found is None:
                raise NotFound
            if admins == {command.name}:
                raise InvalidState(LAST_ADMIN)
            if found.revoked_at is None:
                await repository.revoke(connection, command.name)
                await end_sessions(connection, command.name)
            await record(
                connection,
                principal,
                "operators.revoke",
                reason=command.reason,
                operator=command.name,
            )
            return Result(await repository.find_operator(connection, command.name))

    async def _revoke_key(
        self, principal: Principal, command: o.RevokeOperatorKey, _: float
    ) -> Result:
        name, key = command.name, command.subscription_key
        async with self._database.transaction() as connection:
            admins = await repository.lock_admins(connection)
            await repository.lock_role(connection, name)
            found = await repository.find_operator(connection, name)
            if found is None or not await repository.revoke_key(connection, name, key):
                raise NotFound
            if admins == {name} and found.subscription_keys == [key]:
                raise InvalidState(LAST_KEY)
            await record(
                connection,
                principal,
                "operators.revoke_key",
                reason=command.reason,
                operator=name,
                subscription_key=key,
            )
            return Result(await repository.find_operator(connection, name))

    async def _rotate_key(
        self, principal: Principal, command: o.RotateOperatorKey, _: float
    ) -> Result:
        name, key = command.name, command.subscription_key
        secret, hours = new_keys.new_secret(), float(command.overlap_hours)
        sealed = self._keyring.seal(secret, secret_context(key))
        async with self._database.transaction() as connection:
            if not await repository.rotate_key(connection, name, key, sealed, hours):
                raise NotFound
            await record(
                connection,
                principal,
                "operators.rotate_key",
                reason=command.reason,
                operator=name,
                subscription_key=key,
                overlap_hours=hours,
            )
        return Result(o.OperatorKeySecret(name=name, subscription_key=key, secret=secret))

    async def _change_role(self, principal: Principal, command: o.ChangeRole, _: float) -> Result:
        async with self._database.transaction() as connection:
            admins = await repository.lock_admins(connection)
            role = await repository.lock_role(connection, command.name)
            if role is None:
                raise NotFound
            if role == CONSOLE:
                raise InvalidState("A console has no role of its own.")
            if admins == {command.name} and command.role != Role.ADMIN.value:
                raise InvalidState(LAST_ADMIN)
            if role != command.role:
                await repository.set_role(connection, command.name, command.role)
            await record(
                connection,
                principal,
                "operators.role",
                reason=command.reason,
                operator=command.name,
                role=command.role,
            )
            return Result(await repository.find_operator(connection, command.name))

    async def _reset_login(self, principal: Principal, command: o.ResetLogin, _: float) -> Result:
        one_time = await new_one_time_password(self._passwords)
        async with self._database.transaction() as connection:
            role = await repository.lock_role(connection, command.name)
            if role is None:
                raise NotFound
            if role == CONSOLE:
                raise InvalidState("A console does not log in, operators do.")
            await set_one_time_password(connection, command.name, one_time)
            await end_sessions(connection, command.name)
            await record(
                connection,
                principal,
                "operators.reset_login",
                reason=command.reason,
                operator=command.name,
            )
        return Result(
            o.OneTimePassword(
                name=command.name, one_time_password=one_time.password, expires_at=one_time.until
            )
        )
