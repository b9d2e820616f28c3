"""One effect per key: the record of a request is written in the transaction of what the request did.

A second request with the key waits at the record's row until the first has committed or failed, so of any number at
once exactly one has an effect. An API may forget keys after a time: then a key is as if it had never come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from libs.runtime.crash import crash_point
from services.provider_sandbox.database import Connection, Database, Row
from services.provider_sandbox.encoding import canonical, encode, stored
from services.provider_sandbox.operations import Api, OfCaller, Read, Refusal

_CLAIM = """
    INSERT INTO idempotency_record AS known (api, key, operation, fingerprint)
    SELECT $1, sent.* FROM unnest($2::text[], $3::text[], $4::bytea[]) AS sent
    ON CONFLICT (api, key) DO UPDATE SET operation = excluded.operation,
        fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = now()
    WHERE known.created_at <= clock_timestamp() - $5::interval
    RETURNING key
"""
# `LIMIT cardinality($2)`: one plan for all calls, which finds each record by its key.
_KEEP = """
    UPDATE idempotency_record r SET status = a.status, body = a.body
    FROM (
        SELECT * FROM unnest($2::text[], $3::integer[], $4::text[]) AS a (key, status, body) LIMIT cardinality($2)
    ) AS a
    WHERE r.api = $1 AND r.key = a.key
    """
_FORGET = "DELETE FROM idempotency_record WHERE api = $1 AND key = ANY($2)"
_RECORDS = """
    SELECT key, operation, fingerprint, status, body FROM idempotency_record
    WHERE api = $1 AND key = ANY($2)
"""
_OPERATION = """
    SELECT operation, status, body FROM idempotency_record WHERE api = $1 AND key = $2 AND operation = ANY($4)
        AND ($3::interval IS NULL OR created_at > clock_timestamp() - $3)
"""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    replayed: bool = False


@dataclass(frozen=True)
class Request:
    """What the key stands for. `content` is the decoded body, `path` the path as it was asked."""

    api: Api
    key: str
    operation: str
    path: str
    content: object
    remembered: timedelta | None = None
    """How long the API knows a key; None: for ever."""

    @property
    def fingerprint(self) -> bytes:
        return hashlib.sha256(canonical([self.path, self.content])).digest()


class _Refused(Exception):
    """Rolls back what led to a refusal that the key keeps."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.answer = _kept(refusal)


async def answer_once(
    database: Database, request: Request, run: Callable[[Connection], Awaitable[object]]
) -> Answer:
    """Run in a transaction, or give the answer that the key got before.

    A refusal is kept as an answer, in a transaction of its own after that of the run was rolled back. A request with
    the key that ran in between decides what the answer is.
    """

    async def carry_out(connection: Connection) -> Answer:
        try:
            return Answer(200, encode(await run(connection)))
        except Refusal as refusal:
            if not refusal.kept:
                raise
            raise _Refused(refusal) from refusal

    try:
        return await _answer(database, request, carry_out)
    except _Refused as refused:
        answer = refused.answer

    async def refuse(_: Connection) -> Answer:
        return answer

    return await _answer(database, request, refuse)


async def _answer(
    database: Database, request: Request, say: Callable[[Connection], Awaitable[Answer]]
) -> Answer:
    async with database.transaction() as connection:
        if not await _claim(connection, [request]):
            return _replay(request, (await _records(connection, [request])).get(request.key))
        answer = await say(connection)
        await _keep(connection, request.api, {request.key: answer})
        crash_point("sandbox.uncommitted")
    crash_point("sandbox.committed")
    return answer


async def answer_all_once(
    connection: Connection,
    requests: Sequence[Request],
    run: Callable[[Sequence[str]], Awaitable[Sequence[object]]],
) -> list[Answer | Refusal]:
    """As `answer_once`, for several requests to one API; a refusal in the result is one that the key does not keep.

    `run` gets the keys that are new, in the order in which they came, and gives for each the body of its answer or a
    Refusal that has changed nothing. Keys are claimed before anything else is locked, and in their own order.
    """
    api = requests[0].api
    first: dict[str, Request] = {}
    for request in requests:
        first.setdefault(request.key, request)
    claimed = await _claim(connection, list(first.values()))
    new = [key for key in first if key in claimed]
    results = await run(new) if new else []
    outcomes = {key: _outcome(result) for key, result in zip(new, results, strict=True)}
    await _keep(connection, api, {k: o for k, o in outcomes.items() if isinstance(o, Answer)})
    await _forget(connection, api, [k for k, o in outcomes.items() if isinstance(o, Refusal)])
    rest = [r for r in requests if r.key not in outcomes or r is not first[r.key]]
    records = await _records(connection, rest) if rest else {}

    def answer(request: Request) -> Answer | Refusal:
        outcome = outcomes.get(request.key)
        if isinstance(outcome, Refusal):
            return outcome
        if outcome is not None and request is first[request.key]:
            return outcome
        try:
            return _replay(request, records.get(request.key))
        except Refusal as refusal:
            return refusal

    return [answer(request) for request in requests]


def _outcome(result: object) -> Answer | Refusal:
    if isinstance(result, Refusal):
        return _kept(result) if result.kept else result
    return Answer(200, encode(result))


def _kept(refusal: Refusal) -> Answer:
    return Answer(refusal.status, encode(refusal.body))


async def _claim(connection: Connection, requests: Sequence[Request]) -> set[str]:
    """The keys that are new, or forgotten, and from now on these requests'. They go to one API, each key once."""
    requests = sorted(requests, key=lambda request: request.key)
    rows = await connection.fetch(
        _CLAIM,
        requests[0].api,
        [request.key for request in requests],
        [request.operation for request in requests],
        [request.fingerprint for request in requests],
        requests[0].remembered,
    )
    return {row["key"] for row in rows}


async def _keep(connection: Connection, api: Api, answers: dict[str, Answer]) -> None:
    await connection.execute(
        _KEEP,
        api,
        list(answers),
        [answer.status for answer in answers.values()],
        [answer.body.decode() for answer in answers.values()],
    )


async def _forget(connection: Connection, api: Api, keys: Sequence[str]) -> None:
    if keys:
        await connection.execute(_FORGET, api, keys)


async def _records(connection: Connection, requests: Sequence[Request]) -> dict[str, Row]:
    rows = await connection.fetch(
        _RECORDS,
        requests[0].api,
        [request.key for request in requests],
    )
    return {row["key"]: row for row in rows}


def _replay(request: Request, record: Row | None) -> Answer:
    if record is None or (record["operation"], record["fingerprint"]) != (
        request.operation,
        request.fingerprint,
    ):
        raise Refusal(
            409, "idempotency_key_reused", "The key was used for another request; take a new one."
        )
    return Answer(record["status"], record["body"].encode(), replayed=True)


def get_operation(api: Api, remembered: timedelta | None = None) -> Read[OfCaller]:
    """What became of a key: how a caller resolves an unknown outcome. Of each operation there is one caller."""

    async def handle(connection: Connection, key: str, caller: OfCaller) -> object:
        row = await connection.fetchrow(
            _OPERATION,
            api,
            key,
            remembered,
            list(caller.operations),
        )
        if row is None:
            raise Refusal(404, "unknown_key", "No operation with this key has taken place.")
        return {
            "operation": row["operation"],
            "status": row["status"],
            "body": stored(row["body"]),
        }

    return Read("get_operation", "/operations/{id:.+}", handle, OfCaller)
