"""Customers with many external accounts, at a bank that is asked for each."""

from __future__ import annotations

from collections.abc import Sequence

from services.reconciliation.handlers.comparison import LOOK_AT_ONCE
from services.reconciliation.handlers.customers import CustomerComparison, CustomerLists
from services.reconciliation.handlers.external_accounts import ExternalAccountComparison
from services.reconciliation.handlers.running import STEP_SECONDS
from services.reconciliation.models import Finding
from services.reconciliation.ports import CoreExternalAccount
from services.reconciliation.settings import Settings
from tests.unit.reconciliation import records as r
from tests.unit.reconciliation.fakes import DIGEST, FakeList, FakeOnboarding, compared

ANSWER_SECONDS = 1.0
PAYEES = 5 * LOOK_AT_ONCE
PAGE_SIZE: int = Settings.model_fields["customers_page_size"].default
CONNECTIONS: int = Settings.model_fields["provider_connections"].default


class SlowBank(FakeList[CoreExternalAccount]):
    """One request for each id, a few at once, as at Increase; a step that takes longer is given up."""

    async def by_ids(self, ids: Sequence[str], deadline: float) -> list[CoreExternalAccount]:
        if len(ids) / CONNECTIONS * ANSWER_SECONDS > STEP_SECONDS:
            raise TimeoutError
        return await super().by_ids(ids, deadline)


async def test_many_external_accounts_of_a_customer_are_compared_at_a_slow_bank() -> None:
    payees = [f"ext_{number:03}" for number in range(PAYEES)]
    onboarding = FakeOnboarding(
        [r.our_customer()],
        [r.our_external_account(external_account_id=one) for one in payees],
        page_size=PAGE_SIZE,
    )
    bank = SlowBank(
        [r.core_external_account(external_account_id=one) for one in payees],
        "external_account_id",
    )
    customers = CustomerComparison(
        onboarding,
        CustomerLists(
            FakeList([r.identity_business(), r.identity_person()], "identity_id"),
            FakeList([r.core_business(), r.core_person()], "core_id"),
            FakeList([r.core_account()], "account_id"),
        ),
        DIGEST,
    )
    external_accounts = ExternalAccountComparison(onboarding, bank, DIGEST)

    agreeing = await compared(customers, external_accounts)
    bank.rows = [r.core_external_account(external_account_id="ext_new")]
    differing = await compared(customers, external_accounts)

    assert agreeing == {}
    assert {key: _kind(finding) for key, finding in differing.items()} == {
        **dict.fromkeys(payees, "external_account_missing_at_provider"),
        "ext_new": "external_account_unknown_to_us",
    }


def _kind(finding: Finding) -> str:
    assert isinstance(finding, list)
    [difference] = finding
    return difference.kind
