"""Events of a provider that reports one state of a resource several times."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from libs.contracts.ach import AchEventData, AchStatus
from libs.contracts.events import EVENT_TYPES
from libs.persistence.engine import open_database
from services.ledger_read.adapters.ownership import OnboardingOwnership
from services.ledger_read.handlers.feed_events import FeedEvents
from services.ledger_read.models import FeedEntry, ReportedEvent
from tests.integration.tables import rows
from tests.support.infrastructure import Environment
from tests.unit.ledger_read.fakes import Onboarding


def entry(
    position: int,
    reference_id: str,
    status: AchStatus,
    state: str | None,
    *earlier: AchStatus,
) -> FeedEntry:
    passed = [event_of(reference_id, one, one) for one in earlier]
    event = event_of(reference_id, status, state)
    return FeedEntry(position, "ach", event, earlier=tuple(passed))


def event_of(reference_id: str, status: AchStatus, state: str | None) -> ReportedEvent:
    now = datetime.now(UTC)
    data = AchEventData(
        reference_id=reference_id,
        originating_account_id="a_1",
        status=status,
        amount="1.00",
        return_code=None,
        return_description=None,
        created_at=now,
        updated_at=now,
        customer_id="c_1",
    )
    kind = EVENT_TYPES["ach.created" if state is None else f"ach.{status}"]
    return ReportedEvent(kind, "c_1", reference_id, now, data, state)


async def told(
    environment: Environment, reference_id: str, *pages: list[FeedEntry]
) -> list[tuple[str, int]]:
    """The events of the request, once each of the pages was applied."""
    onboarding = Onboarding(accounts={"a_1": ("t_1", "c_1")})
    events = FeedEvents(OnboardingOwnership(onboarding, patience_seconds=1, remembered=3))
    database = open_database(environment.database_urls["ledger_read"], "tests")
    for page in pages:
        record = await events.prepare(page)
        async with database.transaction() as connection:
            await record(connection)

    found = await rows(
        database,
        "SELECT type, sequence FROM outbox WHERE resource_id = :reference_id ORDER BY sequence",
        reference_id=reference_id,
    )
    await database.close()
    return [(row.type, row.sequence) for row in found]


async def test_a_state_that_was_reported_last_is_not_reported_again(
    environment: Environment,
) -> None:
    reference_id = f"ach_{uuid.uuid4().hex}"
    pages = [
        [
            entry(1, reference_id, "submitted", None),
            entry(2, reference_id, "submitted", "submitted"),
        ],
        [
            entry(3, reference_id, "submitted", "submitted"),
            entry(4, reference_id, "settled", "settled"),
        ],
        [entry(5, reference_id, "settled", "settled")],
    ]

    found = await told(environment, reference_id, *pages)

    assert found == [
        ("ach.created", 1),
        ("ach.submitted", 2),
        ("ach.settled", 3),
    ]


async def test_states_that_were_passed_unseen_are_reported_in_their_order_and_once(
    environment: Environment,
) -> None:
    unseen, seen = (f"ach_{uuid.uuid4().hex}" for _ in range(2))
    returned: tuple[AchStatus, ...] = ("submitted", "settled")

    of_unseen = await told(
        environment,
        unseen,
        [entry(1, unseen, "returned", None), entry(2, unseen, "returned", "returned", *returned)],
        [entry(3, unseen, "returned", "returned", *returned)],
    )
    of_seen = await told(
        environment,
        seen,
        [entry(1, seen, "submitted", None), entry(2, seen, "submitted", "submitted")],
        [entry(3, seen, "returned", "returned", *returned)],
    )

    lived = [("ach.submitted", 2), ("ach.settled", 3), ("ach.returned", 4)]
    assert of_unseen == of_seen == [("ach.created", 1), *lived]
