"""Scripts of callers of the TypeScript client, and where they can run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from deploy.local.environment import ROOT
from deploy.local.node import PACKAGE, find_typescript
from tests.unit.client.answering import Gateway

CLIENT = ROOT / "libs" / "typescript_client"
Run = Callable[..., Awaitable[list[Any]]]
NOWHERE = Gateway("http://127.0.0.1:1", [])
"""For scripts that send nothing."""
needs_node = pytest.mark.skipif(
    find_typescript() is None,
    reason=f"no Node with its packages: `make test` installs them, `apt-get install {PACKAGE}` Node",
)
