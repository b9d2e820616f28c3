"""Differences between our books and the providers', and the runs that find them."""

from typing import Any

from libs.contracts.operating import differences as o
from services.console.declarations import Action, DetailPage, ListPage, Subject
from services.console.values import Links, page_of, read


def _is_open(difference: Any) -> bool:
    return difference.closed_at is None


def _has_numbers(difference: Any) -> bool:
    return any("account_number" in (side or {}) for side in (difference.ours, difference.theirs))


def _links(difference: o.OperatorDifference) -> Links:
    """The subject leads where its id does. What is not here leads nowhere: the record itself where a provider alone has
    it, and a customer of whom no tenant is known.
    """
    links: dict[str, str | None] = {}
    ids = read(difference, "ids") or {}
    if "tenant" not in ids:
        links["customer_id"] = None
    is_here = read(difference, "ours") is not None and not difference.kind.endswith(
        "_unknown_to_us"
    )
    for name in [name for name, value in ids.items() if value == difference.subject]:
        if is_here:
            links["subject"] = page_of(name, difference.subject)
        else:
            links[name] = None
    return links


RECONCILE = Action(
    title="Reconcile now",
    path="/reconciliation/start",
    operation=o.START_RECONCILIATION,
    effect="Compares all books once more from fresh data. It changes none of them. `Read postings again`, after the"
    " provider was restored, forgets the sums of postings and of deposit loads, and reads all from the first one on.",
    done="A run is requested.",
)
EXPLAIN = Action(
    title="Explain",
    path="/differences/{difference_id}/explain",
    operation=o.EXPLAIN_DIFFERENCE,
    effect="Closes the difference with your reason, which says why both sides may differ. It is opened again when"
    " a run finds it changed; a balance, when it is off by another amount. It is not closed when a run has found it"
    " otherwise than it is shown here. No book is changed.",
    done="The difference is explained.",
    seen=("revision",),
    when=_is_open,
)

REVEAL = Action(
    title="Reveal account numbers",
    path="/differences/{difference_id}/reveal",
    operation=o.REVEAL_DIFFERENCE,
    effect="Shows the account numbers of both sides in full, once. That you have seen them stands in the audit.",
    done="The numbers were revealed, and that is in the audit.",
    when=_has_numbers,
    shown=("ours", "theirs"),
)

LIST = ListPage(
    path="/differences",
    title="Differences",
    about="What differs between our books and the providers'. One stays open until it is explained or disappears.",
    operation=o.LIST_DIFFERENCES,
    columns=(
        "difference_id",
        "kind",
        "comparison",
        "subject",
        "first_seen",
        "last_seen",
        "closed_as",
    ),
    one="/differences/{difference_id}",
    sorted_by="first_seen",
    links=_links,
    each=(EXPLAIN,),
)
DETAIL = DetailPage(
    path="/differences/{difference_id}",
    title="Difference",
    operation=o.GET_DIFFERENCE,
    name="difference_id",
    parent=LIST,
    two_sides=("ours", "theirs"),
    sides=("Here", "At the provider"),
    links=_links,
    actions=(EXPLAIN, REVEAL),
)
RUNS = ListPage(
    path="/reconciliation",
    title="Reconciliation",
    about="The runs that compare all books.",
    operation=o.LIST_RUNS,
    columns=(
        "run_id",
        "state",
        "cause",
        "requested_at",
        "finished_at",
        "looked_at",
        "in_flight",
        "differing",
    ),
    sorted_by="requested_at",
    make=(RECONCILE,),
)

SUBJECT = Subject(LIST, (DETAIL,))
RUNS_SUBJECT = Subject(RUNS)
