"""Increase's transactions as postings, by their sources."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from services.ledger_read.adapters.increase.postings import IncreasePostings
from services.ledger_read.adapters.increase.transactions import ListedTransaction


def soon() -> float:
    return time.time() + 10


async def test_a_transaction_of_a_source_that_is_not_known_yet_is_one_by_its_sign() -> None:
    postings: Any = IncreasePostings(None, None)  # type: ignore[arg-type] # nothing is read

    def listed(amount: int) -> ListedTransaction:
        source = {"category": "moon_transfer", "moon_transfer": {"creditor_name": "Luna"}}
        return ListedTransaction(
            "transaction_1", "account_1", amount, "To the moon", datetime.now(UTC), source
        )

    [debit, credit] = [await postings.posting(listed(amount), soon()) for amount in (-5, 5)]

    assert [(one.type, one.is_debit, one.amount) for one in (debit, credit)] == [
        ("withdrawal", True, Decimal("0.05")),
        ("deposit", False, Decimal("0.05")),
    ]
    assert (debit.counterparty_name, credit.counterparty_name) == ("Luna", "To the moon")


async def test_the_text_that_the_sender_gave_an_ach_transfer_is_not_the_other_partys_name() -> None:
    postings: Any = IncreasePostings(None, None)  # type: ignore[arg-type] # nothing is read
    sent = {"statement_descriptor": "Invoice 2047", "transfer_id": "ach_transfer_1"}
    source = {"category": "ach_transfer_intention", "ach_transfer_intention": sent}
    listed = ListedTransaction(
        "transaction_1", "account_1", -5, "ACH to Supplier Inc", datetime.now(UTC), source
    )

    posting = await postings.posting(listed, soon())

    assert posting.counterparty_name == "ACH to Supplier Inc"
