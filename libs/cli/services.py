"""The services of this distribution, as their settings know them."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files

from libs.runtime.settings import ProcessSettings


def settings_of_services() -> dict[str, type[ProcessSettings]]:
    """By the names of the services."""
    return {
        folder.name: import_module(f"services.{folder.name}.settings").Settings
        for folder in sorted(files("services").iterdir(), key=lambda folder: folder.name)
        if folder.joinpath("settings.py").is_file()
    }
