"""`python -m tests.benchmarks [--only KEY,…] [--json FILE]`, which is what `make bench` calls.

Exit code 0 when every figure is at its floor or better, 1 when one is a regression, 2 when one could not be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from libs.client.errors import OperatorError
from tests.benchmarks.bench import Bench
from tests.benchmarks.catalogue import KEYS
from tests.benchmarks.figures import Figure
from tests.benchmarks.machine import describe
from tests.benchmarks.report import as_json, show
from tests.benchmarks.requirements import ensure_wrk
from tests.benchmarks.rounds import Plan
from tests.benchmarks.servers import running_servers
from tests.benchmarks.wrk import LoadFailed


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help=f"keys, with commas: {', '.join(KEYS)}")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--rounds", type=int, default=Plan.rounds, help="of each side")
    parser.add_argument("--seconds", type=int, default=Plan.seconds, help="of each round")
    arguments = parser.parse_args()
    keys = [key for key in arguments.only.split(",") if key] or list(KEYS)
    unknown = [key for key in keys if key not in KEYS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(KEYS)}")
    plan = Plan(rounds=max(1, arguments.rounds), seconds=max(1, arguments.seconds))
    # As under make: compiled code is kept, or every service compiles its own, and is larger for it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        ensure_wrk()
        return asyncio.run(_measure(keys, plan, arguments.json))
    except (OperatorError, LoadFailed) as error:
        print(error, file=sys.stderr)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("Interrupted.", file=sys.stderr)
        return 130


async def _measure(keys: list[str], plan: Plan, json_file: Path | None) -> int:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    figures: list[Figure] = []
    async with running_servers() as servers:
        machine = await describe(servers.url("postgres"), servers.rabbitmq)
        bench = Bench(servers, plan)
        for key in keys:
            print(f"{key} ...", flush=True)
            found = await KEYS[key](bench)
            for figure in found:
                print(f"  {figure}", flush=True)
            figures += found
    show(figures, machine)
    if json_file is not None:
        json_file.write_text(json.dumps(as_json(figures, machine), indent=2) + "\n")
    return 0 if all(figure.passed for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
