"""Secrets of the environment: the value of a variable, or the contents of the file that `<NAME>_FILE` names."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

LARGEST_BYTES = 65_536


class BadSecret(Exception):
    """A secret cannot be taken from the environment. The message is a sentence for the operator and never quotes it."""


def file_variable(name: str) -> str:
    """The variable that names the file with the secret `name`."""
    return f"{name}_FILE"


def is_set(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the secret is given, in either way."""
    return bool(environment.get(name) or environment.get(file_variable(name)))


def read_secret(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The secret without the line break at its end; None when it is not given. A variable that is empty is not set.

    Raises:
        BadSecret: it is given in both ways, or the file has no secret that can be read.
    """
    path = environment.get(file_variable(name))
    if not path:
        return environment.get(name) or None
    if environment.get(name):
        raise BadSecret(f"{name} and {file_variable(name)} are both set: unset one of them.")
    try:
        secret = _contents(Path(path))
    except OSError as error:
        raise BadSecret(_sentence(name, path, f"cannot be read: {error.strerror}")) from None
    except ValueError as error:
        raise BadSecret(_sentence(name, path, str(error))) from None
    if not secret.strip():
        raise BadSecret(_sentence(name, path, "is empty"))
    return secret


def require_private(name: str, environment: Mapping[str, str] = os.environ) -> None:
    """Nothing when the secret is not given as a file.

    Raises:
        BadSecret: more users than necessary can read the file. Necessary are its owner and, when the process is another
            user's, a group of the process: orchestrators mount secrets so.
    """
    path = environment.get(file_variable(name))
    if path:
        require_private_file(file_variable(name), path)


def require_private_file(variable: str, path: str) -> None:
    """As `require_private`, of the file that this variable names. Raises BadSecret."""
    try:
        found = Path(path).stat()
    except OSError as error:
        raise BadSecret(f"{variable}: {path} cannot be read: {error.strerror}.") from None
    by_group = found.st_mode & stat.S_IRGRP
    is_needed = found.st_uid != os.geteuid() and found.st_gid in {os.getegid(), *os.getgroups()}
    if found.st_mode & stat.S_IROTH or (by_group and not is_needed):
        raise BadSecret(f"{variable}: {path} can be read by other users: chmod 600 it.")


def _contents(path: Path) -> str:
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("is not a file")
    with path.open("rb") as file:
        found = file.read(LARGEST_BYTES + 1)
    if len(found) > LARGEST_BYTES:
        raise ValueError(f"is larger than {LARGEST_BYTES} bytes")
    try:
        return found.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError("is not text in UTF-8") from None


def _sentence(name: str, path: str, problem: str) -> str:
    return f"{file_variable(name)}: {path} {problem}."
