"""What waits for a person, and the messages in queues: the models, and the rows of services and of the gateway."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPMethod
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.audit import SERVICES
from libs.contracts.operating.services import for_each_service, of_gateway, of_services
from libs.contracts.operation import GATEWAY, Operation
from libs.contracts.principal import Role

MOST_COUNTED = 1000
"""A count that has reached it stands for as many or more."""


class WaitingKind(StrEnum):
    """What waits for a person."""

    UNKNOWN_WIRES = "unknown_wires"
    WIRES_FOR_APPROVAL = "wires_for_approval"
    PARKED_COMMANDS = "parked_commands"
    DEAD_LETTERS = "dead_letters"
    UNKNOWN_STEPS = "unknown_steps"
    REFUSED_COMPENSATIONS = "refused_compensations"
    DIFFERENCES = "differences"
    UNAVAILABLE_SUBSCRIPTIONS = "unavailable_subscriptions"
    STOPPED_FEEDS = "stopped_feeds"
    EXPIRING_KEYS = "expiring_keys"
    RESTORES = "restores"


class GetOverview(Command):
    """What waits now."""


class Waiting(Model):
    """How much of one kind waits.

    Args:
        count: at most 1,000, which stands for as many or more.
        oldest_at: since when the oldest of them waits; null where that is not known.
    """

    kind: Annotated[WaitingKind, Field(strict=False)]
    """What waits."""
    count: int
    oldest_at: f.UtcDateTime | None


class QueueDepth(Model):
    """How full a queue is."""

    queue: str
    messages: int
    """Messages that are not delivered to a consumer."""


class GetQueueDepths(Command):
    """The messages in the queues of a service now."""


class QueueDepths(Model):
    """`queues`: null while the broker, or the leader of one of them, does not answer."""

    queues: list[QueueDepth] | None


class ServiceOverview(Model):
    """Of one service. Kinds of which nothing waits are left out."""

    service: str
    waiting: list[Waiting]
    """What waits for a person."""
    queues: list[QueueDepth] | None
    """Its queues; null while the broker, or the leader of one of them, does not answer."""


class Overview(Model):
    """What waits for a person, of every service."""

    services: list[ServiceOverview]
    """Each service that answered."""
    unreachable: list[str]


OVERVIEW_OF = for_each_service(
    SERVICES, "get_overview", command=GetOverview, reply=ServiceOverview, summary="What waits now"
)
DEPTHS_OF = for_each_service(
    [service for service in SERVICES if service != GATEWAY],
    "get_queue_depths",
    command=GetQueueDepths,
    reply=QueueDepths,
    summary="How many messages wait in the queues",
)
"""Asked by the gateway every minute, which keeps them for a day; the gateway itself has no queue of this kind."""
OPERATIONS = of_services(OVERVIEW_OF, DEPTHS_OF)

GET_OVERVIEW = Operation(
    name="gateway.get_overview",
    method=HTTPMethod.GET,
    path="/operator/overview",
    role=Role.VIEWER,
    command=GetOverview,
    reply=Overview,
    message="Overview",
    summary="Count what waits for a person, with the age of the oldest, and what waits in queues, by service",
    extension=True,
)
GATEWAY_OPERATIONS = (GET_OVERVIEW, *of_gateway(OVERVIEW_OF))
