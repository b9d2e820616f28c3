"""The connection to RabbitMQ, rebuilt whole whenever any part of it is lost.

Parts (callers, consumers) are attached to each new connection from nothing: topology declared, channels opened,
consumers registered. So there is no state in which a connection is up and a consumer is missing: the loss of a
channel or of a consumer ends the session, and the next one has all. No wait on a session outlives it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import unquote, urlsplit

import structlog
from aio_pika.exceptions import (
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
    ProbableAuthenticationError,
)
from aiormq.exceptions import ChannelAccessRefused

from libs.backoff import Backoff
from libs.log_throttle import LogThrottle
from libs.messaging.broker_errors import BROKER_ERRORS, is_refused_virtual_host
from libs.messaging.connection import connect
from libs.messaging.deadlines import within
from libs.messaging.session import CONFIRMS_NOTHING, UNCONFIRMED_SECONDS, Session

HEARTBEAT_SECONDS = 5
"""After two to three of these in silence RabbitMQ ends a connection and requeues its unacked deliveries."""
CONNECT_SECONDS = 10
RECONNECTS = Backoff(first_seconds=0.1, longest_seconds=1.0, jitter=0.2)
STEADY_SECONDS = 10.0
"""A session that lasted this long is replaced at once. After a shorter one the pause grows as after a connection that
failed: what ended it may end the next one as well.
"""
LONGEST_UNCONFIRMED_SECONDS = 20.0
"""A broker that is slow with every confirm is not helped by sessions that give up before the first."""
LASTING_SECONDS = 60.0
"""After a session that lasted this long, the next one may be given up as early as the first."""


class UnconfirmedLimit:
    """For how long RabbitMQ may owe the next session confirms and give none."""

    def __init__(self) -> None:
        self.seconds = UNCONFIRMED_SECONDS

    def session_ended(self, reason: str, lasted_seconds: float) -> None:
        """Double the limit when it ended the session, up to its bound; begin anew after one that lasted."""
        if lasted_seconds >= LASTING_SECONDS:
            self.seconds = UNCONFIRMED_SECONDS
        elif reason == CONFIRMS_NOTHING:
            self.seconds = min(2 * self.seconds, LONGEST_UNCONFIRMED_SECONDS)


class Part(Protocol):
    """A service client, consumer or publisher, which works on each session in turn."""

    async def attach(self, session: Session) -> None:
        """Begin to work on this session."""

    def detach(self) -> None:
        """The session ended: fail the requests that wait on it."""


class Broker:
    """Keeps a connection to RabbitMQ, with its parts attached to it.

    Args:
        url: `amqp://user:password@host:port/vhost`, or `amqps:` for TLS; the user is the service's own.
        name: of the connection, as RabbitMQ shows it.
        ca_file: the CA of the broker's certificate, instead of those that the system trusts.
        probes: whether consumers are probed (`libs.messaging.probing`), as is needed at a cluster.
    """

    def __init__(
        self, url: str, name: str, *, ca_file: str | None = None, probes: bool = False
    ) -> None:
        self._url = url
        self._user = unquote(urlsplit(url).username or "")
        self._ca_file = ca_file
        self._name = name
        self._probes = probes
        self._parts: list[Part] = []
        self._started = asyncio.Event()
        self._ready = asyncio.Event()
        self._session: Session | None = None
        self._limit = UnconfirmedLimit()
        self._throttles: defaultdict[str, LogThrottle] = defaultdict(LogThrottle)
        """By event."""
        self._log = structlog.get_logger("broker")

    def add(self, part: Part) -> None:
        """Add a part; before `start`."""
        self._parts.append(part)

    async def start(self, *, wait_seconds: float = 0) -> None:
        """Connect, now that all parts are added, and stay connected until `open` is left.

        Args:
            wait_seconds: wait up to this long for the first session; connecting goes on in the background.
        """
        self._started.set()
        try:
            async with asyncio.timeout(wait_seconds):
                await self._ready.wait()
        except TimeoutError:
            self._log.warning("broker_not_there_yet")

    async def ping(self) -> None:
        """Readiness: raises while there is no session, RabbitMQ does not answer, or a consumer does not consume."""
        if self._session is None:
            raise ConnectionError("no session with the broker")
        self._session.check()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """The life of the connection: it begins with `start` and ends with the body.

        Entered first, so that consumers are stopped and drained while there still is a connection.
        """
        keeper = asyncio.create_task(self._keep_connected(), name="broker")
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})

    async def _keep_connected(self) -> None:
        await self._started.wait()
        failures = 0
        while True:
            try:
                failures = 0 if await self._one_session() else failures + 1
            except Exception as error:
                failures += 1
                self._log_failure(error)
            await asyncio.sleep(RECONNECTS.pause_seconds(failures + 1))

    def _log_failure(self, error: Exception) -> None:
        if isinstance(error, ChannelPreconditionFailed):
            self._log_now_and_then(
                logging.ERROR,
                "queue_has_other_arguments",
                detail="A queue exists with arguments of another release: see “Queues with other arguments” in"
                " deploy/README.md.",
                refused=str(error),
            )
        elif isinstance(
            error, (ChannelAccessRefused, ChannelNotFoundEntity, ProbableAuthenticationError)
        ):
            self._log_now_and_then(
                logging.ERROR,
                "broker_not_set_up",
                detail="The broker lacks an exchange, or this service's user or its permissions: see “Users of the"
                " broker” in deploy/README.md.",
                refused=str(error),
            )
        elif is_refused_virtual_host(error):
            self._log_now_and_then(
                logging.ERROR,
                "broker_not_set_up",
                detail="The broker does not open the virtual host: it has none of this name, this service's user has"
                " no permissions there (see “Users of the broker” in deploy/README.md), or the virtual host or the user"
                " has as many connections as its limit allows. Its log says which.",
                refused=str(error),
            )
        elif isinstance(error, BROKER_ERRORS):
            self._log_now_and_then(
                logging.WARNING, "broker_unreachable", error=type(error).__name__
            )
        else:
            # A fault of ours, and still no reason to stay without RabbitMQ.
            self._log.error("broker_session_failed", exc_info=error)

    def _log_now_and_then(self, level: int, event: str, **what: str) -> None:
        """The first line of an event, and later ones once in a period: each attempt to connect may fail alike."""
        if (left_out := self._throttles[event].left_out()) is not None:
            self._log.log(level, event, **what, left_out=left_out)

    async def _one_session(self) -> bool:
        """Connect, attach the parts, and wait until the session is lost; false when it was short, or RabbitMQ did not
        answer or confirmed nothing.
        """
        connection = await within(
            CONNECT_SECONDS,
            connect(
                self._url,
                self._name,
                heartbeat_seconds=HEARTBEAT_SECONDS,
                ca_file=self._ca_file,
            ),
            name="broker-connect",
        )
        session = Session(
            connection,
            self._user,
            probes=self._probes,
            unconfirmed_seconds=self._limit.seconds,
        )
        began = asyncio.get_running_loop().time()
        watch: asyncio.Task[None] | None = None
        try:
            await within(CONNECT_SECONDS, self._attach(session), name="broker-attach")
            self._session = session
            self._ready.set()
            self._log.info("broker_session")
            watch = asyncio.create_task(session.watch_until_lost(), name="broker-watch")
            reason = await session.until_lost()
            self._log.warning("broker_session_lost", reason=reason)
            lasted_seconds = asyncio.get_running_loop().time() - began
            self._limit.session_ended(reason, lasted_seconds)
            is_steady = lasted_seconds >= STEADY_SECONDS
            return is_steady and not session.is_dead and reason != CONFIRMS_NOTHING
        finally:
            self._session = None
            self._ready.clear()
            if watch is not None:
                watch.cancel()
            for part in self._parts:
                part.detach()
            await connection.end(politely=not session.is_dead)

    async def _attach(self, session: Session) -> None:
        for part in self._parts:
            await part.attach(session)
        await session.begin()
