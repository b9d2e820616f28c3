"""The request that the current task serves, and who signed it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class RequestContext(NamedTuple):
    """`actor`: the subscription key, or the operator as `operator:NAME`; None until the signature is verified."""

    request_id: str
    actor: str | None


request_context: ContextVar[RequestContext | None] = ContextVar("request_context", default=None)
"""The request that the current task serves, and who signed it. Set for each request; log records carry both, outgoing
queries and recorded events the request id.
"""
