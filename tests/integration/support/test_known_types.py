"""What `tests.support.known_types` says instead of a server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.infrastructure import Environment
from tests.support.known_types import ELEMENTS, described

ROOT = Path(__file__).parents[3]
KNOWN_TO_ASYNCPG = {"text"}
NOT_KNOWN = 199
"""The array of `json`: with it among the types, the server is asked about all."""


async def test_arrays_are_described_as_the_server_does(environment: Environment) -> None:
    connection: Any = await asyncpg.connect(environment.database_urls["onboarding"])

    types, _ = await connection._introspect_types(ELEMENTS.keys() | {NOT_KNOWN}, None)

    await connection.close()
    said = {row["oid"]: dict(row) for row in types}
    assert {array: said[array] for array in ELEMENTS} == {
        array: described(array) for array in ELEMENTS
    }


async def test_known_arrays_go_both_ways(environment: Environment) -> None:
    connection = await asyncpg.connect(environment.database_urls["onboarding"])

    came_back = await connection.fetchrow(
        "SELECT $1::bigint[] AS counts, $2::numeric[] AS amounts, $3::bool[] AS marks",
        [2],
        [],
        [True],
    )

    await connection.close()
    assert dict(came_back) == {"counts": [2], "amounts": [], "marks": [True]}


def test_every_array_that_statements_of_services_name_is_known() -> None:
    code = (
        path.read_text()
        for folder in ("libs", "services")
        for path in (ROOT / folder).rglob("*.py")
    )

    named = {name for text in code for name in re.findall(r"::(\w+)\[\]", text)}

    known = {name for _, *names in ELEMENTS.values() for name in names}
    assert {"text", "uuid", "float8"} <= named <= known | KNOWN_TO_ASYNCPG
