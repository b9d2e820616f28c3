"""Secrets of the environment. A secret `<NAME>` is given in one of three ways:

| variable | the secret is |
|---|---|
| `<NAME>` | its value |
| `<NAME>_FILE` | what the file with this name contains |
| `<NAME>_COMMAND` | what this program writes to its standard output: the port to a key management service |

A command is a program with its arguments, divided as a POSIX shell does; no shell runs it. It is run anew each time the
secret is read: when a process starts.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

LARGEST_BYTES = 65_536
COMMAND_SECONDS = 10.0


class BadSecret(Exception):
    """A secret cannot be taken from the environment. The message is a sentence for the operator and never quotes it."""


def file_variable(name: str) -> str:
    """The variable that names the file with the secret `name`."""
    return f"{name}_FILE"


def command_variable(name: str) -> str:
    """The variable with the program that writes the secret `name`."""
    return f"{name}_COMMAND"


def variables(name: str) -> tuple[str, str, str]:
    """Every variable by which the secret `name` can be given."""
    return name, file_variable(name), command_variable(name)


def is_set(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the secret is given, in any way."""
    return any(environment.get(variable) for variable in variables(name))


def read_secret(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The secret without the line break at its end; None when it is not given. A variable that is empty is not set.

    Raises:
        BadSecret: it is given in more than one way, or the file or the program has no secret that can be read.
    """
    given = [variable for variable in variables(name) if environment.get(variable)]
    if not given:
        return None
    if len(given) > 1:
        raise BadSecret(f"{' and '.join(given)} are set at once: leave one of them.")
    [variable] = given
    value = environment[variable]
    if variable == name:
        return value
    is_file = variable == file_variable(name)
    source, read = (value, _contents) if is_file else (_program(variable, value), _output)
    try:
        secret = _text(read(value))
    except OSError as error:
        done = "cannot be read" if is_file else "cannot be run"
        raise BadSecret(f"{variable}: {source} {done}: {error.strerror}.") from None
    except ValueError as error:
        raise BadSecret(f"{variable}: {source} {error}.") from None
    return secret


def require_private(name: str) -> None:
    """Nothing when the secret is not given as a file.

    Raises:
        BadSecret: more users than necessary can read the file. Necessary are its owner and, when the process is another
            user's, a group of the process: orchestrators mount secrets so.
    """
    path = os.environ.get(file_variable(name))
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


def _contents(path: str) -> bytes:
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise ValueError("is not a file")
    with Path(path).open("rb") as file:
        return file.read(LARGEST_BYTES + 1)


def _program(variable: str, command: str) -> str:
    """The name of the program, which is all that is told of a command. Raises BadSecret."""
    try:
        program, *_ = shlex.split(command)
    except ValueError:
        raise BadSecret(f"{variable}: it is no program with arguments: see its quotes.") from None
    return program


def _output(command: str) -> bytes:
    """What the program writes. What it writes to its standard error is dropped, since it may quote the secret."""
    try:
        ended = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"has not ended after {COMMAND_SECONDS:g} s") from None
    if ended.returncode:
        raise ValueError(f"ended with status {ended.returncode}: run it by hand to see why")
    return ended.stdout


def _text(found: bytes) -> str:
    """Raises ValueError, with a phrase that follows the name of the source."""
    if len(found) > LARGEST_BYTES:
        raise ValueError(f"has more than {LARGEST_BYTES} bytes")
    try:
        secret = found.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError("has no text in UTF-8") from None
    if not secret.strip():
        raise ValueError("is empty")
    return secret
