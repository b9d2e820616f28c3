"""A change of a person is written to core banking with the identity id that the identity provider then has for it."""

from __future__ import annotations

from typing import Any, cast

from libs.contracts.customers import CustomerStatus
from services.onboarding.handlers.amendment import Amendment, write_to_providers
from services.onboarding.models import Verification
from services.onboarding.ports import CoreCustomer
from services.onboarding.saga import Saga
from tests.unit.onboarding.increase.conftest import a_person


class Carried:
    """A saga whose steps are carried out at once. A write is its answer here."""

    async def step_of_unknown_saga(self, _: str, __: type, write: Any) -> Any:
        return write

    step = step_of_unknown_saga


async def test_core_banking_is_told_the_identity_that_the_change_gave() -> None:
    owner, other = a_person(), a_person(last_name="Lovelace")
    changed = Verification("entity/person", CustomerStatus.APPROVED, 1)
    amendment = Amendment(
        owner,
        other,
        "owner",
        "owner",
        lambda *_: cast(Any, changed),
        lambda *given: cast(Any, CoreCustomer(given[-1])),
    )

    written = await write_to_providers(cast(Saga, Carried()), amendment)

    assert written.core == CoreCustomer("entity/person")
