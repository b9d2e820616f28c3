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


class MinuteOfTraffic(Model):
    """
    Args:
        refused, failed: the answers of 4xx and of 5xx, which `requests` counts too.
        latency: how many requests took so long, by the bounds.
    """

    minute: f.UtcDateTime
    requests: int
    refused: int
    failed: int
    latency: list[int]


class QueuedMessages(Model):
    """`messages`: in the queues of a service, dead letters left out, once a minute; null where it is not known."""

    service: str
    messages: list[int | None]


class Traffic(Model):
    """The oldest minute first, minutes without requests included. The present one is up to 10 s behind."""

    bounds_ms: list[int]
    minutes: list[MinuteOfTraffic]
    queues: list[QueuedMessages] = Field(default_factory=list)


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
