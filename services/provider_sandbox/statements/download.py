"""`GET /documents/statements/{statement_id}.pdf`: no token, the link itself is the key."""

from __future__ import annotations

import asyncio

from aiohttp import web

from services.provider_sandbox.database import Database
from services.provider_sandbox.operations import Refusal, not_found
from services.provider_sandbox.statements.links import Links

QUEUE_SECONDS = 60
"""How long a download waits while another is drawn."""

_FIND = "SELECT * FROM statement WHERE statement_id = $1"


def download_route(database: Database, links: Links) -> web.RouteDef:
    one_at_a_time = asyncio.Lock()

    async def download(request: web.Request) -> web.Response:
        # What draws takes 21 MiB and 0.2 s to load, and many a bank draws no statement.
        from services.provider_sandbox.statements.rendering import render  # noqa: PLC0415

        statement_id = request.match_info["id"]
        links.check(
            statement_id,
            request.query.get("expires", ""),
            request.query.get("signature", ""),
        )
        async with database.reading() as connection:
            statement = await connection.fetchrow(_FIND, statement_id)
        if statement is None:
            raise not_found("statement")
        try:
            async with asyncio.timeout(QUEUE_SECONDS):
                await one_at_a_time.acquire()
        except TimeoutError as error:
            raise Refusal(503, "busy", "Too many statements are being drawn.") from error
        try:
            pdf = await render(database, statement)
        finally:
            one_at_a_time.release()
        month = f"{statement['start_date']:%Y-%m}"
        return web.Response(
            body=pdf,
            content_type="application/pdf",
            headers={
                "Cache-Control": "private, no-store",
                "Content-Disposition": f'inline; filename="statement-{month}.pdf"',
                "X-Content-Type-Options": "nosniff",
            },
        )

    return web.get("/documents/statements/{id}.pdf", download, allow_head=False)
