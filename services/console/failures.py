"""What an operator reads when something did not work: one sentence, never a trace."""

from __future__ import annotations

from libs.contracts.errors import (
    BanksideError,
    InsufficientRole,
    Invalid,
    NotFound,
    OutcomePending,
    ProviderTimeout,
    RateLimited,
    TimestampOutOfWindow,
    Unauthenticated,
    Unavailable,
    WrongRouteFamily,
)
from libs.contracts.model import Command
from services.console.forms import WrongValues, problems_of

NO_ANSWER = "No answer came in time, so it may have been done"
"""How a sentence about a change of unknown outcome begins."""


def sentence(error: BanksideError) -> str:
    """What happened, and what to do about it where the operator can."""
    match error:
        case NotFound():
            return "There is nothing of this name, or it is not kept any more."
        case InsufficientRole():
            return "Your role may not do this."
        case TimestampOutOfWindow():
            return (
                "The gateway refuses the time of the console's clock: an administrator sets the clocks of both."
                " `clock_refused` in the console's log says how far they differ."
            )
        case Unauthenticated() | WrongRouteFamily():
            return (
                "The gateway refuses the console's own key: an administrator checks BANKSIDE_CONSOLE_OPERATOR_KEY and"
                " _SECRET, and `console_not_registered` in the gateway's log."
            )
        case OutcomePending():
            return f"{NO_ANSWER}: look before you repeat it."
        case ProviderTimeout():
            return "The service did not answer in time."
        case Unavailable():
            return f"The service cannot be reached. {error.detail}"
        case RateLimited():
            seconds = error.headers.get("Retry-After")
            return (
                f"Too many requests: try again in {seconds} s." if seconds else "Too many requests."
            )
        case Invalid():
            return "The gateway does not take these values."
        case _:
            return error.detail


def does_not_answer(service: str) -> str:
    """Of one of the services that an answer is gathered from."""
    return f"{service} does not answer: what it has is missing here."


def wrong_values(command: type[Command], error: Invalid) -> WrongValues:
    """The gateway's refusal of values, by field."""
    return WrongValues(problems_of(command, error.errors, skip=1))
