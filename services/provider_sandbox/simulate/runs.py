"""The bank's regular runs: the month's statement, the business day's sweep."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from services.provider_sandbox import sweep
from services.provider_sandbox.calendar import FIRST_DAY, LAST_DAY, Day
from services.provider_sandbox.database import Connection
from services.provider_sandbox.operations import Body, Write
from services.provider_sandbox.statements import records
from services.provider_sandbox.statements.links import Links


class Generate(Body):
    account_id: str
    year: Annotated[int, Field(ge=FIRST_DAY.year, le=LAST_DAY.year)]
    month: Annotated[int, Field(ge=1, le=12)]


class Load(Body):
    account_id: str
    load_date: Day | None = None


def generate_statement(links: Links) -> Write[Generate]:
    async def handle(connection: Connection, _: str, body: Generate) -> object:
        statement = await records.generate(connection, body.account_id, body.year, body.month)
        return records.shape_with_link(statement, links)

    return Write("generate_statement", "POST", "/simulate/statements", handle, Generate)


def load_deposits(terms: sweep.SweepTerms) -> Write[Load]:
    async def handle(connection: Connection, _: str, body: Load) -> object:
        return await sweep.load(connection, body.account_id, body.load_date, terms)

    return Write("load_deposits", "POST", "/simulate/deposit-locations", handle, Load)
