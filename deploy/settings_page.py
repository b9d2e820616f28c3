"""Writes SETTINGS.md, the settings of all services, from their classes: `python -m deploy.settings_page`."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from deploy.local.services import SERVICES
from libs.runtime.settings import ProcessSettings, names_of
from libs.specs.docstrings import field_docstrings

PAGE = Path(__file__).parent / "SETTINGS.md"
INTRODUCTION = """# Settings

Written by `.venv/bin/python -m deploy.settings_page` from the settings classes; `make check` compares them. What has a
default need not be set. A *secret* can be given as a file or by a program, too: `…_FILE`, `…_COMMAND` (*Secrets* in
[README.md](README.md)). What several services share can be set for one of them alone as well, with its name:
`BANKSIDE_PAYMENTS_LOG_LEVEL`; logins and key rings only so. What production asks for beyond that is checked at the
start, with a sentence for each mistake; `bankside doctor --production` says the same before. Settings of a provider's
company are in *Providers* of README.md.
"""


@dataclass(frozen=True)
class Setting:
    variable: str
    default: str
    is_secret: bool
    description: str

    def row(self) -> str:
        secret = "*secret* " if self.is_secret else ""
        return f"| `{self.variable}` | {self.default} | {secret}{self.description} |"


def settings_class(service: str) -> type[ProcessSettings]:
    found: type[ProcessSettings] = importlib.import_module(f"services.{service}.settings").Settings
    return found


def settings_of(service: str) -> dict[str, Setting]:
    """By field; a setting that can be given for all services has the name without a service."""
    cls = settings_class(service)
    described = field_docstrings(cls)
    return {
        name: Setting(
            names_of(field)[-1],
            _default(field.default),
            "SecretStr" in str(field.annotation),
            " ".join(described[name].split()),
        )
        for name, field in cls.model_fields.items()
    }


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return "**needed**"
    if value in (None, "") or isinstance(value, SecretStr):
        return ""
    if isinstance(value, tuple):
        return f"`{','.join(f'{item:g}' for item in value)}`"  # as it is set
    return f"`{json.dumps(value, default=str).strip(chr(34))}`"


def page() -> str:
    by_service = {service.name: settings_of(service.name) for service in SERVICES}
    shared: dict[Setting, list[str]] = {}
    for service, settings in by_service.items():
        for setting in settings.values():
            shared.setdefault(setting, []).append(service)
    of_all = [s for s, services in shared.items() if len(services) == len(SERVICES)]
    parts = [INTRODUCTION, "## All services\n", _table(of_all)]
    some = {s: names for s, names in shared.items() if 1 < len(names) < len(SERVICES)}
    parts += ["## Several services\n", _table(some, some)]
    for service, settings in by_service.items():
        own = [
            replace(setting, variable=names_of(settings_class(service).model_fields[field])[0])
            for field, setting in settings.items()
            if shared[setting] == [service]
        ]
        if own:
            parts += [f"## {service}\n", _table(own)]
    return "\n".join(parts)


def _table(settings: Iterable[Setting], services: Mapping[Setting, list[str]] | None = None) -> str:
    lines = ["| variable | default | |", "|---|---|---|"]
    for setting in sorted(settings, key=lambda setting: setting.variable):
        row = setting.row()
        lines.append(f"{row[:-2]} ({', '.join(services[setting])}) |" if services else row)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
