"""The queue by itself: request and reply over RabbitMQ with aio-pika, one message each, nothing done in between.

`python -m tests.benchmarks.bare.echo respond|ask URL [SECONDS]`: two processes, as the gateway and a service are. The
library is used as it comes: published with confirms, requests acked, replies not; on uvloop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator

import aio_pika
import uvloop
from aio_pika import Message
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

QUEUE = "bench.echo"
IN_FLIGHT = 64
BODY = b"x" * 256
START_SECONDS = 20.0
ANSWER_SECONDS = 10.0
WARM_UP_SECONDS = 0.5


@contextlib.asynccontextmanager
async def responder(url: str) -> AsyncIterator[None]:
    """A process that answers during the body."""
    process = await _python("respond", url)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            await process.stdout.readline()
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def rate(url: str, seconds: int) -> float:
    """Round trips a second, asked for by a process of its own, each answer compared."""
    process = await _python("ask", url, str(seconds))
    try:
        async with asyncio.timeout(seconds + START_SECONDS):
            output, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert process.returncode == 0, "the bare echo failed"
    return float(output)


async def _python(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, *arguments), stdout=asyncio.subprocess.PIPE
    )


@contextlib.asynccontextmanager
async def _channel(url: str) -> AsyncIterator[AbstractChannel]:
    connection = await aio_pika.connect(url)
    async with connection:
        yield await connection.channel()


async def respond(url: str) -> None:
    async with _channel(url) as channel:
        queue = await channel.declare_queue(QUEUE, auto_delete=True)

        async def answer(message: AbstractIncomingMessage) -> None:
            reply = Message(message.body, correlation_id=message.correlation_id)
            await channel.default_exchange.publish(
                reply,
                message.reply_to or "",
                mandatory=False,  # the asker may have ended
            )
            await message.ack()

        await queue.consume(answer)
        print("ready", flush=True)
        await asyncio.Event().wait()


class _Asker:
    def __init__(self, channel: AbstractChannel, reply_to: str) -> None:
        self._channel = channel
        self._reply_to = reply_to
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        self.answered = 0

    async def on_reply(self, message: AbstractIncomingMessage) -> None:
        future = self._waiting.pop(message.correlation_id or "")
        if not future.done():
            future.set_result(message.body)

    async def ask_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            correlation_id = os.urandom(16).hex()
            answer = self._waiting[correlation_id] = loop.create_future()
            request = Message(BODY, correlation_id=correlation_id, reply_to=self._reply_to)
            await self._channel.default_exchange.publish(request, QUEUE)
            if await answer != BODY:
                raise RuntimeError("another answer than was expected")
            self.answered += 1


async def ask(url: str, seconds: int) -> float:
    async with _channel(url) as channel:
        replies = await channel.declare_queue(exclusive=True, auto_delete=True)
        asker = _Asker(channel, replies.name)
        await replies.consume(asker.on_reply, no_ack=True)
        tasks = [asyncio.create_task(asker.ask_for_ever()) for _ in range(IN_FLIGHT)]
        await asyncio.sleep(WARM_UP_SECONDS)
        before, began = asker.answered, time.perf_counter()
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        found = (asker.answered - before) / (time.perf_counter() - began)
        for task in done:
            task.result()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return found


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["respond", url]:
            with contextlib.suppress(KeyboardInterrupt):
                uvloop.run(respond(url))
        case ["ask", url, seconds]:
            print(uvloop.run(ask(url, int(seconds))))
