"""Wire policies."""

from libs.contracts.operating import wire_policies as o
from services.console.declarations import ListPage, Subject
from services.console.values import CUSTOMERS

LIST = ListPage(
    path="/wire-policies",
    title="Wire policies",
    about="The limits of customers' wires, and from when on they wait for approval, as their partners have set them.",
    operation=o.LIST_WIRE_POLICIES,
    columns=(
        "customer_id",
        "tenant",
        "per_wire_limit",
        "daily_limit",
        "daily_count",
        "approval_threshold",
        "new_payee_hours",
        "updated_at",
    ),
    one=f"{CUSTOMERS}/{{customer_id}}",
    sorted_by="updated_at",
)

SUBJECT = Subject(LIST)
