"""Onboarding with identity at one company, and core banking and the financial provider at another."""

from __future__ import annotations

from pathlib import Path

from tests.integration.onboarding.desk import (
    ONBOARDING_AND_BANK,
    REVIEW,
    application,
    business,
    open_desk,
    tax_number,
)
from tests.support.bank_at_increase import BankAtIncrease
from tests.support.infrastructure import Infrastructure
from tests.support.stack import running_stack
from tests.support.waiting import eventually


async def test_each_role_is_carried_out_by_the_company_that_was_chosen_for_it(
    infrastructure: Infrastructure, tmp_path: Path
) -> None:
    environment = infrastructure.create()
    async with (
        running_stack(
            environment,
            tmp_path,
            ONBOARDING_AND_BANK,
            bank="increase-fake",
            BANKSIDE_IDENTITY_PROVIDER="sandbox",
        ) as stack,
        open_desk(stack) as desk,
    ):
        command = application(business=business(ein=tax_number(REVIEW)))
        waiting = (await desk.onboard(command))["business"]["customer_id"]
        core = BankAtIncrease(
            desk.http, stack.increase_url, stack.environment.secrets.increase_fake_key
        )
        before = await core.entities_of(waiting)
        await desk.bank(
            "POST", "/simulate/identity/decisions", customer_id=waiting, decision="approved"
        )

        async def approved() -> bool:
            status: str = (await desk.customer(waiting))["status"]
            return status == "approved"

        await eventually("the decision of the one opens the account at the other", approved)
        at_core = await core.accounts(waiting)
        at_identity = {row["api"] for row in await desk.truth("customers", waiting)}
        violations = await core.violations()
    infrastructure.drop(environment)

    assert before == []
    assert len(at_core) == 1
    assert at_identity == {"identity"}
    assert violations == []
