"""Who is at the other end of a request: the operator of the session whose token the browser has."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from libs.contracts.principal import Role
from services.console.gateway import OperatorApi


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of an operator who has logged in."""

    name: str
    role: Role
    token: str
    operators: OperatorApi


VISIT = web.RequestKey("visit", Visit)


def visit_of(request: web.Request) -> Visit:
    """Of a request that passed `sessions.logged_in`."""
    return request[VISIT]
