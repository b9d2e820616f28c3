"""Sealing anew what is stored, with the first keys of the rings: how a key gets out of use while services run.

Columns are walked by primary key, in batches of one short transaction each, so a walk can be interrupted and gone on
with at any time: what is sealed by a first key already is only opened and counted. Rows that a service has locked are
passed over rather than waited for: another walk seals them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Column, Row, Table, Text, bindparam, cast, select, tuple_, update
from sqlalchemy.dialects.postgresql import JSONB

from libs.contracts.exact_json import decode
from libs.contracts.sensitive import SensitiveShape
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database
from libs.persistence.sealing import CannotOpen, Keyring

BATCH = 500


class NotAPlace(Exception):
    """A step was asked to begin at a place where no step can have ended."""


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column with sealed values.

    Args:
        column: text, bytes of text, or jsonb; null where there is no value.
        context: of a row: what its value is sealed for, without the field when the column is JSON.
        ring: the name of the ring that seals a value of this context.
        shape: of a row: where in its JSON the sealed values stand; without, the value is one.
        within: the member of the JSON at which those places begin.
        also: columns that `context` reads, besides the primary key.
    """

    column: Column[Any]
    context: Callable[[Row[Any]], str]
    ring: Callable[[str], str]
    shape: Callable[[Row[Any]], SensitiveShape] | None = None
    within: tuple[str, ...] = ()
    also: tuple[Column[Any], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.column.table.name}.{self.column.name}"

    def tokens(self, row: Row[Any]) -> Iterator[tuple[str, str]]:
        """Each sealed value of the row, with its context."""
        text, context = text_of(row), self.context(row)
        if not text:  # as the body of a command that is finished, or the secret of a subscription that is deleted
            return
        if self.shape is None:
            yield text, context
            return
        value = decode(text)
        for name in self.within:
            value = value.get(name) if isinstance(value, dict) else None
        found: list[tuple[str, str]] = []

        def note(token: str, place: str) -> str:
            found.append((token, place))
            return token

        self.shape(row).apply(value, note, f"{context}#")
        yield from found


@dataclass
class WalkedOver:
    """What is stored in the rows of one step.

    Args:
        values: by the id of the key that seals them, after the ring's name.
        unopened: values that no key of their ring opens, also those that name one of its keys.
        passed_over: rows that were locked.
        last: the primary key of the last one, where the next step begins; None after the last row.
    """

    values: Counter[tuple[str, str]] = field(default_factory=Counter)
    sealed_anew: int = 0
    unopened: int = 0
    passed_over: int = 0
    last: Sequence[Any] | None = None


class ColumnWalk:
    """Walks over one column.

    Args:
        rings: by name.
    """

    def __init__(
        self, database: Database, column: SealedColumn, rings: Mapping[str, Keyring]
    ) -> None:
        table = column.column.table
        assert isinstance(table, Table)
        self._database = database
        self._column = column
        self._rings = rings
        self._keys = tuple(table.primary_key)
        is_jsonb = isinstance(column.column.type, JSONB)
        value = cast(column.column, Text) if is_jsonb else column.column
        rows = select(*self._keys, *column.also, value.label("sealed")).where(
            column.column.is_not(None)
        )
        self._first = rows.order_by(*self._keys).limit(BATCH)
        self._next = self._first.where(
            tuple_(*self._keys)
            > tuple_(*(bindparam(f"after_{key.name}", type_=key.type) for key in self._keys))
        )
        self._lock = rows.where(
            tuple_(*self._keys).in_(bindparam("keys", expanding=True))
        ).with_for_update(skip_locked=True)
        fresh = bindparam("fresh", type_=Text() if is_jsonb else column.column.type)
        self._update = (
            update(table)
            .where(*(key == bindparam(f"of_{key.name}", type_=key.type) for key in self._keys))
            .values({column.column.name: cast(fresh, JSONB) if is_jsonb else fresh})
        )

    async def step(self, after: Sequence[str] | None, until: float) -> WalkedOver:
        """Seal batch after batch anew, until the time of the loop's clock is past.

        Args:
            after: `WalkedOver.last` of the step before, as texts; without, the walk begins.

        Raises:
            NotAPlace: `after` is no primary key of the table.
        """
        done = WalkedOver(last=None if after is None else self._key_of(after))
        while True:
            query, values = self._first, dict[str, Any]()
            if done.last is not None:
                query, values = self._next, self._named(done.last, "after_")
            async with self._database.transaction() as connection:
                batch: Sequence[Any] = (await connection.execute(query, values)).all()
                await self._walk_over(connection, batch, done)
            if len(batch) < BATCH:
                done.last = None
                return done
            done.last = self._key(batch[-1])
            if asyncio.get_running_loop().time() >= until:
                return done

    def _key_of(self, texts: Sequence[str]) -> tuple[Any, ...]:
        try:
            return tuple(
                key.type.python_type(text) for key, text in zip(self._keys, texts, strict=True)
            )
        except ValueError:
            raise NotAPlace from None

    async def _walk_over(
        self, connection: AsyncConnection, batch: Sequence[Any], done: WalkedOver
    ) -> None:
        outdated = {self._key(row): row for row in batch if self._is_outdated(row)}
        for row in batch:
            if self._key(row) not in outdated:
                self._resealed(row, done)  # which counts and opens its values, and changes none
        if not outdated:
            return
        changes = []
        locked: Sequence[Any] = (
            await connection.execute(self._lock, {"keys": list(outdated)})
        ).all()
        for row in locked:
            del outdated[self._key(row)]
            if (fresh := self._resealed(row, done)) is not None:
                changes.append(self._named(self._key(row), "of_") | {"fresh": fresh})
        if changes:
            await connection.execute(self._update, changes)
        done.sealed_anew += len(changes)
        done.passed_over += len(outdated)
        for row in outdated.values():
            self._count(row, done)

    def _is_outdated(self, row: Row[Any]) -> bool:
        return any(
            ring is not None and not ring.is_current(token)
            for token, ring in (
                (token, self._rings.get(self._column.ring(context)))
                for token, context in self._column.tokens(row)
            )
        )

    def _count(self, row: Row[Any], done: WalkedOver) -> None:
        for token, context in self._column.tokens(row):
            self._count_value(token, context, done)

    def _count_value(self, token: str, context: str, done: WalkedOver) -> None:
        done.values[self._column.ring(context), Keyring.key_id_of(token) or ""] += 1

    def _resealed(self, row: Row[Any], done: WalkedOver) -> str | bytes | None:
        """The column's value with every token sealed by a first key; None when it is the same."""
        text = before = text_of(row)
        for token, context in self._column.tokens(row):
            try:
                fresh = self._rings[self._column.ring(context)].reseal(token, context)
            except (CannotOpen, KeyError):
                done.unopened += 1
                fresh = token
            # A token occurs once: it begins with a random nonce. So nothing else in the text changes.
            text = text.replace(token, fresh)
            self._count_value(fresh, context, done)
        if text == before:
            return None
        return text.encode() if isinstance(row.sealed, bytes) else text

    def _key(self, row: Row[Any]) -> tuple[Any, ...]:
        return tuple(getattr(row, key.name) for key in self._keys)

    def _named(self, values: Sequence[Any], prefix: str) -> dict[str, Any]:
        return {f"{prefix}{key.name}": value for key, value in zip(self._keys, values, strict=True)}


def text_of(row: Row[Any]) -> str:
    return row.sealed.decode() if isinstance(row.sealed, bytes) else str(row.sealed)
