"""Keys that callers on this machine sign with: where they are stored and how they are found.

The stack writes `.local/credentials.json`; keys that were saved by name are in `.local/keys/<name>.json`. All of them
are readable by their owner only. `.local` is found upward from the current folder.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from libs.client.errors import OperatorError
from libs.secret_sources import BadSecret, read_secret

LOCAL = ".local"
_KEY, _SECRET = "BANKSIDE_SUBSCRIPTION_KEY", "BANKSIDE_SECRET"
STACK = "credentials.json"
"""There: the keys of the stack."""
PARTNER = "partner"
"""The name of the key that the stack makes for its demo partner."""
OPERATOR = "operator"
"""The name of the key that the stack makes for its first operator."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The key and the secret that sign a request."""

    subscription_key: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Stack:
    """Addresses and keys of a running stack, from the file that it wrote."""

    base_url: str
    bank_urls: Mapping[str, str]
    """Of the banks that run beside it, by their names."""
    partner: Credentials | None
    operator_url: str | None
    """None for a stack of a release that had no operators."""
    operator: Credentials | None


def local_folder() -> Path | None:
    """`.local` of the current folder or of the nearest one above it that has one."""
    here = Path.cwd()
    return next((f for folder in (here, *here.parents) if (f := folder / LOCAL).is_dir()), None)


def stack() -> Stack | None:
    """The stack of this checkout; None when none was ever started here.

    Raises:
        OperatorError: its file cannot be read.
    """
    folder = local_folder()
    if folder is None or not (path := folder / STACK).exists():
        return None
    content = _read(path)
    partner, operator = content.get(PARTNER), content.get(OPERATOR)
    urls = {
        name.removesuffix("_url"): url for name, url in content.items() if name.endswith("_url")
    }
    bank_urls = {
        name: url
        for name, url in urls.items()
        if isinstance(url, str) and name not in {"base", OPERATOR, "console"}
    }
    return Stack(
        _text(path, content, "base_url"),
        bank_urls,
        _credentials(path, partner) if isinstance(partner, dict) else None,
        _text(path, content, "operator_url") if "operator_url" in content else None,
        _credentials(path, operator) if isinstance(operator, dict) else None,
    )


def file_with(subscription_key: str) -> Path | None:
    """The file of this checkout's stack where it has this key. Raises OperatorError: it cannot be read."""
    found, folder = stack(), local_folder()
    keys = (found.partner, found.operator) if found is not None else ()
    is_there = any(key is not None and key.subscription_key == subscription_key for key in keys)
    return folder / STACK if is_there and folder is not None else None


def check_can_save(name: str) -> Path:
    """The folder in which a key of this name would be saved, to be checked before the only copy of a secret is made.

    Raises:
        OperatorError: as `save` would.
    """
    if not _NAME.fullmatch(name) or name in {PARTNER, OPERATOR}:
        raise OperatorError(
            f"A key cannot be saved as {name!r}: take letters, digits, '.', '_', '-', and neither '{PARTNER}' nor"
            f" '{OPERATOR}'."
        )
    folder = local_folder()
    if folder is None:
        raise OperatorError(f"There is no {LOCAL} folder here or above to save the key in.")
    return folder


def save(name: str, credentials: Credentials) -> Path:
    """Save a key under a name, for `look_up`, in place of an earlier one. Returns the file.

    Raises:
        OperatorError: the name is not valid, or there is no folder to save the key in.
    """
    folder = check_can_save(name)
    content = {"subscription_key": credentials.subscription_key, "secret": credentials.secret}
    try:
        keys = folder / "keys"
        keys.mkdir(mode=0o700, exist_ok=True)
        path = keys / f"{name}.json"
        descriptor, written = tempfile.mkstemp(dir=keys, prefix=f".{name}.")  # mode 600
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(content, file)
        Path(written).replace(path)
    except OSError as error:
        raise OperatorError(f"The key could not be saved: {error.strerror}.") from None
    return path


def look_up(name_or_key: str | None = None) -> Credentials:
    """The key with this name or subscription key; without one, that of the environment, else the demo partner's.

    Raises:
        OperatorError: there is none, or its secret is not known here.
    """
    known = dict(_known())
    if name_or_key is None:
        _refuse_half(_KEY, os.environ.get(_KEY), _SECRET, os.environ.get(_SECRET))
        found = known.get("", known.get(PARTNER))
        if found is None:
            raise OperatorError(
                "There is no key to sign with: start the stack (make up), name a saved one with --key (saved keys:"
                f" {_names(known)}), or set BANKSIDE_SUBSCRIPTION_KEY and BANKSIDE_SECRET."
            )
        return found
    if name_or_key in known:
        return known[name_or_key]
    for credentials in known.values():
        if credentials.subscription_key == name_or_key:
            return credentials
    raise OperatorError(
        f"The secret of {name_or_key!r} is not known here (saved keys: {_names(known)}); keep it with "
        "`bankside keys create … --save NAME`, or set BANKSIDE_SUBSCRIPTION_KEY and BANKSIDE_SECRET."
    )


def look_up_operator(name_or_key: str | None = None) -> Credentials:
    """The key of an operator: as `look_up`; without a name that of the environment, else that of the stack.

    Raises:
        OperatorError: there is none, or its secret is not known here.
    """
    if name_or_key is not None:
        return look_up(name_or_key)
    key = os.environ.get("BANKSIDE_OPERATOR_SUBSCRIPTION_KEY")
    try:
        secret = read_secret("BANKSIDE_OPERATOR_SECRET")
    except BadSecret as error:
        raise OperatorError(str(error)) from None
    _refuse_half("BANKSIDE_OPERATOR_SUBSCRIPTION_KEY", key, "BANKSIDE_OPERATOR_SECRET", secret)
    if key and secret:
        return Credentials(key, secret)
    found = stack()
    if found is None or found.operator is None:
        raise OperatorError(
            "There is no key of an operator to sign with: start the stack (make up), name a saved one with --key, or"
            " set BANKSIDE_OPERATOR_SUBSCRIPTION_KEY and BANKSIDE_OPERATOR_SECRET."
        )
    return found.operator


def _known() -> Iterator[tuple[str, Credentials]]:
    """By name; that of the environment has the empty name."""
    key, secret = os.environ.get(_KEY), os.environ.get(_SECRET)
    if key and secret:
        yield "", Credentials(key, secret)
    found = stack()
    if found is not None and found.partner is not None:
        yield PARTNER, found.partner
    if found is not None and found.operator is not None:
        yield OPERATOR, found.operator
    folder = local_folder()
    for path in sorted((folder / "keys").glob("[!.]*.json")) if folder else ():
        yield path.stem, _credentials(path, _read(path))


def _names(known: Iterable[str]) -> str:
    return ", ".join(filter(None, known)) or "none"


def _refuse_half(key_name: str, key: str | None, secret_name: str, secret: str | None) -> None:
    """Raises OperatorError: one is set without the other, and another key would sign."""
    if bool(key) != bool(secret):
        raise OperatorError(f"Set {key_name} and {secret_name} both, or neither.")


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict):
        raise OperatorError(f"{path} cannot be read as a JSON object.")
    return content


def _credentials(path: Path, content: dict[str, object]) -> Credentials:
    return Credentials(_text(path, content, "subscription_key"), _text(path, content, "secret"))


def _text(path: Path, content: dict[str, object], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str):
        raise OperatorError(f"{path} does not have {name!r}.")
    return value
