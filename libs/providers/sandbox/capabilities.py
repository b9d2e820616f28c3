"""What the sandbox offers. Settings of the services can say that a bank with its API forgets keys earlier."""

from __future__ import annotations

from libs.providers.capabilities import Lists, RoleCapabilities
from libs.providers.companies import Role
from libs.providers.writing import Capabilities

TRANSIT_SECONDS = 60.0
IDENTITY_WRITES = Capabilities(None, TRANSIT_SECONDS)
CORE_WRITES = Capabilities(24 * 3600.0, TRANSIT_SECONDS)


def _of(writes: Capabilities | None) -> RoleCapabilities:
    return RoleCapabilities(
        writes,
        changes=writes,
        keeps_refusals=True,
        lists=Lists.NUMBERED,
        numbers_feed=True,
    )


CAPABILITIES = {
    Role.IDENTITY: _of(IDENTITY_WRITES),
    Role.CORE: _of(CORE_WRITES),
    Role.FINANCIAL: _of(None),
}
