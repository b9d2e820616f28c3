"""Commands that services have accepted and not finished."""

from typing import Any

from libs.contracts.operating import commands as o
from libs.contracts.operating.requests import TRACE_REQUEST, TraceStep
from services.console.declarations import Action, DetailPage, ListPage, Subject, filled
from services.console.pages.webhooks import ONE_DELIVERY
from services.console.values import NO_LINKS, Links, audit_of


def _is_parked(command: Any) -> bool:
    return command.parked_at is not None


def _links(shown: Any) -> Links:
    """Of a step. A command has a page until it is final, and the keys of operators have none."""
    if not isinstance(shown, TraceStep):
        return NO_LINKS
    is_open = shown.state in ("open", "parked")
    links = {"command_id": filled("/commands/{command_id}", shown) if is_open else None}
    if shown.delivery_id and shown.subscription_id:
        links["delivery_id"] = filled(ONE_DELIVERY, shown)
    if shown.actor is not None:
        links["actor"] = audit_of(shown.service, shown.actor)
        if shown.actor.startswith("operator:"):
            links["subscription_key"] = None
    return links


RETRY = Action(
    title="Retry",
    path="/commands/{command_id}/retry",
    operation=o.RETRY_COMMAND,
    carries=("service",),
    effect="Has the command driven now. Of those that must be in order it becomes the last.",
    done="The command is driven.",
    # Not the page of the command, which it has no more once it has succeeded.
    then="/commands",
)
ABANDON = Action(
    title="Abandon",
    path="/commands/{command_id}/abandon",
    operation=o.ABANDON_COMMAND,
    carries=("service",),
    effect="Ends a parked command for good: it is never carried out, a request that repeats it is answered `abandoned`,"
    " and nothing is taken back at a provider. It is refused while the outcome of a step or a wire is not known, for an"
    " onboarding whose customer is pending, for a decision that has begun to open its customer, and for a wire that is"
    " pending.",
    done="The command is abandoned.",
    when=_is_parked,
    danger=True,
    then="/commands",
)

LIST = ListPage(
    path="/commands",
    title="Commands",
    about="Commands that are accepted and not finished. Parked ones wait for a person.",
    operation=o.LIST_COMMANDS,
    columns=(
        "command_id",
        "service",
        "operation",
        "tenant",
        "attempts",
        "last_error",
        "accepted_at",
        "parked_at",
        "parked_because",
    ),
    one="/commands/{command_id}?service={service}",
    sorted_by="accepted_at",
    sorted_when={"state=parked": "parked_at"},
    each=(RETRY, ABANDON),
)
DETAIL = DetailPage(
    path="/commands/{command_id}",
    title="Command",
    operation=o.GET_COMMAND,
    name="command_id",
    parent=LIST,
    actions=(RETRY, ABANDON),
)
REQUEST = DetailPage(
    path="/requests/{request_id}",
    title="Request",
    operation=TRACE_REQUEST,
    name="request_id",
    parent=LIST,
    parts=("steps",),
    timeline=("steps",),
    links=_links,
)

SUBJECT = Subject(LIST, (DETAIL, REQUEST))
