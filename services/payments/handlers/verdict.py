"""What the sender of a wire is told of it."""

from __future__ import annotations

from libs.contracts import errors as e
from libs.contracts.result import Result
from libs.contracts.wires import WireState
from libs.providers.outcomes import Reason, Refused
from services.payments.models import WireRecord
from services.payments.reasons import one_line
from services.payments.views import wire_result

REFUSALS: dict[str, type[e.BanksideError]] = {
    Reason.ACCOUNT_CLOSED: e.AccountClosed,
    Reason.ACCOUNT_RESTRICTED: e.AccountRestricted,
    Reason.EXTERNAL_ACCOUNT_NOT_LINKED: e.ExternalAccountNotLinked,
    Reason.INSUFFICIENT_FUNDS: e.InsufficientFunds,
}
"""By the reason that stands in the wire's history; any other is ProviderRefused."""


def reason_of(refused: Refused) -> str:
    """What the history of a wire gives as the reason of a refusal: ours, or the bank's code where we have none."""
    if refused.reason is Reason.PROVIDER_REFUSED:
        return one_line(refused.code)
    return refused.reason.value


def verdict_reply(wire: WireRecord) -> Result:
    """The final answer to the caller that sent the wire: whether it was accepted, also if it was returned since.

    Raises:
        Conflict: it was refused, or canceled before it was sent.
    """
    if wire.was_accepted:
        return Result(data=wire_result(wire))
    if wire.state is WireState.CANCELED:
        raise e.InvalidState("The wire was canceled before it was sent.")
    raise REFUSALS.get(wire.reason or "", e.ProviderRefused)
