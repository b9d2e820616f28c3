"""`bankside audit …`: what was done, by whom, and whether the record of it is whole."""

from __future__ import annotations

import os
import pwd
import sys
from datetime import date
from typing import Any

import msgspec
from cyclopts import App
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cli.database import database_variable, with_database
from libs.cli.decisions import Flag
from libs.cli.output import console, print_json
from libs.client.errors import OperatorError
from libs.contracts.exact_json import encode
from libs.persistence import audit
from libs.persistence.audit import BrokenChain, Head, Row
from libs.persistence.engine import Database
from libs.secret_sources import is_set

SERVICES = (
    "gateway",
    "onboarding",
    "ledger_read",
    "payments",
    "webhook_dispatcher",
    "reconciliation",
)

app = App(name="audit", help="The audit: verify that it is whole, export it.")


async def record(
    connection: AsyncConnection,
    action: str,
    *,
    by: str | None = None,
    **subject: str | float | None,
) -> None:
    """Append what the operator at this terminal does, in the transaction that does it, as the last of it.

    Args:
        by: the operator's name, where the command asks for it; else that of the user who runs it.
        subject: to what, without anything sensitive.
    """
    name = operator_name()
    await audit.append(connection, [audit.by_operator(by or name, action, user=name, **subject)])


@app.command
def verify(
    *,
    service: str | None = None,
    since: date | None = None,
    head: str | None = None,
    json: Flag = False,
) -> int:
    """Compute the audit's chain of hashes anew. Exit status 1: a row was changed, removed or put in between.

    Args:
        service: Only the audit of this service; with --head it has to be named. Without, of all whose databases are
            known here.
        since: From this day on (UTC), without looking at what was before.
        head: A `day:number:hash` that was logged or shown earlier: that row has to be there still.
        json: Print one JSON document.
    """
    if head is not None and service is None:
        raise OperatorError("With --head name the --service whose log it is from.")
    expected = _parsed(head) if head is not None else None

    async def work(database: Database) -> Head | None:
        found = await audit.verify(database, since)
        if expected is not None and not await audit.holds(database, expected):
            raise BrokenChain(f"{head} is not there any more")
        return found

    results: list[dict[str, Any]] = []
    for name in _services(service):
        try:
            found = with_database(name, work)
            results.append({"service": name, "whole": True, "head": str(found) if found else None})
        except BrokenChain as broken:
            results.append({"service": name, "whole": False, "broken": str(broken)})
    if json:
        print_json({"audits": results})
    else:
        for result in results:
            state = "is whole" if result["whole"] else f"[red]is broken[/]: {result['broken']}"
            console().print(f"{result['service']} {state}  {result.get('head') or ''}".rstrip())
    return 0 if all(result["whole"] for result in results) else 1


@app.command
def export(service: str, /, *, since: date | None = None, json: Flag = False) -> int:
    """Print the audit of a service, one JSON document a line, the oldest first.

    Args:
        service: Whose audit.
        since: From this day on (UTC).
        json: Print one JSON document with all of it.
    """
    [name] = _services(service)

    found: list[dict[str, Any]] = []

    async def work(database: Database) -> None:
        async for row in audit.read(database, since):
            if json:
                found.append(_document(row))
            else:
                sys.stdout.write(encode(_document(row)).decode() + "\n")

    with_database(name, work)
    if json:
        print_json({"service": name, "rows": found})
    return 0


def _document(row: Row) -> dict[str, Any]:
    return {
        "day": row.day,
        "number": row.number,
        "hash": row.hash.hex(),
        "entry": msgspec.Raw(row.entry.encode()),
    }


def _services(service: str | None) -> tuple[str, ...]:
    if service is None:
        known = tuple(name for name in SERVICES if is_set(database_variable(name)))
        return known or SERVICES
    if service not in SERVICES:
        raise OperatorError(f"A service is one of {', '.join(SERVICES)}.")
    return (service,)


def _parsed(head: str) -> Head:
    day, _, rest = head.partition(":")
    number, _, hash_ = rest.partition(":")
    try:
        return Head(date.fromisoformat(day), int(number), bytes.fromhex(hash_))
    except ValueError:
        raise OperatorError("--head is day:number:hash, as it was logged.") from None


def operator_name() -> str:
    """The user who runs this command, as the system knows it: not what the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have no name
        return f"uid {os.getuid()}"
