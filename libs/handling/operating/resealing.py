"""Sealing anew what a service has stored, one bounded step at a time."""

from __future__ import annotations

import asyncio
from collections import Counter

import msgspec

from libs.contracts.operating import resealing as contract
from libs.contracts.operating.resealing import KeyUse
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.operating.auditing import record
from libs.handling.operating.places import not_a_place
from libs.handling.queries import QueryHandler
from libs.handling.resealing import SealedStore
from libs.persistence.engine import Database
from libs.persistence.resealing import ColumnWalk, NotAPlace

STEP_SECONDS = 2.0
"""A step ends with the first batch that ends after this time."""


class _At(msgspec.Struct, frozen=True, array_like=True):
    """Where a step begins: in which column, and after which row; after the columns come the digests."""

    part: int
    last: list[str] | None = None


class Resealing:
    """The handler of one service."""

    def __init__(self, service: str, database: Database, store: SealedStore) -> None:
        self._service = service
        self._database = database
        self._store = store

    def by_operation(self) -> dict[str, QueryHandler]:
        return {contract.RESEAL_OF[self._service].name: self.step}

    async def step(self, principal: Principal, command: contract.Reseal, _: float) -> Result:
        """Every step is audited before it begins: a walk may be begun anywhere."""
        at = _decoded(command.after)
        async with self._database.transaction() as connection:
            await record(
                connection, principal, "keys.reseal", reason=command.reason, begins_at=command.after
            )
        until = asyncio.get_running_loop().time() + STEP_SECONDS
        try:
            if at.part < len(self._store.columns):
                return Result(data=await self._over_column(at, until))
            return Result(data=await self._over_digests(at, until))
        except NotAPlace:
            raise not_a_place("body") from None

    async def _over_column(self, at: _At, until: float) -> contract.ResealStep:
        column = self._store.columns[at.part]
        walk = ColumnWalk(self._database, column, self._store.rings)
        done = await walk.step(at.last, until)
        last = None if done.last is None else [str(value) for value in done.last]
        return self._step(
            column.name,
            done.values,
            rows=done.sealed_anew,
            unopened=done.unopened,
            passed_over=done.passed_over,
            following=self._following(at.part, last),
        )

    async def _over_digests(self, at: _At, until: float) -> contract.ResealStep:
        digests = self._store.digests
        if digests is None or at.part > len(self._store.columns):
            raise not_a_place("body")
        done = await digests.renew(at.last[0] if at.last else None, until)
        return self._step(
            None,
            Counter({(digests.variable, key_id): count for key_id, count in done.left.items()}),
            passed_over=done.left.total(),
            following=self._following(at.part, None if done.last is None else [done.last]),
        )

    def _following(self, part: int, last: list[str] | None) -> _At | None:
        if last is not None:
            return _At(part, last)
        parts = len(self._store.columns) + (self._store.digests is not None)
        return _At(part + 1) if part + 1 < parts else None

    def _step(
        self,
        part: str | None,
        values: Counter[tuple[str, str]],
        *,
        following: _At | None,
        passed_over: int,
        rows: int = 0,
        unopened: int = 0,
    ) -> contract.ResealStep:
        rings = {name: [*ring.key_ids] for name, ring in self._store.rings.items()}
        if self._store.digests is not None:
            rings[self._store.digests.variable] = [*self._store.digests.key_ids]
        return contract.ResealStep(
            part=part,
            rows=rows,
            unopened=unopened,
            passed_over=passed_over,
            keys=[
                KeyUse(ring=ring, key_id=key_id, values=count)
                for (ring, key_id), count in sorted(values.items())
            ],
            rings=rings,
            next=None if following is None else msgspec.json.encode(following).decode(),
        )


def _decoded(after: str | None) -> _At:
    """Raises Invalid."""
    if after is None:
        return _At(0)
    try:
        at = msgspec.json.decode(after, type=_At)
    except (msgspec.MsgspecError, RecursionError):
        raise not_a_place("body") from None
    if at.part < 0:
        raise not_a_place("body")
    return at
