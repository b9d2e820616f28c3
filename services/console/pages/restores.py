"""Databases that went back behind what providers hold."""

from libs.contracts.operating import restores as o
from services.console.declarations import Action, ListPage, Subject

CLOSE = Action(
    title="Close",
    path="/restores/close",
    operation=o.CLOSE_RESTORES,
    carries=("service",),
    effect="Says that what was missing has been seen to: the service sends at once again, without asking the provider"
    " before each first send.",
    done="The cases are closed.",
    danger=True,
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
    items="restores",
    sorted_by="",
    make=(DECLARE,),
    each=(CLOSE,),
)

SUBJECT = Subject(LIST)
