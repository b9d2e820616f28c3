"""`bankside restores …`: databases that went back behind what providers hold of ours."""

from __future__ import annotations

from cyclopts import App

from libs.cli.decisions import Flag, reason_of
from libs.cli.output import console, print_json
from libs.cli.pages import tell_unreachable
from libs.client.operator_client import ask
from libs.contracts.operating import restores as contract
from libs.contracts.operating.restores import Service

app = App(
    name="restores",
    help="Databases that were restored, or failed over, behind what providers hold of ours.",
)


@app.command(name="list")
def list_restores(*, json: Flag = False) -> int:
    """List what providers hold and a service's database lacked. Until that case is closed, each first send asks first.

    Such as `bankside restores list`.

    Args:
        json: Print one JSON document.
    """
    found = ask(contract.LIST_RESTORES, contract.ListRestoresOf())
    cases = {
        service: [case for case in found.restores if case.service == service]
        for service in found.services
    }
    if json:
        print_json(
            {
                service: [
                    {"since": case.since, "missing_records": case.missing_records} for case in of
                ]
                for service, of in cases.items()
            }
        )
        return tell_unreachable(found.unreachable)
    out = console()
    for service, of in cases.items():
        out.print(f"[bold]{service}[/]: {'went back' if of else 'nothing is missing'}")
        for case in of:
            out.print(f"  since {case.since:%Y-%m-%d %H:%M:%S}Z")
            for missing in case.missing_records:
                out.print(f"    {missing}", markup=False)
            if case.missing > len(case.missing_records):
                out.print(f"    and {case.missing - len(case.missing_records)} more")
    return tell_unreachable(found.unreachable)


@app.command
def declare(service: Service, /, *, reason: str, json: Flag = False) -> int:
    """Say that a service's database was restored: from now on each first send asks the provider first.

    Such as `bankside restores declare payments --reason "restored to 14:05 UTC"`.

    Args:
        service: Whose database.
        reason: What was done.
        json: Print one JSON document.
    """
    ask(
        contract.DECLARE_RESTORE,
        contract.DecideOnRestoreOf(service=service, reason=reason_of(reason)),
    )
    if json:
        print_json({"service": service, "declared": True})
    else:
        console().print(f"{service} asks providers before each first send, until it is closed.")
    return 0


@app.command
def close(service: Service, /, *, reason: str, json: Flag = False) -> int:
    """Say that what was missing in all open cases has been seen to: first sends are sent at once again.

    Such as `bankside restores close payments --reason "all differences are explained"`.

    Args:
        service: Whose database.
        reason: What was found.
        json: Print one JSON document.
    """
    decided = ask(
        contract.CLOSE_RESTORES,
        contract.CloseRestoresOf(service=service, reason=reason_of(reason)),
    )
    if json:
        print_json({"service": service, "closed": True})
    else:
        cases = "1 case is" if decided.closed == 1 else f"{decided.closed} cases are"
        console().print(f"{cases} closed: {service} sends at once again.")
    return 0
