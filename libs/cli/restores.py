"""`bankside restores …`: databases that went back behind what providers hold of ours."""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import App

from libs.cli.decisions import (
    Flag,
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import console, print_json
from libs.cli.pages import tell_unreachable
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.operating import restores as contract
from libs.contracts.operating.restores import Restore, Service

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
                    {
                        "since": case.since,
                        "missing": case.missing,
                        "missing_records": case.missing_records,
                    }
                    for case in of
                ]
                for service, of in cases.items()
            }
        )
        return tell_unreachable(found.unreachable)
    for service, of in cases.items():
        _show(service, of)
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
def close(service: Service, /, *, reason: str, yes: Flag = False, json: Flag = False) -> int:
    """Say that what was missing in all open cases has been seen to: first sends are sent at once again.

    Payments sends the wires that it held back, for good: cancel those that were canceled in the lost time first
    (`bankside wires list --state pending_submission`). The cases are shown before it asks. Where more is missing by the
    time of the answer, none is closed.

    Such as `bankside restores close payments --reason "all differences are explained"`.

    Args:
        service: Whose database.
        reason: What was found.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    why = reason_of(reason)
    refuse_to_ask_in_json(yes=yes, json=json)
    cases = _open_cases(service)
    if not yes:
        require_terminal()
    if not json:
        _show(service, cases)
    if not yes and not agrees(_question(service)):
        console().print("Nothing was done.")
        return 1

    decided = ask(
        contract.CLOSE_RESTORES,
        contract.CloseRestoresOf(
            service=service, reason=why, missing=sum(case.missing for case in cases)
        ),
    )
    if json:
        print_json({"service": service, "closed": True})
    else:
        closed = "1 case is" if decided.closed == 1 else f"{decided.closed} cases are"
        console().print(f"{closed} closed: {service} sends at once again.")
    return 0


def _open_cases(service: Service) -> Sequence[Restore]:
    """Raises OperatorError: there is none, or the service does not answer."""
    found = ask(contract.LIST_RESTORES, contract.ListRestoresOf(service=service))
    if service in found.unreachable:
        raise OperatorError(f"{service} does not answer: its cases are not known. None is closed.")
    if not found.restores:
        raise OperatorError(f"Nothing is missing from the database of {service}.")
    return found.restores


def _question(service: Service) -> str:
    if service == "payments":
        return "Close these, and have the wires that were held back sent, for good?"
    return "Close these, and have first sends sent at once again?"


def _show(service: str, cases: Sequence[Restore]) -> None:
    out = console()
    out.print(f"[bold]{service}[/]: {'went back' if cases else 'nothing is missing'}")
    for case in cases:
        out.print(f"  since {case.since:%Y-%m-%d %H:%M:%S}Z")
        for missing in case.missing_records:
            out.print(f"    {missing}", markup=False)
        if case.missing > len(case.missing_records):
            out.print(f"    and {case.missing - len(case.missing_records)} more")
