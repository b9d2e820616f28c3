"""A run: a load, and one fault after the other, drawn from a seed, until the time is over; then the verdict."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.faults.campaign.agreement import Verdict, judge
from tests.faults.campaign.callers import Callers
from tests.faults.campaign.faults import Fault, Ground
from tests.faults.campaign.operations import Kind, Operation, now
from tests.faults.campaign.replicas import Fleet
from tests.faults.campaign.server_faults import BrokerFault
from tests.faults.campaign.servers import VHOST, Servers

QUIET_SHARE = 0.05
"""The part of a run before its first fault, in which it is seen how long operations take; within the bounds below."""
QUIET_SECONDS = (5.0, 60.0)
BROKER_SECONDS = 20.0
"""For RabbitMQ to come back. Then it is looked whether it works without us, and restarted if it does not."""
AT_ONCE_SECONDS = 2.0
"""In which a broker works again that needed no time for it; to look takes some of them."""
RECOVERED_SECONDS = 60.0
"""A fault from which nothing has recovered by then ends the run."""
PROBES_SECONDS = 0.1
"""How often it is looked whether operations are carried out again. One of each kind is under way meanwhile."""
SENT_BEFORE = 200
"""Operations that began before a fault was mended, and may be sent again after it."""


class NotRecovered(Exception):
    """A fault is mended, and callers still do not get what they ask for."""


@dataclass(frozen=True)
class Struck:
    """A fault that struck, and what it did to callers."""

    name: str
    detail: str
    began: float
    mended: float
    recovery_seconds: float
    touched: frozenset[Kind]

    @property
    def ended(self) -> float:
        return self.mended + self.recovery_seconds


@dataclass
class Run:
    callers: Callers
    fleet: Fleet
    struck: list[Struck] = field(default_factory=list)
    kills: int = 0
    quiet: tuple[float, float] = (0.0, 0.0)
    """When there was no fault: the beginning, until the first."""
    verdict: Verdict = field(default_factory=Verdict)
    stuck: str = ""
    """From which fault it did not recover."""
    queues: str = ""
    """How the broker's queues were at that moment."""
    began: float = 0.0
    ended: float = 0.0

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.stuck


async def run(
    callers: Callers,
    faults: Sequence[type[Fault]],
    *,
    seed: int,
    minutes: float,
    rate: float,
    report: Callable[[str], None],
    servers: Servers | None = None,
) -> Run:
    """At least one fault strikes. The run ends with the first from which the stack does not recover.

    Raises:
        AssertionError: what was sent is not answered in the end.
    """
    draw = random.Random(seed)
    ground = Ground(callers.fleet, callers, draw, servers=servers)
    result = Run(callers, callers.fleet, began=now())
    until = result.began + 60 * minutes
    sending = asyncio.create_task(callers.send_at(lambda: rate * ground.factor), name="load")
    try:
        shortest, longest = QUIET_SECONDS
        await asyncio.sleep(min(longest, max(shortest, QUIET_SHARE * 60 * minutes)))
        result.quiet = result.began, now()
        weights = [fault.weight for fault in faults]
        while not result.struck or now() < until:
            [chosen] = draw.choices(faults, weights)
            fault = chosen(ground)
            await asyncio.sleep(fault.pause_seconds)
            began = now()
            await fault.strike()
            try:
                mended, recovered = await _recovered(callers, fault, servers)
            except NotRecovered as error:
                result.stuck = f"not recovered {RECOVERED_SECONDS:.0f} s after {fault.name} ({fault.detail}): {error}"
                report(result.stuck)
                result.queues = await servers.rabbitmq.queues(VHOST) if servers else ""
                break
            struck = Struck(
                fault.name,
                fault.detail,
                began,
                mended,
                recovered - mended,
                frozenset(fault.touched),
            )
            result.struck.append(struck)
            report(
                f"{began - result.began:7.1f} s  {fault.name}: {fault.detail or 'all'}; "
                f"{mended - began:.1f} s, recovered after {struck.recovery_seconds:.1f} s"
            )
            callers.raise_failure()
            if sending.done():
                sending.result()
    finally:
        result.kills = ground.kills
        sending.cancel()
        await asyncio.wait({sending})
    await callers.settle()
    result.ended = now()
    await callers.fleet.ready()
    result.verdict = await judge(callers)
    return result


async def _recovered(
    callers: Callers, fault: Fault, servers: Servers | None
) -> tuple[float, float]:
    """When the fault was mended, and when callers were served again. Raises NotRecovered.

    After a fault of the broker the next one waits for the broker itself, which serves callers before all of it works:
    else there would be two faults at a time.
    """
    mended = now()
    if servers is None or not isinstance(fault, BrokerFault):
        return await _served(callers, mended, fault, servers)
    works = asyncio.create_task(_time_of_work(servers), name="broker-works")
    try:
        mended, served = await _served(callers, mended, fault, servers)
        await asyncio.wait({works}, timeout=max(0.0, mended + BROKER_SECONDS - now()))
        if not works.done():
            mended = await _restart(servers, fault)
            return await _served(callers, mended, fault, servers)
        if works.result() > mended + AT_ONCE_SECONDS:
            fault.detail += f"; the broker itself worked after {works.result() - mended:.1f} s"
        return mended, served
    finally:
        works.cancel()
        await asyncio.wait({works})


async def _time_of_work(servers: Servers) -> float:
    await servers.rabbitmq.until_works(VHOST)
    return now()


async def _restart(servers: Servers, fault: Fault) -> float:
    """Restart the broker, as its operator would; when it is back."""
    await servers.rabbitmq.restart()
    fault.detail += "; RabbitMQ did not come back, and was restarted"
    return await _time_of_work(servers)


async def _served(
    callers: Callers, mended: float, fault: Fault, servers: Servers | None
) -> tuple[float, float]:
    """When the fault was mended, and when an operation of each kind that was sent since then was answered 200. Raises
    NotRecovered.

    A broker that does not work `BROKER_SECONDS` later, for a client of no service either, is restarted: the fault is
    then mended when it is back.
    """
    is_restarted = False
    deadline = mended + RECOVERED_SECONDS
    waiting = set(Kind)
    probes: dict[Kind, Operation] = {}
    first = len(callers.operations)
    while True:
        waiting -= {
            operation.kind
            for operation in callers.operations[max(0, first - SENT_BEFORE) :]
            if any(a.code == "200" and a.sent_at >= mended for a in operation.attempts)
        }
        if not waiting:
            return mended, now()
        if servers and not is_restarted and now() > mended + BROKER_SECONDS:
            is_restarted = True
            if not await servers.rabbitmq.works(VHOST):
                mended = await _restart(servers, fault)
                deadline = mended + RECOVERED_SECONDS
        if now() > deadline:
            raise NotRecovered(", ".join(sorted(kind.value for kind in waiting)))
        for kind in waiting:
            if kind in probes and not probes[kind].attempts:
                continue
            if (probe := callers.wishes.new(kind)) is not None:
                probes[kind] = probe
                await callers.begin(probe)
        await asyncio.sleep(PROBES_SECONDS)
