"""Customers, their applications, and the steps of these at providers."""

from collections.abc import Mapping
from typing import Any

from libs.contracts.operating import customers as o
from libs.contracts.operating import saga_steps
from services.console.declarations import Action, DetailPage, ListPage, Panel, Subject, filled
from services.console.pages import wire_policies, wires
from services.console.values import CUSTOMERS, NO_LINKS, Links

ONE = f"{CUSTOMERS}/{{customer_id}}"
ONE_STEP = "/saga-steps/{saga_id}/{step}"

LIST = ListPage(
    path=CUSTOMERS,
    title="Customers",
    about="Applications and customers of all tenants, by status. `Stuck` are those with a step that does not go on.",
    operation=o.LIST_CUSTOMERS,
    columns=(
        "customer_id",
        "business_name",
        "status",
        "tenant",
        "dba",
        "created_at",
        "updated_at",
    ),
    one=ONE,
    sorted_when={"name": ""},
)


def _can_be_resolved(step: Any) -> bool:
    """Also a step whose saga has not acted on the decision yet: another one replaces it."""
    return step.outcome_unknown or (step.state == "intended" and step.resolution is not None)


def _is_refused_compensation(step: Any) -> bool:
    return step.compensation and step.state == "refused" and step.settled_at is None


def _step(customer: o.OperatorCustomer, named: Mapping[str, str]) -> Any:
    """No operation gets one step."""
    wanted = (named["saga_id"], named["step"])
    return next((step for step in customer.steps if (step.saga_id, step.step) == wanted), None)


def _links(shown: Any) -> Links:
    """A command has a page until it is final."""
    if isinstance(shown, saga_steps.StepCommand) and shown.finished_at is None:
        return {"command_id": filled("/commands/{command_id}", shown)}
    return NO_LINKS


RESOLVE_STEP = Action(
    title="Resolve step",
    path=f"{ONE_STEP}/resolve",
    operation=saga_steps.RESOLVE_STEP,
    finds=("customer_id",),
    effect="Says what became of a write at a provider whose answer never came. `absent`: the provider has nothing of"
    " it, so it is sent again. `done` wants the provider's answer, `refused` ends it. Until it is acted on, another"
    " decision replaces this one.",
    done="The step is resolved.",
    when=_can_be_resolved,
    danger=True,
    then="/saga-steps",
)
SETTLE_STEP = Action(
    title="Settle step",
    path=f"{ONE_STEP}/settle",
    operation=saga_steps.SETTLE_STEP,
    finds=("customer_id",),
    effect="Says that a refused compensation was seen to at the provider. It is not shown as waiting any more; nothing"
    " is sent.",
    done="The compensation is settled.",
    when=_is_refused_compensation,
    then="/saga-steps",
)
REVEAL = Action(
    title="Reveal a value",
    path=f"{ONE}/reveal",
    operation=o.REVEAL,
    effect="Shows one sensitive value in full, once. That you have seen it stands in the audit. `tin` and"
    " `date_of_birth` are a person's, the account numbers an account's: name it by its id.",
    done="The value was revealed, and that is in the audit.",
    parts=("persons", "accounts", "external_bank_accounts"),
    shown=("field", "value"),
)

DETAIL = DetailPage(
    path=ONE,
    title="Customer",
    operation=o.GET_CUSTOMER,
    name="customer_id",
    parent=LIST,
    parts=("issues", "steps", "persons", "accounts", "external_bank_accounts", "business"),
    columns={
        "steps": (
            "step",
            "state",
            "outcome_unknown",
            "compensation",
            "settled_at",
            "resolution",
            "resolved_by",
            "operation",
            "refusal_reason",
            "refusal_code",
            "command.last_error",
            "intended_at",
            "first_sent_at",
            "recorded_at",
        ),
    },
    called={"persons": {"customer_id": "person_id"}, "accounts": {"id": "account_id"}},
    each={"steps": (RESOLVE_STEP, SETTLE_STEP)},
    actions=(REVEAL,),
    panels=(
        Panel(wire_policies.LIST, "Wire policy", {"customer_id": "customer_id"}),
        Panel(wires.LIST, "Wires", {"customer_id": "customer_id"}),
    ),
)
STEPS = ListPage(
    path="/saga-steps",
    title="Steps",
    about="Writes at providers that wait for a person: of unknown outcome, or refused compensations.",
    operation=saga_steps.LIST_STEPS,
    columns=(
        "step",
        "customer_id",
        "state",
        "outcome_unknown",
        "operation",
        "tenant",
        "refusal_reason",
        "first_sent_at",
        "last_asked_at",
        "recorded_at",
    ),
    one=f"{ONE_STEP}?customer_id={{customer_id}}",
    sorted_by="first_sent_at",
    sorted_when={f"kind={saga_steps.StepKind.REFUSED.value}": "recorded_at"},
    unless_chosen={"kind": saga_steps.StepKind.UNKNOWN.value},
    each=(RESOLVE_STEP, SETTLE_STEP),
)

STEP = DetailPage(
    path=ONE_STEP,
    title="Step",
    operation=o.GET_CUSTOMER,
    name="step",
    parent=STEPS,
    parts=("command",),
    links=_links,
    actions=(RESOLVE_STEP, SETTLE_STEP),
    single=_step,
)

SUBJECT = Subject(LIST, (DETAIL,))
SAGA_STEPS = Subject(STEPS, (STEP,))
