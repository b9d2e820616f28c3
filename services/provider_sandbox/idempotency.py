"""One effect per key: the record of a request is written in the transaction of what the request did.

A second request with the key waits at the record's row until the first has committed or failed, so of any number at
once exactly one runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import canonical, encode, stored
from services.provider_sandbox.operations import Api, NoQuery, Read, Refusal


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

    @property
    def fingerprint(self) -> bytes:
        return hashlib.sha256(canonical([self.path, self.content])).digest()


async def answer_once(
    connection: Connection, request: Request, run: Callable[[], Awaitable[object]]
) -> Answer:
    """Run, or give the answer that the key got before. A refusal is kept as an answer, without what led to it.

    The connection is in a transaction; when that is rolled back, the key is as if it had never come.
    """
    first = await connection.fetchval(
        "INSERT INTO idempotency_record (api, key, operation, fingerprint) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT DO NOTHING RETURNING true",
        request.api,
        request.key,
        request.operation,
        request.fingerprint,
    )
    if not first:
        return await _replay(connection, request)
    try:
        async with connection.transaction():
            answer = Answer(200, encode(await run()))
    except Refusal as refusal:
        answer = Answer(refusal.status, encode(refusal.body))
    await connection.execute(
        "UPDATE idempotency_record SET status = $3, body = $4 WHERE api = $1 AND key = $2",
        request.api,
        request.key,
        answer.status,
        answer.body.decode(),
    )
    return answer


async def _replay(connection: Connection, request: Request) -> Answer:
    row = await connection.fetchrow(
        "SELECT operation, fingerprint, status, body FROM idempotency_record"
        " WHERE api = $1 AND key = $2",
        request.api,
        request.key,
    )
    if row is None or (row["operation"], row["fingerprint"]) != (
        request.operation,
        request.fingerprint,
    ):
        raise Refusal(
            409, "idempotency_key_reused", "The key was used for another request; take a new one."
        )
    return Answer(row["status"], row["body"].encode(), replayed=True)


def get_operation(api: Api) -> Read[NoQuery]:
    """What became of a key: how a caller resolves an unknown outcome."""

    async def handle(connection: Connection, key: str, _: NoQuery) -> object:
        row = await connection.fetchrow(
            "SELECT operation, status, body FROM idempotency_record WHERE api = $1 AND key = $2",
            api,
            key,
        )
        if row is None:
            raise Refusal(404, "unknown_key", "No operation with this key has taken place.")
        return {
            "operation": row["operation"],
            "status": row["status"],
            "body": stored(row["body"]),
        }

    return Read("get_operation", "/operations/{id:.+}", handle, NoQuery)
