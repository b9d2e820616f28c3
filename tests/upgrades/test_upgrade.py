"""The N-1 rule: services of the previous release and of this one run side by side, on one database and one broker.

One stack is brought from the previous release to this one and back, as "Upgrading" in deploy/README.md has it, while
callers go on.
"""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from tests.support.api import fetch_interface
from tests.support.infrastructure import Environment
from tests.support.launching import begin_loading
from tests.support.live import Deployment, hands_on
from tests.support.reconciling import reconcile
from tests.support.recorded_events import RecordedEvents
from tests.upgrades.callers import new_callers
from tests.upgrades.catalogue import described
from tests.upgrades.previous_release import NotHere, PreviousRelease, previous_release, take_out
from tests.upgrades.releases import BEHIND, GATEWAY, end, start, two_releases


@pytest.fixture
def release() -> PreviousRelease:
    try:
        return previous_release()
    except NotHere as reason:
        pytest.skip(str(reason))


async def test_no_request_fails_while_a_release_is_brought_in_and_taken_back(
    release: PreviousRelease,
    empty_environment: Environment,
    fresh_environment: Environment,
    tmp_path: Path,
) -> None:
    begin_loading()
    events = RecordedEvents(empty_environment.amqp_url)
    await events.begin()
    async with two_releases(release, empty_environment, tmp_path) as releases:
        front, previous, present = releases.front, releases.previous, releases.present
        await start(previous, [*BEHIND, GATEWAY])
        await releases.address.is_taken()
        async with (
            aiohttp.ClientSession() as session,
            hands_on(
                Deployment(front, events, interface=await fetch_interface(session, front.base_url))
            ) as live,
            new_callers(live, "upgraded") as callers,
        ):
            async with callers.running():
                await callers.go_on("the previous release alone")

                await releases.migrate()
                await callers.go_on("the previous release on the new schemas")
                await start(present, [*BEHIND, GATEWAY])
                await callers.go_on("both releases, of each service one replica")
                await end(previous, BEHIND)
                await callers.go_on("both gateways, services of this release")
                # A gateway of any release may be ended so. Those of this one may also be ended behind the address.
                releases.address.take_out(previous.services[GATEWAY])
                await end(previous, [GATEWAY])
                await callers.go_on("this release alone")
                _, differences = await reconcile(front)

                await start(previous, BEHIND)
                await end(present, BEHIND)
                await callers.go_on("the gateway of this release, services of the previous one")
                await start(previous, [GATEWAY])
                releases.address.put_back(previous.services[GATEWAY])
                await end(present, [GATEWAY])
                await callers.go_on("the previous release again")

            assert differences == []
            assert releases.address.refused == 0
            await callers.agree()
    upgraded, new = [
        await described(one.database_urls["postgres"])
        for one in (empty_environment, fresh_environment)
    ]
    assert upgraded == new


def test_a_checkout_without_the_previous_release_says_what_helps(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match=r"git fetch origin 0{40}"):
        take_out("0" * 40, tmp_path)
