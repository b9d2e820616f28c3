"""The rules and dashboards of deploy/observability, and the metrics that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
OBSERVABILITY = ROOT / "deploy" / "observability"
RULES: list[dict[str, Any]] = [
    rule
    for file in sorted((OBSERVABILITY / "prometheus" / "rules").glob("*.yml"))
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
]
ALERTS: dict[str, dict[str, Any]] = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED: set[str] = {rule["record"] for rule in RULES if "record" in rule}
DASHBOARDS: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text())
    for file in sorted((OBSERVABILITY / "grafana" / "dashboards").glob("*.json"))
}
OF_TARGETS = {"job", "service", "instance"}
"""Labels that Prometheus adds to what it scrapes."""

_NAME = re.compile(r"[a-zA-Z_][\w:]*")
_OURS = re.compile(r"(bankside|process|python)_\w+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r"([a-zA-Z_][\w:]*)\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


def expressions() -> Iterator[str]:
    """Of all rules and dashboards."""
    for rule in RULES:
        yield rule["expr"]
    for dashboard in DASHBOARDS.values():
        for variable in dashboard["templating"]["list"]:
            yield variable["query"]["query"]
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                yield target["expr"]


def metrics_in(expression: str) -> set[str]:
    """The metrics of services and of processes."""
    return {name for name in _names_in(expression) if _OURS.fullmatch(name)}


def recorded_in(expression: str) -> set[str]:
    """What recording rules make."""
    names = _names_in(expression)
    return {name for name in names if ":" in name}


def selected_labels(expression: str) -> dict[str, set[str]]:
    """The labels by which each metric is selected, but for those of targets."""
    found: dict[str, set[str]] = {}
    for metric, selector in _SELECTOR.findall(_STRING.sub('""', expression)):
        if _OURS.fullmatch(metric):
            found.setdefault(metric, set()).update(set(_LABEL.findall(selector)) - OF_TARGETS)
    return found


def _names_in(expression: str) -> set[str]:
    return set(_NAME.findall(_STRING.sub('""', expression)))
