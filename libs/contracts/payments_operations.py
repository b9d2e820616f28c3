"""The rows of payments: wires."""

from http import HTTPMethod

from libs.contracts import errors as e
from libs.contracts import reconciliation as r
from libs.contracts import wire_policies, wires
from libs.contracts.operation import Operation, PageInfo, RateClass, Resource, declared_in
from libs.contracts.principal import Scope

SEND_WIRE = Operation(
    name="payments.send_wire",
    method=HTTPMethod.POST,
    path="/customer/wire",
    resource=Resource.WIRES,
    scope=Scope.WIRES_WRITE,
    command=wires.SendWire,
    reply=wires.WireResult,
    message="Wire submitted",
    errors=(
        e.NotFound,
        e.AccountClosed,
        e.AccountRestricted,
        e.ExternalAccountNotLinked,
        e.InsufficientFunds,
        e.InvalidState,
        e.LimitExceeded,
        e.ProviderRefused,
    ),
    summary="Send money from an account to a linked external account",
    rate=RateClass.WIRE,
    pending_id="transaction_id",
)
LIST_WIRES = Operation(
    name="payments.list_wires",
    method=HTTPMethod.GET,
    path="/customer/wires",
    resource=Resource.WIRES,
    scope=Scope.WIRES_READ,
    command=wires.ListWires,
    reply=list[wires.Wire],
    pagination=PageInfo,
    costly=True,
    message="Wires found",
    summary="List the customer's wires, newest first",
    extension=True,
)
GET_WIRE = Operation(
    name="payments.get_wire",
    method=HTTPMethod.GET,
    path="/customer/wires/{transaction_id}",
    resource=Resource.WIRES,
    scope=Scope.WIRES_READ,
    command=wires.GetWire,
    reply=wires.Wire,
    message="Wire found",
    errors=(e.NotFound,),
    summary="Get a wire: its state and how it came there",
    extension=True,
)
CANCEL_WIRE = Operation(
    name="payments.cancel_wire",
    method=HTTPMethod.POST,
    path="/customer/wires/{transaction_id}/cancel",
    resource=Resource.WIRES,
    scope=Scope.WIRES_WRITE,
    command=wires.CancelWire,
    reply=wires.Wire,
    message="Wire canceled",
    errors=(e.NotFound, e.InvalidState),
    summary="Cancel a wire of which no send has begun",
    extension=True,
    pending_id="transaction_id",
)
APPROVE_WIRE = Operation(
    name="payments.approve_wire",
    method=HTTPMethod.POST,
    path="/customer/wires/{transaction_id}/approve",
    resource=Resource.WIRES,
    scope=Scope.WIRES_APPROVE,
    command=wires.ApproveWire,
    reply=wires.WireResult,
    message="Wire submitted",
    errors=(
        e.ApproverIsInitiator,
        e.NotFound,
        e.AccountClosed,
        e.AccountRestricted,
        e.ExternalAccountNotLinked,
        e.InsufficientFunds,
        e.InvalidState,
        e.LimitExceeded,
        e.ProviderRefused,
    ),
    summary="Approve a wire that waits for it, and send it",
    rate=RateClass.WIRE,
    pending_id="transaction_id",
    extension=True,
)
DECLINE_WIRE = Operation(
    name="payments.decline_wire",
    method=HTTPMethod.POST,
    path="/customer/wires/{transaction_id}/decline",
    resource=Resource.WIRES,
    scope=Scope.WIRES_APPROVE,
    command=wires.DeclineWire,
    reply=wires.Wire,
    message="Wire declined",
    errors=(e.ApproverIsInitiator, e.NotFound, e.InvalidState),
    summary="Decline a wire that waits for approval",
    extension=True,
    pending_id="transaction_id",
)
GET_WIRE_POLICY = Operation(
    name="payments.get_wire_policy",
    method=HTTPMethod.GET,
    path="/partner/reseller/customers/{customer_id}/wire-policy",
    resource=Resource.POLICIES,
    scope=Scope.CUSTOMERS_READ,
    command=wire_policies.GetWirePolicy,
    reply=wire_policies.WirePolicy,
    message="Wire policy found",
    errors=(e.NotFound,),
    summary="Get the wire policy of a customer",
    extension=True,
)
SET_WIRE_POLICY = Operation(
    name="payments.set_wire_policy",
    method=HTTPMethod.PUT,
    path="/partner/reseller/customers/{customer_id}/wire-policy",
    resource=Resource.POLICIES,
    scope=Scope.POLICIES_WRITE,
    command=wire_policies.SetWirePolicy,
    reply=wire_policies.WirePolicy,
    message="Wire policy set",
    errors=(e.NotFound,),
    summary="Set the limits of a customer's wires, and which of them wait for approval",
    extension=True,
)
GET_OWN_WIRE_POLICY = Operation(
    name="payments.get_own_wire_policy",
    method=HTTPMethod.GET,
    path="/customer/wire-policy",
    resource=Resource.POLICIES,
    scope=Scope.WIRES_READ,
    command=wire_policies.GetOwnWirePolicy,
    reply=wire_policies.WirePolicy,
    message="Wire policy found",
    summary="Get the policy of one's own wires",
    extension=True,
)

PAGE_RECORDED_WIRES = Operation(
    name="payments.page_held_wires",
    command=r.PageAfter,
    asked_by=("reconciliation",),
    reply=r.RecordedWires,
    summary="Wires of all tenants, page by page",
)
FIND_RECORDED_WIRES = Operation(
    name="payments.find_held_wires",
    command=r.FindByIds,
    asked_by=("reconciliation",),
    reply=r.RecordedWires,
    summary="Wires of any tenant by their ids",
)
PAGE_CONTRADICTIONS = Operation(
    name="payments.page_contradictions",
    command=r.PageContradictions,
    asked_by=("reconciliation",),
    reply=r.Contradictions,
    summary="What core banking reported that the records of wires do not allow",
)
FIND_CONTRADICTIONS = Operation(
    name="payments.find_contradictions",
    command=r.FindByIds,
    asked_by=("reconciliation",),
    reply=r.Contradictions,
    summary="Contradictions by their ids",
)
LIST_FEED_POSITIONS = Operation(
    name="payments.list_feed_positions",
    command=r.ListFeedPositions,
    asked_by=("reconciliation",),
    reply=r.FeedPositions,
    summary="How far each feed was applied",
)

OPERATIONS = declared_in(globals(), Operation)
