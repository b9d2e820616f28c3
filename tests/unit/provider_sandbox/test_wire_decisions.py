from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.provider_sandbox.operations import Refusal
from services.provider_sandbox.wires.sending import Facts, Order, decide

CENTS = st.integers(min_value=1, max_value=500).map(lambda cents: Decimal(cents).scaleb(-2))


def account(total: str, held: str = "0", **more: Any) -> dict[str, Any]:
    return {
        "core_id": "cus_1",
        "status": "open",
        "is_restricted": False,
        "total": Decimal(total),
        "held": Decimal(held),
        **more,
    }


def order(amount: Decimal | str, account_id: str = "acc_1", key: str = "new") -> Order:
    return Order(key, account_id, "ext_1", Decimal(amount), "Invoice 7")


def facts(**accounts: dict[str, Any]) -> Facts:
    return Facts(frozenset({"used"}), accounts, {"ext_1": {"core_id": "cus_1", "status": "open"}})


def codes(refusals: list[Refusal | None]) -> list[str | None]:
    return [None if refusal is None else refusal.code for refusal in refusals]


def test_each_order_is_decided_after_the_holds_of_those_before() -> None:
    known = facts(acc_1=account("10.00", held="4.00"), acc_2=account("1.00"))

    refusals = decide(
        [order("5.00"), order("1.01"), order("1.00"), order("1.00", "acc_2"), order("0.01")], known
    )

    assert codes(refusals) == [None, "insufficient_funds", None, None, "insufficient_funds"]


def test_only_a_used_transaction_id_leaves_its_key_as_it_was() -> None:
    refusals = decide([order("1.00", key="used"), order("1.00", "acc_2")], facts())

    assert codes(refusals) == ["duplicate_transaction", "not_found"]
    assert [refusal is not None and refusal.kept for refusal in refusals] == [False, True]


@given(funds=CENTS, held=CENTS, amounts=st.lists(CENTS, max_size=30))
def test_no_more_is_ever_accepted_than_there_is(
    funds: Decimal, held: Decimal, amounts: list[Decimal]
) -> None:
    known = facts(acc_1=account(str(funds + held), str(held)))

    refusals = decide([order(amount) for amount in amounts], known)

    left = funds
    for amount, refusal in zip(amounts, refusals, strict=True):
        assert (refusal is None) == (amount <= left)
        left -= amount if refusal is None else 0
    assert left >= 0
