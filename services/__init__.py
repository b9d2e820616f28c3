"""The services: each a process of its own, started as `python -m services.NAME`."""

import sys

# structlog imports rich where it is installed, for tracebacks on terminals: 5 MiB of each service, which logs JSON.
# None in sys.modules makes an import fail (Python's reference, "The module cache"), and structlog goes on without rich.
_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]
import structlog  # noqa: E402, F401

if _rich is None:
    del sys.modules["rich"]
else:
    sys.modules["rich"] = _rich
