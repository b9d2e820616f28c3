"""The operations of the sandbox's provider APIs, and a token that may do each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from services.provider_sandbox.callers import MAY
from services.provider_sandbox.core import api as core
from services.provider_sandbox.financial import api as financial
from services.provider_sandbox.identity import api as identity
from services.provider_sandbox.operations import Api, Operations
from services.provider_sandbox.provider import method_of
from services.provider_sandbox.statements.links import Links

Tokens = Mapping[str, Mapping[str, str]]
"""By service, then by API: `environment.secrets.provider_tokens`."""


@dataclass(frozen=True)
class Endpoint:
    api: Api
    operation: str
    method: str
    path: str
    """With `{id}` in it."""

    def matches(self, method: str, path: str) -> bool:
        pattern = re.sub(
            r"\{id(:.+?)?\}", lambda found: "[^/]+" if not found[1] else ".+", self.path
        )
        return method == self.method and re.fullmatch(pattern, path) is not None


def endpoints() -> list[Endpoint]:
    """Every operation of the three APIs."""
    apis: dict[Api, Operations] = {
        "identity": identity.OPERATIONS,
        "core": core.operations(timedelta(), timedelta()),
        "financial": financial.operations(1, Links("http://bank.test", "of no use", 1)),
    }
    return [
        Endpoint(api, operation.name, method_of(operation), f"/{api}{operation.path}")
        for api, operations in apis.items()
        for operation in operations
    ]


ENDPOINTS = endpoints()


def authorization(tokens: Tokens, method: str, path: str) -> dict[str, str]:
    """The header of a caller who may make this request; of any caller when it is no operation's."""
    path = path.partition("?")[0]
    for endpoint in ENDPOINTS:
        if endpoint.matches(method, path):
            service = next(
                service
                for (service, api), operations in MAY.items()
                if api == endpoint.api and endpoint.operation in operations
            )
            return bearer(tokens[service][endpoint.api])
    return bearer(tokens["onboarding"]["core"])


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
