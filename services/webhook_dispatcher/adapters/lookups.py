"""From host names to addresses: the system's own resolver, in bounded threads, with a deadline.

`getaddrinfo` knows what this machine knows (its hosts file, its search order) and needs no library; but it cannot be
interrupted, and a name whose servers are silent holds its thread for as long as the system waits, often 10 s and more.
So the threads are our own and never those that the rest of the process uses; however many deliveries of a tenant ask
for a name at one moment, it is looked up once; and names that were slow the last time share a few threads. Of either
kind of threads a tenant has a quarter at most, so that it holds up no other tenant by hundreds of names that fall
silent at one moment, nor by more silent names than are remembered as slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from libs.contracts.errors import Unavailable
from libs.handling.bulkhead import Bulkhead

SECONDS = 5.0
THREAD_SECONDS = 2.0
SLOW_SECONDS = 1.0
SLOW_NAMES = 4096
AT_ONCE, SLOW_AT_ONCE = 256, 64
TENANT_SHARE = 0.25
WAITING = 4096
"""Lookups that wait for a thread of one kind. They stay until they get one, also when no caller waits any more: 256
attempts that ask for other names every 2 s leave 2,560 in the 20 s for which a system asks two silent servers.
"""
OWN_TROUBLE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""A resource of this machine is exhausted; it is not the endpoint's fault. EADDRNOTAVAIL may be either: no port is
left, or the endpoint has IPv6 addresses alone, and this machine none.
"""

GetAddrInfo = Callable[..., Sequence[tuple[Any, Any, Any, Any, tuple[Any, ...]]]]


class NotResolved(Exception):
    """The host name has no address."""


class NotResolvedInTime(NotResolved):
    """The host name has no address yet."""


class NotLookedUp(NotResolved):
    """No thread, or no file, was free to look the host name up: it is not the name's fault."""


class _Lookup:
    """A name that is being looked up for a tenant, or waits for a thread.

    Attributes:
        begun: it has a thread, or is over.
        wanted_until: the last caller waits until then for it to begin.
    """

    def __init__(self, look_up: Callable[[_Lookup], Coroutine[Any, Any, list[str]]]) -> None:
        self.begun = asyncio.Event()
        self.wanted_until = 0.0
        self.task = asyncio.create_task(look_up(self), name="lookup")


class Lookups:
    """Looks names up. Answers are not kept: a name is looked up whenever it is dialled.

    Args:
        seconds: how long a caller waits for the answer.
        thread_seconds: how long it waits for a thread before that.
        at_once: threads for names that are not known to be slow; one tenant may have `TENANT_SHARE` of them.
        slow_at_once: threads for those that took longer than `slow_seconds` the last time, likewise.
    """

    def __init__(
        self,
        *,
        seconds: float = SECONDS,
        thread_seconds: float = THREAD_SECONDS,
        at_once: int = AT_ONCE,
        slow_at_once: int = SLOW_AT_ONCE,
        slow_seconds: float = SLOW_SECONDS,
        getaddrinfo: GetAddrInfo = socket.getaddrinfo,
    ) -> None:
        self._seconds = seconds
        self._thread_seconds = thread_seconds
        self._slow_seconds = slow_seconds
        self._getaddrinfo = getaddrinfo
        self._quick = _threads(at_once)
        self._slow = _threads(slow_at_once)
        self._slow_names: OrderedDict[str, None] = OrderedDict()
        # One lookup serves one tenant: another tenant's may wait for that tenant's share of the threads.
        self._under_way: dict[tuple[str, str], _Lookup] = {}

    @property
    def under_way(self) -> int:
        """Names that are being looked up."""
        return len(self._under_way)

    async def addresses(self, host: str, tenant: str) -> list[str]:
        """Every address of a name, in the system's order of preference; of IPv6 with its scope, if it has one.

        Args:
            tenant: for whose subscription.

        Raises:
            NotLookedUp: there was no thread for it in time.
            NotResolvedInTime: the answer took too long.
            NotResolved: it has none.
        """
        lookup = self._under_way.get((host, tenant)) or self._begin(host, tenant)
        lookup.wanted_until = time.monotonic() + self._thread_seconds
        try:
            async with asyncio.timeout(self._thread_seconds):
                await lookup.begun.wait()
        except TimeoutError:
            raise NotLookedUp from None
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.shield(lookup.task)
        except TimeoutError:
            raise NotResolvedInTime from None

    async def close(self) -> None:
        """Forget what is under way. Threads that still wait end by themselves, and do not keep the process."""
        lookups = [lookup.task for lookup in self._under_way.values()]
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

    def _begin(self, host: str, tenant: str) -> _Lookup:
        lookup = _Lookup(lambda lookup: self._look_up(host, tenant, lookup))
        self._under_way[host, tenant] = lookup

        def ended(task: asyncio.Task[list[str]]) -> None:
            del self._under_way[host, tenant]
            lookup.begun.set()
            if not task.cancelled():
                task.exception()  # retrieved, since there may be no caller left

        lookup.task.add_done_callback(ended)
        return lookup

    async def _look_up(self, host: str, tenant: str, lookup: _Lookup) -> list[str]:
        threads = self._slow if host in self._slow_names else self._quick
        try:
            async with threads.slot(tenant):
                if time.monotonic() >= lookup.wanted_until:
                    raise NotLookedUp
                lookup.begun.set()
                found = await self._resolve(host)
        except Unavailable:
            raise NotLookedUp from None
        addresses = dict.fromkeys(_address(sockaddr) for *_, sockaddr in found)
        if not addresses:
            raise NotResolved
        return list(addresses)

    async def _resolve(self, host: str) -> Sequence[Any]:
        started = time.monotonic()
        try:
            found: Sequence[Any] = await _in_thread(
                lambda: self._getaddrinfo(host, None, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError) as error:
            is_ours = isinstance(error, OSError) and error.errno in OWN_TROUBLE
            raise (NotLookedUp if is_ours else NotResolved) from None
        finally:
            self._remember(host, is_slow=time.monotonic() - started > self._slow_seconds)
        return found

    def _remember(self, host: str, *, is_slow: bool) -> None:
        self._slow_names.pop(host, None)
        if is_slow:
            self._slow_names[host] = None
            if len(self._slow_names) > SLOW_NAMES:
                self._slow_names.popitem(last=False)


def _threads(at_once: int) -> Bulkhead:
    of_tenant = max(1, int(at_once * TENANT_SHARE))
    return Bulkhead(at_once, WAITING, at_once_of_tenant=of_tenant)


def _address(sockaddr: tuple[Any, ...]) -> str:
    address = str(sockaddr[0])
    if len(sockaddr) == 4 and sockaddr[3] and "%" not in address:
        return f"{address}%{sockaddr[3]}"
    return address


async def _in_thread(call: Callable[[], Any]) -> Any:
    """The result of `call` in a thread of its own, which ends with the process if it must."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = call()
        except Exception as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed, and no caller is left
            loop.call_soon_threadsafe(settle, result, failure)

    try:
        threading.Thread(target=run, name="lookup", daemon=True).start()
    except RuntimeError:  # the machine, or the container, gives no more threads
        raise NotLookedUp from None
    return await future
