"""Node with the packages that the tests of generated TypeScript use, as tests/contract/typescript locks them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from deploy.local import debian
from deploy.local.state import LocalState

PACKAGE = "npm"
ROOT = Path(__file__).parents[2]
LOCKED = ROOT / "tests" / "contract" / "typescript"
INSTALLED = ROOT / ".tools" / "typescript"
_FILES = ("package.json", "package-lock.json")
_INSTALL_SECONDS = 120


def find_typescript() -> Path | None:
    """The folder of the programs of the locked packages; None when they are not installed."""
    programs = INSTALLED / "node_modules" / ".bin"
    same = all(_text(INSTALLED / name) == _text(LOCKED / name) for name in _FILES)
    return programs if same and programs.is_dir() and shutil.which("node") else None


def ensure_typescript(state: LocalState) -> str | None:
    """Install what is missing. None when all is there, else why it is not."""
    if find_typescript() is not None:
        return None
    log = state.log("install")
    if shutil.which("npm") is None:
        print("npm is not installed: installing the system's package (once) ...", flush=True)
        if reason := debian.install(PACKAGE, log):
            return reason
    INSTALLED.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copy(LOCKED / name, INSTALLED / name)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    with log.open("ab") as output:
        try:
            subprocess.run(
                command,
                cwd=INSTALLED,
                stdout=output,
                stderr=output,
                check=True,
                timeout=_INSTALL_SECONDS,
            )
        except (OSError, subprocess.SubprocessError):
            (INSTALLED / "package-lock.json").unlink()
            return f"npm failed, see {log}"
    return None


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
