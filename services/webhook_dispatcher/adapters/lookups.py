"""From host names to addresses: the system's own resolver, in bounded threads, with a deadline.

`getaddrinfo` knows what this machine knows (its hosts file, its search order) and needs no library; but it cannot be
interrupted, and a name whose servers are silent holds its thread for as long as the system waits, often 10 s and more.
So the threads are our own and never those that the rest of the process uses; however many ask for a name at one moment,
it is looked up once; and names that were slow the last time share a few threads, however many they are. The others have
so many that only hundreds of names which fall silent at one moment can take them all, until they are known to be slow.
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

SECONDS = 5.0
THREAD_SECONDS = 2.0
SLOW_SECONDS = 1.0
SLOW_NAMES = 4096
AT_ONCE, SLOW_AT_ONCE = 256, 64
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
    """A name that is being looked up, or waits for a thread.

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
        at_once: threads for names that are not known to be slow.
        slow_at_once: threads for those that took longer than `slow_seconds` the last time.
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
        self._quick = asyncio.Semaphore(at_once)
        self._slow = asyncio.Semaphore(slow_at_once)
        self._slow_names: OrderedDict[str, None] = OrderedDict()
        self._under_way: dict[str, _Lookup] = {}

    @property
    def under_way(self) -> int:
        """Names that are being looked up."""
        return len(self._under_way)

    async def addresses(self, host: str) -> list[str]:
        """Every address of a name, in the system's order of preference; of IPv6 with its scope, if it has one.

        Raises:
            NotLookedUp: there was no thread for it in time.
            NotResolvedInTime: the answer took too long.
            NotResolved: it has none.
        """
        lookup = self._under_way.get(host) or self._begin(host)
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

    def _begin(self, host: str) -> _Lookup:
        lookup = self._under_way[host] = _Lookup(lambda lookup: self._look_up(host, lookup))

        def ended(task: asyncio.Task[list[str]]) -> None:
            del self._under_way[host]
            lookup.begun.set()
            if not task.cancelled():
                task.exception()  # retrieved, since there may be no caller left

        lookup.task.add_done_callback(ended)
        return lookup

    async def _look_up(self, host: str, lookup: _Lookup) -> list[str]:
        async with self._slow if host in self._slow_names else self._quick:
            if time.monotonic() >= lookup.wanted_until:
                raise NotLookedUp
            lookup.begun.set()
            started = time.monotonic()
            try:
                found = await _in_thread(
                    lambda: self._getaddrinfo(host, None, type=socket.SOCK_STREAM)
                )
            except (OSError, UnicodeError) as error:
                is_ours = isinstance(error, OSError) and error.errno in OWN_TROUBLE
                raise (NotLookedUp if is_ours else NotResolved) from None
            finally:
                self._remember(host, is_slow=time.monotonic() - started > self._slow_seconds)
        addresses = dict.fromkeys(_address(sockaddr) for *_, sockaddr in found)
        if not addresses:
            raise NotResolved
        return list(addresses)

    def _remember(self, host: str, *, is_slow: bool) -> None:
        self._slow_names.pop(host, None)
        if is_slow:
            self._slow_names[host] = None
            if len(self._slow_names) > SLOW_NAMES:
                self._slow_names.popitem(last=False)


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
