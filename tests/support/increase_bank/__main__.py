"""`python -m tests.support.increase_bank --port 8091 --data DIR`, until SIGTERM or SIGINT.

Its keys are the services' own `BANKSIDE_<SERVICE>_INCREASE_KEY`, of which those of LEDGER_READ and RECONCILIATION only
read, and `BANKSIDE_INCREASE_FAKE_KEY`, which may do everything. From a wire to its completion pass
`BANKSIDE_INCREASE_FAKE_WIRE_SECONDS` (2).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.increase_bank.calls import Conduct
from tests.support.increase_bank.server import running_bank
from tests.support.increase_bank.web import May

CALLERS: Mapping[str, May] = {
    "BANKSIDE_ONBOARDING_INCREASE_KEY": "everything",
    "BANKSIDE_PAYMENTS_INCREASE_KEY": "everything",
    "BANKSIDE_LEDGER_READ_INCREASE_KEY": "read",
    "BANKSIDE_RECONCILIATION_INCREASE_KEY": "read",
    "BANKSIDE_INCREASE_FAKE_KEY": "everything",
}


def keys_of(environment: Mapping[str, str]) -> dict[str, May]:
    return {environment[name]: may for name, may in CALLERS.items() if environment.get(name)}


async def serve(arguments: argparse.Namespace, keys: Mapping[str, May]) -> None:
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    conduct = Conduct(wire_seconds=arguments.wire_seconds)
    async with running_bank(
        arguments.data,
        keys,
        port=arguments.port,
        conduct=conduct,
        public_url=arguments.public_url,
    ) as running:
        print(f"Increase's fake is ready at {running.url}.", flush=True)
        await stop.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.increase_bank")
    parser.add_argument("--port", type=int, default=8091)
    parser.add_argument("--data", type=Path, required=True, help="the folder of what it remembers")
    parser.add_argument("--public-url", help="where links to files lead")
    seconds = float(os.environ.get("BANKSIDE_INCREASE_FAKE_WIRE_SECONDS") or 2.0)
    parser.add_argument("--wire-seconds", type=float, default=seconds)
    keys = keys_of(os.environ)
    if not keys:
        print(
            f"The fake of Increase needs a key: set one of {', '.join(CALLERS)}.", file=sys.stderr
        )
        return 2
    try:
        asyncio.run(serve(parser.parse_args(), keys))
    except OSError as error:
        print(f"The fake of Increase could not start: {error}.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
