"""Requests of partners and customers, and the messages in queues, minute by minute."""

from __future__ import annotations

from http import HTTPMethod
from typing import Annotated

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operation import GATEWAY, Operation, declared_in
from libs.contracts.principal import Role

MOST_MINUTES = 24 * 60
"""As long as they are kept."""
LATENCY_BOUNDS_MS = (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000)
"""Upper bounds; longer requests count in the last one."""


class GetTraffic(Command):
    """The last minutes, the present one included."""

    minutes: Annotated[f.Page, Field(le=MOST_MINUTES)] = 60
    """How many."""


class MinuteOfTraffic(Model):
    """The requests of one minute.

    Args:
        latency: how many requests took how long: a number for each of `bounds_ms`.
    """

    minute: f.UtcDateTime
    """When it began."""
    requests: int
    """How many there were."""
    refused: int
    """How many of `requests` were answered 4xx."""
    failed: int
    """How many of `requests` were answered 5xx."""
    latency: list[int]


class QueuedMessages(Model):
    """The messages in the queues of a service, once a minute."""

    service: str
    messages: list[int | None]
    """For each minute the messages in its queues, dead letters left out; null where it is not known."""


class Traffic(Model):
    """The oldest minute first, minutes without requests included. The present one is up to 10 s behind."""

    bounds_ms: list[int]
    """The upper bounds of `latency`, in milliseconds; longer requests count in the last one."""
    minutes: list[MinuteOfTraffic]
    """Each minute."""
    queues: list[QueuedMessages] = Field(default_factory=list)
    """The same minutes, by service."""


GET_TRAFFIC = Operation(
    name=f"{GATEWAY}.get_traffic",
    method=HTTPMethod.GET,
    path="/operator/traffic",
    role=Role.VIEWER,
    command=GetTraffic,
    reply=Traffic,
    message="Traffic",
    summary="Get the last minutes: the requests, how they were answered, how long they took, and how full queues were",
)

OPERATIONS = declared_in(globals(), Operation)
