"""Where a gateway publishes its documents and the reference, below its origin."""

from __future__ import annotations

from typing import Final

OPENAPI: Final = "/openapi.json"
ASYNCAPI: Final = "/asyncapi.json"
REFERENCE: Final = "/docs"
