"""Pages that are so small that a slow provider, which is asked for each record by itself, answers in time."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from annotated_types import Ge
from pydantic import SecretStr

from libs.contracts.model import Command, Model
from libs.contracts.operation import Operation
from libs.contracts.principal import Principal
from libs.providers.feed_entries import FeedCursor
from services.reconciliation.app import comparisons
from services.reconciliation.handlers.comparison import LOOK_AT_ONCE
from services.reconciliation.handlers.running import STEP_SECONDS
from services.reconciliation.ports import Core, FinancialRole, Identity, Providers
from services.reconciliation.settings import Settings
from tests.unit.reconciliation.fakes import FakeList, soon

RING = f"k1:{base64.b64encode(bytes(32)).decode()}"
SETTINGS = Settings.model_construct(
    database_url=SecretStr(""), amqp_url=SecretStr(""), onboarding_keys=SecretStr(RING)
)
ANSWER_SECONDS = 4.0
REQUESTS = {"wires": 1, "customers": 1 + 1 + 2, "external_accounts": 1, "told": 2 + 1}
"""Of each comparison, for each of its records: of identity, core banking and accounts; of accounts and external
accounts.
"""


class Asked:
    """A `QueryClient` of services that have nothing. `limits`: of the pages that they were asked for."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    async def query(
        self,
        operation: Operation,
        principal: Principal,
        command: Command,
        reply: type[Model],
        deadline: float,
    ) -> Model:
        self.limits.append(command.model_dump()["limit"])
        rows: dict[str, object] = {name: [] for name in reply.model_fields if name != "next_after"}
        return reply.model_validate(rows | {"next_after": None})


def listed(requests_each: int) -> FakeList[Any]:
    empty: FakeList[Any] = FakeList([], "")
    empty.requests_each = requests_each
    return empty


async def newest(_: FeedCursor, __: float) -> int:
    return 0


async def limits_of(requests_of: int) -> Mapping[str, int]:
    """How large the pages of our records are, by comparison.

    Args:
        requests_of: for a record, of an account twice as many.
    """
    one, two = requests_of, 2 * requests_of
    core = Core(listed(one), listed(two), listed(one), listed(one), newest, posts_wires=False)
    providers = Providers(Identity(listed(one), newest), core, FinancialRole(None, None, newest))
    asked: Any = Asked()
    database: Any = None
    found = {}
    for comparison in comparisons(SETTINGS, database, asked, providers):
        if comparison.name in REQUESTS:
            scan = next(iter(comparison.scans.values()))
            await scan(None, soon())
            found[comparison.name] = asked.limits.pop()
    return found


async def test_where_one_request_names_many_records_pages_are_as_large_as_is_set() -> None:
    limits = await limits_of(0)

    assert limits == {"wires": 500, "customers": 100, "external_accounts": 100, "told": 100}


async def test_where_a_provider_is_asked_for_each_record_a_page_ends_within_its_time() -> None:
    limits = await limits_of(1)

    assert limits == {"wires": 100, "customers": 25, "external_accounts": 100, "told": 33}
    for name, requests in REQUESTS.items():
        assert seconds_of(limits[name] * requests) < STEP_SECONDS


@pytest.mark.parametrize("requests", REQUESTS.values(), ids=REQUESTS)
def test_a_batch_of_looks_ends_within_its_time_where_each_record_is_asked_for(
    requests: int,
) -> None:
    assert seconds_of(LOOK_AT_ONCE * requests) < STEP_SECONDS


@pytest.mark.parametrize("requests", REQUESTS.values(), ids=REQUESTS)
def test_at_the_lowest_rate_that_can_be_set_a_batch_of_looks_ends_within_its_time(
    requests: int,
) -> None:
    [lowest] = [
        bound.ge
        for bound in Settings.model_fields["provider_requests_per_second"].metadata
        if isinstance(bound, Ge)
    ]

    # Records that onboarding does not hold are asked for in each list.
    assert 2 * LOOK_AT_ONCE * requests / float(str(lowest)) < STEP_SECONDS


def seconds_of(requests: int) -> float:
    rounds = -(-requests // SETTINGS.provider_connections)
    return rounds * ANSWER_SECONDS
