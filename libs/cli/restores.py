"""`bankside restores …`: databases that went back behind what providers hold of ours."""

from __future__ import annotations

from typing import Literal

from cyclopts import App

from libs.cli.audit import record
from libs.cli.database import with_database
from libs.cli.decisions import Flag, operator_of, reason_of
from libs.cli.output import console, print_json
from libs.client.errors import OperatorError
from libs.persistence import continuity
from libs.persistence.continuity import WentBack
from libs.persistence.engine import Database

Service = Literal["onboarding", "payments"]
SERVICES: tuple[Service, ...] = ("onboarding", "payments")

app = App(
    name="restores",
    help="Databases that were restored, or failed over, behind what providers hold of ours.",
)


@app.command(name="list")
def list_restores(*, json: Flag = False) -> int:
    """List what providers hold and a service's database lacked. Until that case is closed, each first send asks first.

    Args:
        json: Print one JSON document.
    """
    found = {service: with_database(service, _open_cases) for service in SERVICES}
    if json:
        print_json(
            {
                service: [
                    {"since": case.first_seen_at, "missing_records": case.missing_records}
                    for case in cases
                ]
                for service, cases in found.items()
            }
        )
        return 0
    out = console()
    for service, cases in found.items():
        out.print(f"[bold]{service}[/]: {'went back' if cases else 'nothing is missing'}")
        for case in cases:
            out.print(f"  since {case.first_seen_at:%Y-%m-%d %H:%M:%S}Z")
            for missing in case.missing_records:
                out.print(f"    {missing}", markup=False)
    return 0


@app.command
def declare(service: Service, /, *, reason: str, by: str | None = None, json: Flag = False) -> int:
    """Say that a service's database was restored: from now on each first send asks the provider first.

    Args:
        service: Whose database.
        reason: What was done.
        by: Who says so; without, the name of the user of this terminal.
        json: Print one JSON document.
    """
    operator, given = operator_of(by), reason_of(reason)
    why = f"{operator}: {given}"

    async def work(database: Database) -> None:
        async with database.transaction() as connection:
            await continuity.declare(connection, why)
            await record(connection, "restores.declare", by=operator, reason=given)

    with_database(service, work)
    if json:
        print_json({"service": service, "declared": True})
    else:
        console().print(f"{service} asks providers before each first send, until it is closed.")
    return 0


@app.command
def close(service: Service, /, *, reason: str, by: str | None = None, json: Flag = False) -> int:
    """Say that what was missing has been seen to: first sends are sent at once again.

    Args:
        service: Whose database.
        reason: What was found.
        by: Who says so; without, the name of the user of this terminal.
        json: Print one JSON document.
    """
    operator, found = operator_of(by), reason_of(reason)

    async def work(database: Database) -> int:
        async with database.transaction() as connection:
            closed = await continuity.close(connection, by=operator, reason=found)
            if closed:
                await record(connection, "restores.close", by=operator, reason=found)
            return closed

    if not with_database(service, work):
        raise OperatorError(f"Nothing is missing from the database of {service}.")
    if json:
        print_json({"service": service, "closed": True})
    else:
        console().print(f"{service} sends at once again.")
    return 0


async def _open_cases(database: Database) -> list[WentBack]:
    async with database.transaction() as connection:
        return await continuity.open_cases(connection)
