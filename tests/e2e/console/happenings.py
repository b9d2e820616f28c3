"""What an operator finds at the console, made to happen."""

from __future__ import annotations

import aio_pika

from libs.messaging.topology import dead_queue, events_queue
from tests.support.event_bus import event_bus, made_up_events
from tests.support.live import Live
from tests.support.people import new_key

DISPATCHER = "webhook_dispatcher"


async def dead_letter(live: Live) -> str:
    """An event that lies in the dispatcher's dead letters, though nothing is wrong with it any more: its id."""
    [event] = made_up_events(1, live.partner.key.tenant, new_key())
    amqp_url = live.stack.environment.amqp_url
    async with event_bus(amqp_url) as bus:
        await bus.publish([event])
        published = await bus.message(event.event_id)
    connection = await aio_pika.connect(amqp_url)
    async with connection, connection.channel() as channel:
        letter = aio_pika.Message(
            published.body,
            content_type=published.content_type,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=published.message_id,
            type=published.type,
            headers=published.headers,
            user_id=published.user_id,
        )
        await channel.default_exchange.publish(letter, dead_queue(events_queue(DISPATCHER)))
    return event.event_id


async def refused_text(live: Live, text: str) -> None:
    """A message that no service of ours sent, of this text, lies in the dispatcher's dead letters."""
    connection = await aio_pika.connect(live.stack.environment.amqp_url)
    async with connection, connection.channel() as channel:
        letter = aio_pika.Message(
            text.encode(), message_id=text, type=text, app_id=text, headers={"reason": text}
        )
        await channel.default_exchange.publish(letter, dead_queue(events_queue(DISPATCHER)))
