"""What the login of a running service may do with a table of its schema, which belongs to `<service>_owner`.

Tables get `READ_WRITE` when migrations make them (`deploy/postgres/schemas.sql`, default privileges). A table that gets
less stands in `LIMITED` of its service's `tables.py`, and the migration that makes it revokes the rest; `make check`
compares the two.
"""

from __future__ import annotations

READ_WRITE = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})
APPEND_ONLY = frozenset({"SELECT", "INSERT"})
READ_ONLY = frozenset({"SELECT"})
LOCKED_ONLY = frozenset({"SELECT", "UPDATE"})
"""A row that is there to be locked."""
