"""Relays the outbox of onboarding as a process that a test freezes: `python -m tests.integration.lease_holder`.

It says `publishing` when it is about to have published, waits for a line, and then goes on to delete what it published.
`lost` is its last word when it may not.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection, Sequence

from libs.contracts.events import Event
from libs.persistence.engine import open_database
from libs.persistence.leadership import LeadershipLost
from libs.persistence.relaying import Relay


async def publish(events: Sequence[Event]) -> Collection[str]:
    print("publishing", *(event.event_id for event in events), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    return ()


async def main() -> None:
    database = open_database(os.environ["BANKSIDE_ONBOARDING_DATABASE_URL"], "lease-holder")
    try:
        await Relay(database, publish).run_while_leading()
    except LeadershipLost:
        print("lost", flush=True)
    finally:
        await database.close()


if __name__ == "__main__":
    asyncio.run(main())
