"""The services: each a process of its own, started as `python -m services.NAME`."""

import sys

# structlog loads rich where it is installed, for tracebacks on terminals: 4 MiB of each service, and they log JSON.
_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]
import structlog  # noqa: E402, F401

if _rich is None:
    del sys.modules["rich"]
else:
    sys.modules["rich"] = _rich
