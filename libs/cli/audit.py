"""`bankside audit …`: what was done, by whom, and whether the record of it is whole.

The chain of hashes is computed here, from the rows that the services show.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, TypeVar

import msgspec
from cyclopts import App

from libs.cli.decisions import Flag
from libs.cli.exit_status import MISTAKE, REFUSED
from libs.cli.output import console, one_line, print_json, write_json
from libs.cli.pages import LARGEST_PAGE
from libs.client.client import Client
from libs.client.errors import OperatorError
from libs.client.operator_client import mistakes_told, operating
from libs.contracts.errors import BanksideError
from libs.contracts.exact_json import NotExactJson, decode, encode
from libs.contracts.operating.audit import LIST_AUDIT, SERVICES, AuditRow, ListAuditOf, Service
from libs.contracts.operating.audit_chain import BrokenChain, Chain, Head, Row
from libs.contracts.operating.pages import Order, Place

T = TypeVar("T")

app = App(name="audit", help="The audit: verify that it is whole, export it.")


@app.command
def verify(
    *,
    service: Service | None = None,
    since: date | None = None,
    head: str | None = None,
    json: Flag = False,
) -> int:
    """Compute the audit's chain of hashes anew. Exit status 1: a row was changed, removed or put in between;
    2: none was, as far as the audits could be read, and one could not be.

    Such as `bankside audit verify --since 2026-01-01`.

    Args:
        service: Only the audit of this service; with --head it has to be named. Without, of all.
        since: From this day on (UTC), without looking at what was before.
        head: A `day:number:hash` that was logged or shown earlier: that row has to be there still.
        json: Print one JSON document; `whole` is null of an audit that could not be read.
    """
    if head is not None and service is None:
        raise OperatorError("With --head name the --service whose log it is from.")
    if since is not None and since > datetime.now(UTC).date():
        raise OperatorError(
            "Nothing is written of a later day than today: give an earlier --since."
        )
    expected = _parsed(head) if head is not None else None
    results: list[dict[str, Any]] = []
    unread: dict[str, str] = {}
    for name in (service,) if service is not None else SERVICES:

        async def work(client: Client, name: str = name) -> Head | None:
            found = await _verified(client, name, since)
            if expected is not None and not await _holds(client, name, expected):
                raise BrokenChain(f"{head} is not there any more")
            return found

        try:
            found = _run(work)
            results.append({"service": name, "whole": True, "head": str(found) if found else None})
        except BrokenChain as broken:
            results.append({"service": name, "whole": False, "broken": str(broken)})
        except OperatorError as error:
            unread[name] = str(error)
    if not results:
        raise OperatorError(" ".join(dict.fromkeys(unread.values())))
    _show(results, unread, json=json)
    if not all(result["whole"] for result in results):
        return REFUSED
    return MISTAKE if unread else 0


def _show(results: Sequence[Mapping[str, Any]], unread: Mapping[str, str], *, json: bool) -> None:
    """`unread`: why, by service."""
    if json:
        not_known = [
            {"service": name, "whole": None, "unread": why} for name, why in unread.items()
        ]
        print_json({"audits": [*results, *not_known]})
    else:
        for result in results:
            state = "is whole" if result["whole"] else f"[red]is broken[/]: {result['broken']}"
            console().print(f"{result['service']} {state}  {result.get('head') or ''}".rstrip())
    for name, why in unread.items():
        sentence = one_line(f"The audit of {name} could not be read: {why}")
        print(f"bankside: {sentence}", file=sys.stderr)


@app.command
def export(service: Service, /, *, since: date | None = None, json: Flag = False) -> int:
    """Print the audit of a service, one JSON document a line, the oldest first.

    Such as `bankside audit export gateway --since 2026-01-01 --json`.

    Args:
        service: Whose audit.
        since: From this day on (UTC).
        json: Print one JSON document with all of it.
    """
    found: list[dict[str, Any]] = []

    async def work(client: Client) -> None:
        async for row in _rows(client, service, since=since):
            document = {
                "day": row.day,
                "number": row.number,
                "hash": row.hash,
                "entry": _as_json(row.entry),
            }
            if json:
                found.append(document)
            else:
                write_json(encode(document))

    _run(work)
    if json:
        print_json({"service": service, "rows": found})
    return 0


def _as_json(entry: str) -> msgspec.Raw | str:
    """The entry as it was written, on one line. A string where the database was changed to any other text."""
    try:
        decode(entry)
    except NotExactJson:
        return entry
    return entry if re.search(r"[\n\r\t]", entry) else msgspec.Raw(entry.encode())


def _run(work: Callable[[Client], Awaitable[T]]) -> T:
    """Raises OperatorError also where a service did not answer: exit status 1 is for an audit that is not whole."""

    async def run() -> T:
        async with operating() as client:
            return await work(client)

    try:
        with mistakes_told():
            return asyncio.run(run())
    except BanksideError as error:
        raise OperatorError(error.detail) from None


async def _verified(client: Client, service: str, since: date | None) -> Head | None:
    """The head; None of an audit without rows. Raises BrokenChain."""
    before: Head | None = None
    if since is not None and since > date.min:
        earlier = _wanted(service, until=since - timedelta(days=1), order=Order.NEWEST, limit=1)
        page = (await client.call(LIST_AUDIT, earlier)).data
        before = next((_head(row) for row in page.items), None)
    chain = Chain(before, from_beginning=since is None)
    async for row in _rows(client, service, since=since):
        chain.follow(
            Row(
                row.day,
                row.number,
                row.entry,
                bytes.fromhex(row.previous),
                bytes.fromhex(row.hash),
            )
        )
    return chain.head


async def _holds(client: Client, service: str, head: Head) -> bool:
    """Whether the row is there with this hash."""
    before = Place(datetime.combine(head.day, time(), UTC), str(head.number - 1)).encode()
    wanted = _wanted(service, since=head.day, until=head.day, after=before, limit=1)
    page = (await client.call(LIST_AUDIT, wanted)).data
    return [_head(row) for row in page.items] == [head]


async def _rows(client: Client, service: str, *, since: date | None) -> AsyncIterator[AuditRow]:
    """From this day on, in the order of the chain."""
    after: str | None = None
    while True:
        page = (await client.call(LIST_AUDIT, _wanted(service, since=since, after=after))).data
        for row in page.items:
            yield row
        if page.next is None:
            return
        after = page.next


def _wanted(service: str, **wanted: Any) -> ListAuditOf:
    return ListAuditOf.model_validate(
        {"service": service, "order": Order.OLDEST, "limit": LARGEST_PAGE} | wanted
    )


def _head(row: AuditRow) -> Head:
    return Head(row.day, row.number, bytes.fromhex(row.hash))


def _parsed(head: str) -> Head:
    try:
        parsed = Head.parse(head)
    except ValueError:
        parsed = None
    if parsed is None or parsed.number < 1:
        raise OperatorError("--head is day:number:hash, as it was logged.")
    return parsed
