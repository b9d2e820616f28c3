"""A share of a business as small as a request may say it: it is stored, and read again."""

from __future__ import annotations

from libs.contracts.binding import bind
from libs.contracts.onboarding_operations import UPDATE_PERSON
from tests.integration.onboarding.desk import application, business
from tests.integration.onboarding.handling import ONBOARDING, Handling
from tests.integration.tables import finish

SMALLEST = "1e-63"


async def test_the_smallest_share_is_read_again_by_reconciliation_and_by_later_updates(
    handling: Handling,
) -> None:
    await handling.drive(await handling.accept(ONBOARDING), application(business=business()))
    person = "SELECT person_id FROM persons WHERE tenant = :tenant LIMIT 1"
    path = {"person_id": str(await handling.value(person))}
    shares = "SELECT (details->>'ownership_percentage')::numeric FROM persons WHERE person_id = :id"

    for share in (SMALLEST, "10"):
        leased = await handling.accept(UPDATE_PERSON.name)
        await handling.order(leased)
        body = f'{{"ownership_percentage": {share}}}'.encode()
        await handling.drive(leased, bind(UPDATE_PERSON, path, body=body))
        await finish(handling.database, leased)
        await handling.held()

    assert await handling.value(shares, id=path["person_id"]) == 10
