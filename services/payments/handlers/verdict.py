"""What core banking said to a wire, and what its sender is told."""

from __future__ import annotations

from dataclasses import dataclass

from libs.contracts import errors as e
from libs.contracts.result import Result
from libs.contracts.wires import WireState
from libs.providers.errors import NO_DECISION, ProviderRefusal
from services.payments.models import WireRecord
from services.payments.views import wire_result

REFUSALS: dict[str, type[e.BanksideError]] = {
    error.code: error
    for error in (
        e.AccountClosed,
        e.AccountRestricted,
        e.ExternalAccountNotLinked,
        e.InsufficientFunds,
    )
}
"""By the provider's code, which is also ours; any other is ProviderRefused."""

NOT_OF_THE_WIRE = frozenset({"idempotency_key_reused", "duplicate_transaction"})
"""The provider has something under the wire's key or id already: no word on whether that was refused."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Accepted, unless there is a refusal's code."""

    refusal_code: str | None = None

    @property
    def accepted(self) -> bool:
        return self.refusal_code is None

    @property
    def state(self) -> WireState:
        return WireState.SUBMITTED if self.accepted else WireState.REJECTED


def is_decision(refusal: ProviderRefusal) -> bool:
    """Whether it is a no to the wire, rather than to the way in which it was asked."""
    return refusal.status not in NO_DECISION and refusal.code not in NOT_OF_THE_WIRE


def told(wire: WireRecord) -> Result:
    """The final answer to whoever sent the wire: whether it was accepted, whatever became of it since.

    Raises:
        Conflict: it was refused, or canceled before it was sent.
    """
    if wire.was_accepted:
        return Result(data=wire_result(wire))
    if wire.state is WireState.CANCELED:
        raise e.InvalidState("The wire was canceled before it was sent.")
    raise REFUSALS.get(wire.reason or "", e.ProviderRefused)
