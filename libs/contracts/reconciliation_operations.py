"""The rows of reconciliation."""

from libs.contracts import reconciliation as r
from libs.contracts.operation import Operation, declared_in

START_RUN = Operation(
    name="reconciliation.start_run",
    command=r.StartRun,
    asked_by=("onboarding", "payments"),
    reply=r.RequestedRun,
    summary="Compare everything again as soon as possible, as after a database went back",
)

OPERATIONS = declared_in(globals(), Operation)
