"""What benchmarks need beyond what the tests need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.local import debian
from deploy.local.environment import ROOT, TOOLS
from libs.client.errors import OperatorError
from tests.benchmarks.wrk import PROGRAM

LOG = TOOLS / "bench-log"
PEERS = TOOLS / "peers"
"""The environment of what we are compared with."""


def ensure_wrk() -> None:
    """Install the system's package unless it is there. Raises OperatorError."""
    if shutil.which(PROGRAM) is not None:
        return
    print("wrk is not installed: installing the system's package (once) ...", flush=True)
    TOOLS.mkdir(exist_ok=True)
    reason = debian.install(PROGRAM, LOG)
    if reason is not None or shutil.which(PROGRAM) is None:
        raise OperatorError(
            f"The load comes from wrk, which is not installed and could not be: "
            f"{reason or 'its package brought no program'}. Install it (`apt-get install wrk`)."
        )


def ensure_peers() -> Path:
    """Bring the peers' environment to what uv.lock says; its Python. Raises OperatorError."""
    command = (
        *(str(TOOLS / "uv" / "bin" / "uv"), "sync", "--frozen", "--compile-bytecode"),
        *("--only-group", "bench", "--no-install-project", "--python", sys.executable),
    )
    with LOG.open("ab") as output:
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=os.environ | {"UV_PROJECT_ENVIRONMENT": str(PEERS)},
                stdout=output,
                stderr=output,
                check=False,
            )
        except FileNotFoundError:
            raise OperatorError("uv is missing: run the benchmarks with `make bench`.") from None
    if done.returncode != 0:
        raise OperatorError(f"The peer's Python packages could not be installed, see {LOG}.")
    return PEERS / "bin" / "python"
