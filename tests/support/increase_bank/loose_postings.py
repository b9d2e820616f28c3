"""What the source of a posting says to which no transfer leads: tests book them as they like."""

from __future__ import annotations

from typing import Literal

from tests.support.increase_bank.postings import HISTORY
from tests.support.increase_bank.shapes import Json, timestamp

LooseCategory = Literal[
    "inbound_wire_transfer",
    "inbound_ach_transfer",
    "interest_payment",
    "fee_payment",
    "internal_source",
]


def loose_details(
    category: LooseCategory, amount: int, counterparty: str, account: Json, at: int
) -> Json:
    """The source's fields under its category. Amounts in it are unsigned, but for ACH.

    Args:
        at: of the posting, in microseconds.
    """
    unsigned: Json = {"amount": abs(amount)}
    match category:
        case "inbound_wire_transfer":
            return unsigned | {
                "debtor_name": counterparty,
                "description": "Inbound wire transfer",
                "transfer_id": "inbound_wire_transfer_loose00000000000000",
            }
        case "inbound_ach_transfer":
            return HISTORY | {"amount": amount, "originator_company_name": counterparty}
        case "interest_payment":
            return unsigned | {
                "accrued_on_account_id": account["id"],
                "currency": "USD",
                "period_end": timestamp(at),
                "period_start": timestamp(at),
            }
        case "fee_payment":
            return unsigned | {
                "currency": "USD",
                "fee_period_start": "2023-05-01",
                "program_id": account["program_id"],
            }
        case "internal_source":
            return unsigned | {"currency": "USD", "reason": "bank_migration"}
