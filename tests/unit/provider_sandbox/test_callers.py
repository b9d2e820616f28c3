"""The table of callers, against the operations of the three provider APIs."""

from __future__ import annotations

from services.provider_sandbox.callers import MAY
from tests.support.provider_calls import ENDPOINTS


def test_every_operation_is_allowed_to_a_caller() -> None:
    allowed = {(api, operation) for (_, api), operations in MAY.items() for operation in operations}

    refused_to_all = {(one.api, one.operation) for one in ENDPOINTS} - allowed
    assert not refused_to_all, "each is in a row of services/provider_sandbox/callers.py"
