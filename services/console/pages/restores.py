"""Databases that went back behind what providers hold."""

from collections.abc import Mapping
from typing import Any

from libs.contracts.operating import restores as o
from services.console.declarations import Action, DetailPage, ListPage, Subject


def _of_service(found: o.GatheredRestores, named: Mapping[str, str]) -> Any:
    """All open cases of a service, which are decided on together."""
    if not found.restores:
        return None
    return {
        "service": named["service"],
        "missing": sum(case.missing for case in found.restores),
        "restores": found.restores,
    }


CLOSE = Action(
    title="Close all",
    path="/restores/{service}/close",
    operation=o.CLOSE_RESTORES,
    seen=("missing",),
    effect="Closes all open cases of the service, which are listed here: says that what was missing has been seen to,"
    " so that the service sends at once again, without asking the provider before each first send. Payments sends the"
    " wires that it held back: cancel those that were canceled in the lost time first. It is refused where more is"
    " missing by then.",
    done="The cases are closed.",
    danger=True,
    then="/restores",
)
DECLARE = Action(
    title="Declare a restore",
    path="/restores/declare",
    operation=o.DECLARE_RESTORE,
    effect="Says that a service's database was restored from a backup: from now on the service asks the provider before"
    " each first send whether it was sent already.",
    done="The restore is declared.",
)

LIST = ListPage(
    path="/restores",
    title="Restores",
    about="What providers hold and a service's database lacked.",
    operation=o.LIST_RESTORES,
    columns=("service", "since", "missing", "missing_records"),
    one="/restores/{service}",
    items="restores",
    sorted_by="",
    make=(DECLARE,),
    each=(CLOSE,),
)

DETAIL = DetailPage(
    path="/restores/{service}",
    title="Restores of",
    operation=o.LIST_RESTORES,
    name="service",
    parent=LIST,
    parts=("restores",),
    columns={"restores": ("since", "missing", "missing_records")},
    single=_of_service,
    actions=(CLOSE,),
)

SUBJECT = Subject(LIST, (DETAIL,))
