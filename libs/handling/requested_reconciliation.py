"""Having everything compared with the providers once this service's database was found to have gone back."""

from __future__ import annotations

import time

from libs.contracts.principal import SERVICE
from libs.contracts.reconciliation import RequestedRun, StartRun
from libs.contracts.reconciliation_operations import START_RUN
from libs.handling.asking import Asking, Asks

PATIENCE_SECONDS = 5.0


class RequestedReconciliation:
    """Asks reconciliation for a run; to be awaited until it returns."""

    def __init__(self, caller: Asks, service: str) -> None:
        self._asking = Asking(caller, patience_seconds=PATIENCE_SECONDS)
        self._cause = f"the database of {service} went back"

    async def __call__(self) -> None:
        """Raises BanksideError: reconciliation could not be asked."""
        deadline = time.time() + PATIENCE_SECONDS
        command = StartRun(cause=self._cause)
        await self._asking.ask(START_RUN, SERVICE, command, RequestedRun, deadline)
