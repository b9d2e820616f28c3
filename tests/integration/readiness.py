"""Whether a service's part at the broker says that it is ready."""

from __future__ import annotations

from libs.messaging.broker import Broker


async def is_ready(broker: Broker) -> bool:
    try:
        await broker.ping()
    except ConnectionError:
        return False
    return True


async def is_not_ready(broker: Broker) -> bool:
    return not await is_ready(broker)
