"""Policies are set by commands, of which the newest counts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from libs.contracts.errors import (
    Invalid,
    LimitExceeded,
    Unavailable,
)
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.wire_policies import ListOperatorWirePolicies, OperatorWirePolicy
from libs.contracts.principal import Principal
from services.payments.effective_policies import EffectivePolicies
from services.payments.handlers.policies import PolicyQueries
from services.payments.policies import Policy
from tests.unit.payments.approvals import OPERATOR
from tests.unit.payments.bench import MINE, Bench, EveryAccountIsOwned

pytestmark = pytest.mark.usefixtures("a_customer_of_its_own")


async def test_an_older_policy_that_is_driven_again_does_not_replace_a_newer_one(
    bench: Bench,
) -> None:
    loose, tight = Policy(daily_count=50), Policy(daily_count=1)
    older = await bench.accepted_policy(loose)
    await bench.drive_policy(older, loose)
    await bench.set_policy(tight)

    again = await bench.drive_policy(older, loose, attempt=2)

    assert again.daily_count == 1, "what is in force"
    first, second = await bench.accepted(), await bench.accepted()
    await bench.send(first, attempt=1)
    with pytest.raises(LimitExceeded):
        await bench.send(second, attempt=1)


async def test_an_older_policy_that_waited_does_not_replace_a_newer_one(bench: Bench) -> None:
    loose, tight = Policy(daily_count=50), Policy(daily_count=1)
    older = await bench.accepted_policy(loose)
    newer = await bench.accepted_policy(tight)
    await bench.drive_policy(newer, tight)

    answer = await bench.drive_policy(older, loose)

    assert answer.daily_count == 1


class OnboardingIsAway(EveryAccountIsOwned):
    async def require_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        raise Unavailable


async def test_a_policy_that_was_set_is_answered_as_set_while_onboarding_is_away(
    bench: Bench,
) -> None:
    policy = Policy(daily_count=50)
    command = await bench.accepted_policy(policy)
    first = await bench.drive_policy(command, policy)

    again = await bench.drive_policy(command, policy, attempt=2, ownership=OnboardingIsAway())

    assert again == first


async def test_a_policy_that_was_set_is_not_refused_by_ceilings_that_were_lowered_since(
    bench: Bench,
) -> None:
    policy = Policy(daily_count=50)
    command = await bench.accepted_policy(policy)
    await bench.drive_policy(command, policy)
    lowered = EffectivePolicies(ceilings=Policy(daily_count=10))

    again = await bench.drive_policy(command, policy, attempt=2, effective=lowered)

    assert again.daily_count == 10, "what is in force"


async def test_a_policy_that_no_drive_has_set_is_asked_about_at_each(bench: Bench) -> None:
    policy = Policy(daily_count=50)
    await bench.set_policy(policy)
    command = await bench.accepted_policy(policy)

    with pytest.raises(Unavailable):
        await bench.drive_policy(command, policy, attempt=2, ownership=OnboardingIsAway())
    with pytest.raises(Invalid):
        await bench.drive_policy(
            command,
            policy,
            attempt=2,
            effective=EffectivePolicies(ceilings=Policy(daily_count=10)),
        )


async def test_operators_page_through_the_policies_of_all_tenants(bench: Bench) -> None:
    await bench.set_policy(Policy(daily_count=3))
    first = bench.owner.customer_id
    bench.owner = msgspec.structs.replace(MINE, tenant="t_2", customer_id=str(uuid4()))
    await bench.set_policy(Policy(approval_threshold=Decimal(5)))
    second = bench.owner.customer_id
    queries = PolicyQueries(bench.database, EveryAccountIsOwned(), EffectivePolicies())

    async def found(**asked: Any) -> Listed[OperatorWirePolicy]:
        result = await queries.list_of_all(OPERATOR, ListOperatorWirePolicies(**asked), 0)
        assert isinstance(result.data, Listed)
        return result.data

    page = await found(limit=1)
    following = await found(limit=1, after=page.next)

    assert [each.customer_id for each in (*page.items, *following.items)] == [second, first]
    assert (page.items[0].approval_threshold, page.items[0].daily_count) == (Decimal(5), None)
    assert [each.customer_id for each in (await found(customer_id=first)).items] == [first]
    assert [each.customer_id for each in (await found(tenant="t_2")).items] == [second]
