"""The tables that services have in common, each in its own schema. A service's `tables.py` names those that it has."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    Double,
    Identity,
    Index,
    Integer,
    Interval,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    cast,
    extract,
    false,
    func,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, TIMESTAMP, UUID

INSTANT = TIMESTAMP(timezone=True)
UUID_TYPE: UUID[uuid.UUID] = UUID(as_uuid=True)

_NOW = func.clock_timestamp()


def seconds_since(moment: ColumnElement[Any]) -> ColumnElement[float]:
    """The age of a moment by the database's clock."""
    return cast(extract("epoch", func.clock_timestamp(type_=INSTANT) - moment), Double)


_NO_TEXTS = text("'{}'::text[]")

shared = MetaData()

inbox = Table(
    "inbox",
    shared,
    Column("command_id", UUID_TYPE, primary_key=True),
    Column("sequence", BigInteger, Identity(always=True), nullable=False),
    Column("operation", Text, nullable=False),
    Column("ordering_key", Text),
    Column("message_id", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("principal", BYTEA, nullable=False),
    Column("body", BYTEA, nullable=False),
    Column("body_hash", Text),
    Column("reply_to", Text),
    Column("deadline", Double, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("lease", UUID_TYPE),
    Column("lease_until", INSTANT),
    Column("due_at", INSTANT, nullable=False, server_default=_NOW),
    Column("last_error", Text),
    Column("accepted_at", INSTANT, nullable=False, server_default=_NOW),
    Column("finished_at", INSTANT),
    Column("keep_for_ever", Boolean, nullable=False, server_default=false()),
    Column("reply", BYTEA),
    Column("forgotten", Boolean, nullable=False, server_default=false()),
    Column("forgotten_messages", ARRAY(Text), nullable=False, server_default=_NO_TEXTS),
    Column("faults", Integer, nullable=False, server_default=text("0")),
    Column("parked_at", INSTANT),
    Column("parked_because", Text),
    Column("abandoned_by", Text),
    Column("abandoned_because", Text),
    Column("forgetting", Boolean, nullable=False, server_default=false()),
    Column("audited", Boolean, nullable=False, server_default=false()),
    Column("trace_context", Text),
    # Empty by default, since the release before records commands without it.
    Column("tenant", Text, nullable=False, server_default=text("''")),
    Index(
        "inbox_order",
        "ordering_key",
        "sequence",
        postgresql_where=text("finished_at IS NULL AND ordering_key IS NOT NULL"),
    ),
    Index("inbox_due", "due_at", postgresql_where=text("finished_at IS NULL")),
    Index(
        "inbox_unaudited",
        "finished_at",
        postgresql_where=text("finished_at IS NOT NULL AND NOT audited"),
    ),
    Index(
        "inbox_kept",
        "finished_at",
        postgresql_where=text("finished_at IS NOT NULL AND (forgotten OR NOT keep_for_ever)"),
    ),
)


def queue_index(inbox: Table) -> Index:
    """By ordering key, the commands that a later one waits for, of a service that has ordering keys.

    They are written `coalesce(finished_at, parked_at) IS NULL`, here and in the statements. With `finished_at IS NULL`
    PostgreSQL may take `inbox_due` instead, and read all open commands for each that it looks up: it does so when its
    statistics are of a time without open commands, since it expects that index to have none.
    """
    return Index(
        "inbox_queue",
        inbox.c.ordering_key,
        inbox.c.sequence,
        postgresql_where=text(
            "COALESCE(finished_at, parked_at) IS NULL AND ordering_key IS NOT NULL"
        ),
    )


outbox = Table(
    "outbox",
    shared,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("event_id", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("customer_id", Text, nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("body", BYTEA, nullable=False),
    Column("recorded_at", INSTANT, nullable=False, server_default=func.now()),
    Column("request_id", Text),
    Column("trace_context", Text),
)

outbox_unroutable = Table(
    "outbox_unroutable",
    shared,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("event_id", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("customer_id", Text, nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("body", BYTEA, nullable=False),
    Column("recorded_at", INSTANT, nullable=False),
    Column("set_aside_at", INSTANT, nullable=False, server_default=_NOW),
    Column("request_id", Text),
    Column("trace_context", Text),
    Index("outbox_unroutable_aggregate", "tenant", "resource_id", "id"),
)

leader_lease = Table(
    "leader_lease",
    shared,
    Column("name", Text, primary_key=True),
    Column("term", BigInteger, nullable=False),
    Column("holder", UUID_TYPE, nullable=False),
    Column("lease_until", INSTANT, nullable=False),
    UniqueConstraint("name", "term"),
)

feed_cursor = Table(
    "feed_cursor",
    shared,
    Column("feed", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("state", Text),
)

feed_event = Table(
    "feed_event",
    shared,
    Column("feed", Text, primary_key=True),
    Column("event_id", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Index("feed_event_position", "feed", "position"),
)

feed_stop = Table(
    "feed_stop",
    shared,
    Column("feed", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("entry_position", BigInteger),
    Column("entry_type", Text),
    Column("event_id", Text),
    Column("error", Text, nullable=False),
    Column("outline", Text),
    Column("since", INSTANT, nullable=False, server_default=_NOW),
    Column("tried_at", INSTANT, nullable=False, server_default=_NOW),
    Column("tries", BigInteger, nullable=False, server_default=text("1")),
)

feed_skip = Table(
    "feed_skip",
    shared,
    Column("feed", Text, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("reason", Text, nullable=False),
    Column("asked_by", Text, nullable=False),
    Column("asked_at", INSTANT, nullable=False, server_default=_NOW),
    Column("entry_type", Text),
    Column("event_id", Text),
    Column("error", Text, nullable=False),
    Column("outline", Text),
    Column("skipped_at", INSTANT),
)

database_life = Table(
    "database_life",
    shared,
    Column("started_at", INSTANT, primary_key=True),
    Column("first_seen_at", INSTANT, nullable=False, server_default=_NOW),
    Column("last_seen_at", INSTANT, nullable=False, server_default=_NOW),
    Column("checked_at", INSTANT),
    Column("missing_records", ARRAY(Text), nullable=False, server_default=_NO_TEXTS),
    Column("closed_at", INSTANT),
    Column("closed_by", Text),
    Column("reason", Text),
    Column("report_due_at", INSTANT),
    Column("process_ahead", Interval),
    Column("put_off_by", Interval),
    Column("put_off_after", INSTANT),
    Index(
        "database_life_open",
        "started_at",
        postgresql_where=text("missing_records <> '{}'::text[] AND closed_at IS NULL"),
    ),
)

key_check = Table(
    "key_check",
    shared,
    Column("ring", Text, primary_key=True),
    Column("key_id", Text, primary_key=True),
    Column("check_value", BYTEA, nullable=False),
    Column("first_seen_at", INSTANT, nullable=False, server_default=_NOW),
)

audit = Table(
    "audit",
    shared,
    Column("day", Date, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("entry", Text, nullable=False),
    Column("previous", BYTEA, nullable=False),
    Column("hash", BYTEA, nullable=False),
)

audit_turn = Table(
    "audit_turn",
    shared,
    Column("only_row", Boolean, primary_key=True, server_default=true()),
)

AUDIT = (audit, audit_turn)

OUTBOX = (outbox, outbox_unroutable)
FEEDS = (feed_cursor, feed_event, feed_stop, feed_skip)
