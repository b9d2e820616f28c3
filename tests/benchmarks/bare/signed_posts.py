"""Deliveries without a dispatcher: a loop that signs and posts with aiohttp, and stores nothing.

`python -m tests.benchmarks.bare.signed_posts` takes what to post as JSON, and tells what it did: one process, the
library as it comes, on uvloop. Each post has an id, a timestamp and a signature of its own, as Standard Webhooks asks.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Any

import aiohttp
import uvloop

from tests.benchmarks.receiver import HUNG, Receiver
from tests.benchmarks.wrk import LoadFailed

IN_FLIGHT = 64
START_SECONDS = 20.0
ANSWER_SECONDS = 10.0


@dataclass
class SignedPosts:
    """Posts `body` to every target of the receiver that answers, in turn."""

    receiver: Receiver
    body: bytes
    posted: int = 0
    cpu_seconds: float = 0.0
    """Of the loop, its start left out."""

    async def rate(self, seconds: int) -> float:
        """Posts a second that the receiver has checked."""
        await self.receiver.begin()
        done = await self._run(seconds)
        checked = await self.receiver.checked()
        if checked != done["posted"]:
            raise LoadFailed(f"{done['posted']} posts were answered, {checked} were checked")
        self.posted += done["posted"]
        self.cpu_seconds += done["cpu_seconds"]
        return float(done["posted"] / done["seconds"])

    @property
    def told(self) -> str:
        return f"{self.cpu_seconds / max(1, self.posted) * 1e6:.0f}"

    async def _run(self, seconds: int) -> Any:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        what = {
            "base_url": self.receiver.base_url,
            "secrets": {k: v for k, v in self.receiver.secrets.items() if k != HUNG},
            "body": self.body.decode(),
            "seconds": seconds,
        }
        try:
            async with asyncio.timeout(seconds + START_SECONDS):
                output, _ = await process.communicate(json.dumps(what).encode())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise LoadFailed("the bare loop failed")
        return json.loads(output)


def _signed(key: bytes, body: bytes) -> dict[str, str]:
    """The headers of a new message."""
    message_id, timestamp = f"msg_{os.urandom(16).hex()}", str(int(time.time()))
    mac = hmac.new(key, f"{message_id}.{timestamp}.".encode(), sha256)
    mac.update(body)
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{b64encode(mac.digest()).decode()}",
    }


async def _post_for(
    base_url: str, secrets: Mapping[str, str], body: bytes, seconds: float
) -> dict[str, float]:
    targets = [
        (base_url + target, b64decode(secret.removeprefix("whsec_")))
        for target, secret in secrets.items()
    ]
    numbers = count()
    began, cpu_began = time.perf_counter(), time.process_time()
    posted = 0

    async def post_in_turn(session: aiohttp.ClientSession) -> None:
        nonlocal posted
        while time.perf_counter() - began < seconds:
            url, key = targets[next(numbers) % len(targets)]
            async with session.post(url, data=body, headers=_signed(key, body)) as response:
                await response.read()
                response.raise_for_status()
            posted += 1

    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(post_in_turn(session))
        elapsed, cpu_elapsed = time.perf_counter() - began, time.process_time() - cpu_began
    return {"posted": posted, "seconds": elapsed, "cpu_seconds": cpu_elapsed}


async def _main() -> dict[str, float]:
    what = json.load(sys.stdin)
    return await _post_for(
        what["base_url"], what["secrets"], what["body"].encode(), what["seconds"]
    )


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_main())))
