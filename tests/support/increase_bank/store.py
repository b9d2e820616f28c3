"""What the bank remembers: one SQLite file, written by one process.

An operation is one transaction: its object, its postings, its events and its idempotency key become durable together,
before the answer is sent. The file survives the end of the process at any moment (WAL), not a power failure.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.increase_bank.errors import ObjectNotFound
from tests.support.increase_bank.kinds import EVENT_CATEGORIES, MODELS, new_id
from tests.support.increase_bank.shapes import Json, rendered, timestamp

SCHEMA = """
CREATE TABLE IF NOT EXISTS object (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, created INTEGER NOT NULL,
    idempotency_key TEXT, account_id TEXT, entity_id TEXT, external_account_id TEXT, status TEXT,
    body TEXT NOT NULL, private TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS object_kind ON object (kind, created, seq);
CREATE INDEX IF NOT EXISTS object_account ON object (account_id, kind, created, seq);
CREATE INDEX IF NOT EXISTS object_entity ON object (entity_id, kind, created, seq);
CREATE INDEX IF NOT EXISTS object_external ON object (external_account_id, kind, created, seq);
CREATE INDEX IF NOT EXISTS object_key ON object (idempotency_key, kind, created, seq);
CREATE TABLE IF NOT EXISTS posting (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, account_id TEXT NOT NULL, amount INTEGER NOT NULL,
    created INTEGER NOT NULL, category TEXT NOT NULL, description TEXT NOT NULL, route_id TEXT, details TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS posting_account ON posting (account_id, created, seq);
CREATE INDEX IF NOT EXISTS posting_created ON posting (created, seq);
CREATE TABLE IF NOT EXISTS balance (
    account_id TEXT PRIMARY KEY, current INTEGER NOT NULL, held INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, category TEXT NOT NULL, object_id TEXT NOT NULL,
    object_type TEXT NOT NULL, created INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS event_object ON event (object_id, created, seq);
CREATE INDEX IF NOT EXISTS event_created ON event (created, seq);
CREATE TABLE IF NOT EXISTS used_key (
    key TEXT PRIMARY KEY, request TEXT NOT NULL, object_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS due (object_id TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS due_at ON due (at);
CREATE TABLE IF NOT EXISTS sweep (
    account_id TEXT NOT NULL, effective_date TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (account_id, effective_date)
) STRICT, WITHOUT ROWID;
"""
COLUMNS = ("account_id", "entity_id", "external_account_id", "status", "idempotency_key")
"""Fields of objects that have a column of their own, for lists."""
PUT = """
INSERT INTO object (
    id, kind, created, account_id, entity_id, external_account_id, status, idempotency_key, body, private
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SAVE = """
UPDATE object SET account_id = ?, entity_id = ?, external_account_id = ?, status = ?, idempotency_key = ?, body = ?,
    private = coalesce(?, private)
WHERE id = ?
"""


class Store:
    """Rows are read and written in the caller's thread: an operation takes a fraction of a millisecond."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(
            folder / "increase.sqlite", isolation_level=None, cached_statements=256
        )
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "busy_timeout = 5000"):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.executescript(SCHEMA)
        self.whole_seconds = False
        self._latest = self._newest_moment()

    def _newest_moment(self) -> int:
        row = self.row("SELECT max(created) FROM event")
        return int(row[0] or 0) if row is not None else 0

    def close(self) -> None:
        self._connection.close()

    def now(self) -> int:
        """Microseconds since 1970; never earlier than before, so that lists by time are lists by arrival."""
        moment = time.time_ns() // 1000
        if self.whole_seconds:
            moment -= moment % 1_000_000
        self._latest = max(self._latest, moment)
        return self._latest

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all of it is durable at the end, or nothing happened."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)

    def row(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._connection.execute(statement, values).fetchone()
        return found

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def put(self, body: Json, private: Json | None = None, *, event: bool = True) -> Json:
        """A new object, whose `type` and `id` are set; its event too."""
        kind, created = body["type"], self.now()
        body.setdefault("created_at", timestamp(created))
        text = rendered(MODELS[kind], body)
        hidden = None if private is None else json.dumps(private)
        columns = tuple(body.get(name) for name in COLUMNS)
        self.execute(PUT, (body["id"], kind, created, *columns, text, hidden))
        if event:
            self.event(f"{kind}.created", body["id"])
        return body

    def save(
        self,
        body: Json,
        private: Json | None = None,
        *,
        event: bool = True,
        beyond_sdk: bool = False,
    ) -> Json:
        """A changed object; its event too.

        Args:
            beyond_sdk: it has values that the SDK's types refuse: Increase documents them as open to additions, or its
                sandbox was seen to answer with them.
        """
        kind = body["type"]
        text = json.dumps(body) if beyond_sdk else rendered(MODELS[kind], body)
        hidden = None if private is None else json.dumps(private)
        columns = tuple(body.get(name) for name in COLUMNS)
        self.execute(SAVE, (*columns, text, hidden, body["id"]))
        if event:
            self.event(f"{kind}.updated", body["id"])
        return body

    def get(self, kind: str, object_id: str) -> Json:
        """Raises ObjectNotFound."""
        found: Json = json.loads(self.text(kind, object_id))
        return found

    def text(self, kind: str, object_id: str) -> str:
        """The object as it is answered. Raises ObjectNotFound."""
        row = self.row("SELECT body FROM object WHERE id = ? AND kind = ?", (object_id, kind))
        if row is None:
            raise ObjectNotFound(f"There is no {kind} {object_id}.")
        return str(row[0])

    def private(self, object_id: str) -> Json:
        """What the bank knows of an object and does not answer."""
        row = self.row("SELECT private FROM object WHERE id = ?", (object_id,))
        return {} if row is None or row[0] is None else json.loads(row[0])

    def event(self, category: str, object_id: str) -> None:
        """Tell of a change, where Increase has a category for it."""
        if category not in EVENT_CATEGORIES:
            return
        self.execute(
            "INSERT INTO event (id, category, object_id, object_type, created) VALUES (?, ?, ?, ?, ?)",
            (new_id("event", 26), category, object_id, category.partition(".")[0], self.now()),
        )

    def due(self, object_id: str, seconds: float) -> None:
        """The object moves on by itself in so many seconds."""
        at = time.time_ns() // 1000 + round(seconds * 1_000_000)
        self.execute(
            "INSERT INTO due VALUES (?, ?) ON CONFLICT (object_id) DO UPDATE SET at = excluded.at",
            (object_id, at),
        )

    def settled(self, object_id: str) -> None:
        """The object does not move on by itself."""
        self.execute("DELETE FROM due WHERE object_id = ?", (object_id,))

    def overdue(self, limit: int) -> list[str]:
        now = time.time_ns() // 1000
        rows = self.rows(
            "SELECT object_id FROM due WHERE at <= ? ORDER BY at LIMIT ?", (now, limit)
        )
        return [row[0] for row in rows]
