"""Arrays of PostgreSQL's own types, known without asking the server.

asyncpg knows PostgreSQL's types, but asks each new connection about arrays of them. The answer takes the server 8 ms of
processor time, three times as much as the connection, and most of the thousands of connections of a run use an array.

asyncpg documents no way to tell it; its method that asks is replaced, as it is in 0.32.
`tests/integration/support/test_known_types.py` compares with what a server says, and with the
arrays that statements name.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import asyncpg

ELEMENTS = {
    1000: (16, "bool", "boolean"),
    1001: (17, "bytea", "bytea"),
    1003: (19, "name", "name"),
    1005: (21, "int2", "smallint"),
    1007: (23, "int4", "integer"),
    1016: (20, "int8", "bigint"),
    1022: (701, "float8", "double precision"),
    1182: (1082, "date", "date"),
    1185: (1184, "timestamptz", "timestamp with time zone"),
    1231: (1700, "numeric", "numeric"),
    2951: (2950, "uuid", "uuid"),
}
"""By the array's number in the catalogue: the number of its elements' type, and both names of that."""


def know_arrays() -> None:
    """From now on, connections of this process and of those forked from it."""
    ask = asyncpg.Connection._introspect_types

    async def answer(
        connection: asyncpg.Connection, types: set[int], *others: Any
    ) -> tuple[list[Any], Any]:
        if types <= ELEMENTS.keys():
            # A statement with a name, as that which asks has one while it is kept: it replaces no other.
            return [described(array) for array in types], SimpleNamespace(name="known")
        asked: tuple[list[Any], Any] = await ask(connection, types, *others)
        return asked

    asyncpg.Connection._introspect_types = answer


def described(array: int) -> dict[str, Any]:
    """As the server describes it."""
    element, name, long_name = ELEMENTS[array]
    return {
        "oid": array,
        "ns": "pg_catalog",
        "name": f"_{name}",
        "kind": b"b",
        "basetype": None,
        "elemtype": element,
        "elemdelim": b",",
        "range_subtype": None,
        "attrtypoids": None,
        "attrnames": None,
        "depth": 0,
        "basetype_name": None,
        "elemtype_name": long_name,
        "range_subtype_name": None,
    }
