"""Break a stack with two of everything, for so many minutes, and say whether anything was lost or doubled.

python -m tests.faults.campaign --minutes 10 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import resource
import shutil
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from deploy.local.environment import ROOT
from tests.faults.campaign.callers import new_callers
from tests.faults.campaign.replicas import running_fleet
from tests.faults.campaign.report import table
from tests.faults.campaign.run import run
from tests.faults.campaign.server_faults import CLUSTER_FAULTS, DatabaseDiskFull
from tests.faults.campaign.servers import running_cluster
from tests.faults.load import TRANSIT

CLUSTERED = {"BANKSIDE_QUERY_QUEUES": "quorum"} | TRANSIT
LOGS = ROOT / ".local" / "faults"
RATE = 16.0
"""Operations a second."""


async def campaign(minutes: float, seed: int, rate: float, only: str) -> int:
    def report(line: str) -> None:
        print(line, flush=True)

    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bankside-faults-")))
        home = folder / "servers"
        home.mkdir()
        folder.chmod(0o711)  # PostgreSQL may run as another user than we do
        home.chmod(0o711)
        servers = await opened.enter_async_context(running_cluster(home))
        faults = [fault for fault in CLUSTER_FAULTS if only in fault.name]
        if servers.postgres.no_disks and DatabaseDiskFull in faults:
            faults.remove(DatabaseDiskFull)
            report(f"left out: {DatabaseDiskFull.name}: {servers.postgres.no_disks}")
        if not faults:
            report(f"There is no fault with {only!r} in its name.")
            return 2
        fleet = await opened.enter_async_context(
            running_fleet(servers.environment, folder, **CLUSTERED)
        )
        callers = await opened.enter_async_context(new_callers(fleet, seed))
        report(f"seed {seed}: everything runs twice; {minutes:g} minutes")
        try:
            result = await run(
                callers,
                faults,
                seed=seed,
                minutes=minutes,
                rate=rate,
                report=report,
                servers=servers,
            )
        except AssertionError:
            report(f"logs are in {keep_logs(folder)}")
            raise
        report(table(result, seed))
        if not result.is_good:
            report(f"logs are in {keep_logs(folder, result.queues)}")
        return 0 if result.is_good else 1


def keep_logs(folder: Path, queues: str = "") -> Path:
    """Copy them from a folder that is removed after the run, in place of those of a run before."""
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    for log in folder.rglob("*.log"):
        shutil.copy(log, LOGS)
    (LOGS / "queues.txt").write_text(queues)
    return LOGS


def main() -> None:
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="that of a run to be repeated")
    parser.add_argument("--rate", type=float, default=RATE, help="operations a second")
    parser.add_argument("--only", default="", help="faults with this in their names")
    arguments = parser.parse_args()
    for library in ("aiormq", "aio_pika"):  # they warn of each connection that is refused
        logging.getLogger(library).setLevel(logging.CRITICAL)
    seed = random.SystemRandom().randrange(1_000_000) if arguments.seed is None else arguments.seed
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    sys.exit(asyncio.run(campaign(arguments.minutes, seed, arguments.rate, arguments.only)))


if __name__ == "__main__":
    main()
