"""The virtual environment out of uv.lock. Runs before there is one: standard library only.

uv comes by pip, at the version and with the hashes of uv-requirements.txt, into an environment of its own beside
`.venv` (uv would remove itself from the one it makes).
"""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

from deploy.local import debian
from libs.client.errors import OperatorError

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / ".venv"
TOOLS = ROOT / ".tools"
STAMP = ENVIRONMENT / ".made-from"
LOG = TOOLS / "log"
UV_REQUIREMENTS = Path(__file__).parent / "uv-requirements.txt"
SYSTEM_PYTHON = Path("/usr/bin/python3")
OLDEST_PYTHON = (3, 11)
NEEDED_BYTES = 1_000_000_000
NO_BYTES = 20_000_000

_NO_NETWORK = re.compile(
    r"name resolution|dns error|failed to lookup|Network is unreachable|NewConnectionError|"
    r"ConnectTimeout|Connection refused|error sending request|No route to host|timed out",
    re.IGNORECASE,
)
_DISK_FULL = re.compile(r"No space left on device|os error 28|Disk quota exceeded", re.IGNORECASE)


def main(*, prefer_system: bool = False) -> int:
    """Make `.venv`; an exit code.

    Args:
        prefer_system: see `new_python`.
    """
    try:
        ensure_environment(prefer_system=prefer_system)
    except OperatorError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"The disk is full: {error.filename or ROOT} cannot be written.", file=sys.stderr)
    except KeyboardInterrupt:
        print("Interrupted; the next run goes on from here.", file=sys.stderr)
    else:
        return 0
    return 1


def ensure_environment(*, prefer_system: bool = False) -> None:
    """Nothing but a look at a stamp when `.venv` is what uv.lock says. Raises OperatorError."""
    made_from = _fingerprint()
    usable = (ENVIRONMENT / "bin" / "python").exists()
    if usable and STAMP.exists() and STAMP.read_text() == made_from:
        return
    free = shutil.disk_usage(ROOT).free
    if free < NEEDED_BYTES:
        raise OperatorError(
            f"The disk is nearly full: {free // 1_000_000} MB are free at {ROOT}, and the Python "
            f"packages need {NEEDED_BYTES // 1_000_000} MB."
        )
    STAMP.unlink(missing_ok=True)
    TOOLS.mkdir(exist_ok=True)
    LOG.write_text("")
    uv = _ensure_uv()
    print(
        "Installing the Python packages of uv.lock into .venv (once; a minute or so) ...",
        flush=True,
    )
    # An environment that is there keeps its Python, whichever one we happen to run on.
    python = ENVIRONMENT / "bin" / "python" if usable else new_python(prefer_system=prefer_system)
    _run(
        [
            str(uv),
            "sync",
            "--frozen",
            "--compile-bytecode",
            "--python",
            str(python),
            "--no-progress",
        ],
        "The Python packages could not be installed",
    )
    STAMP.write_text(made_from)


def new_python(*, prefer_system: bool, system: Path = SYSTEM_PYTHON) -> Path:
    """The interpreter of a new `.venv`: the one that runs this, or the system's.

    Debian compiles its Python with the compiler's optimizations by profile. One that pyenv has compiled with its
    defaults takes 1.5 times as long for the same code.

    Args:
        prefer_system: take the system's where it is new enough: PYTHON was not set for make.
    """
    if prefer_system and system.exists():
        is_new = f"import sys; sys.exit(sys.version_info < {OLDEST_PYTHON})"
        if subprocess.run([system, "-c", is_new], capture_output=True, check=False).returncode == 0:
            return system
    return Path(sys.executable)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for name in ("uv.lock", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _ensure_uv() -> Path:
    uv, stamp = TOOLS / "uv" / "bin" / "uv", TOOLS / "uv" / "made-from"
    wanted = UV_REQUIREMENTS.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return uv
    if importlib.util.find_spec("ensurepip") is None:
        _install_venv_module()
    print("Getting uv, which installs what uv.lock says ...", flush=True)
    shutil.rmtree(TOOLS / "uv", ignore_errors=True)
    _run(
        [sys.executable, "-m", "venv", str(TOOLS / "uv")], "A virtual environment could not be made"
    )
    _run(
        [
            *(str(TOOLS / "uv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"),
            *("install", "--quiet", "--retries", "2", "--require-hashes", "--only-binary", ":all:"),
            *("--requirement", str(UV_REQUIREMENTS)),
        ],
        "uv could not be installed",
    )
    stamp.write_text(wanted)
    return uv


def _install_venv_module() -> None:
    """Debian keeps the half of the standard library that makes environments in a package of its own."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    print(f"Installing the system's package {package} ...", flush=True)
    reason = debian.install(package, LOG)
    if reason is not None:
        raise OperatorError(
            f"Python's venv module is missing, and it could not be installed: {reason}. "
            f"Install it (`apt-get install {package}`) and try again."
        )


def _run(command: list[str], failure: str) -> None:
    """Run quietly with the output in LOG. Raises OperatorError, which says the cause, when the command fails."""
    before = LOG.stat().st_size
    with LOG.open("ab") as output:
        done = subprocess.run(
            command, cwd=ROOT, stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False
        )
    if done.returncode == 0:
        return
    with LOG.open("rb") as log:
        log.seek(before)
        said = log.read().decode(errors="replace")
    # Some tools only say that they failed.
    if _DISK_FULL.search(said) or shutil.disk_usage(ROOT).free < NO_BYTES:
        raise OperatorError(f"{failure}: the disk is full.")
    if _NO_NETWORK.search(said):
        raise OperatorError(
            f"{failure}: the package index cannot be reached. Check the network (or the mirror "
            "that pip and uv are told to use) and try again."
        )
    raise OperatorError(f"{failure}; the reason is in {LOG}.")
