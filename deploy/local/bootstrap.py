"""Makes `.venv` out of uv.lock, when it is not there or not up to date. Needs nothing but Python and a network.

Run as `python3 deploy/local/bootstrap.py`, before there is any package: standard library only. It has to be readable
by any Python 3, to be able to say that it is too old. With --prefer-system a new `.venv` has the system's Python where
that is new enough, rather than the one that runs this.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")


def continue_with_newer_python() -> None:
    """Become the first newer Python on PATH that runs, or end with a sentence."""
    for path in filter(None, map(shutil.which, NEWER)):
        probe = [path, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        if subprocess.call(probe, stderr=subprocess.DEVNULL) == 0:
            os.execv(path, [path, *sys.argv])  # noqa: S606 - no shell is wanted
    sys.exit(
        "Bankside needs Python 3.11 or newer, and python3 is {}.{}: install a newer one, "
        "or name it with `make PYTHON=/path/to/python3.x up`.".format(*sys.version_info)
    )


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - whatever pyproject.toml says, python3 may be older
        continue_with_newer_python()
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from deploy.local.environment import main

    sys.exit(main(prefer_system="--prefer-system" in sys.argv[1:]))
