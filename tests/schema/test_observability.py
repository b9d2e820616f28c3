"""Prometheus takes its configuration in deploy/observability; each alert fires when it should; what its paragraph of
deploy/RUNBOOK.md names exists. Whether the metrics exist is asked of a running stack (tests/e2e/test_metrics.py).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from cyclopts import App

from deploy.local.promtool import PACKAGE, find_promtool
from deploy.local.services import SERVICES
from libs.cli.cli import make_app
from libs.contracts.errors import BanksideError
from tests.support.alerting import (
    ALERTS,
    DASHBOARDS,
    OBSERVABILITY,
    RECORDED,
    ROOT,
    expressions,
    recorded_in,
)
from tests.support.pace import pace

PROMETHEUS = OBSERVABILITY / "prometheus"
RUNBOOK = (ROOT / "deploy" / "RUNBOOK.md").read_text()
PARAGRAPHS = dict(re.findall(r"(?ms)^### (\w+)\n\n(.*?)(?=^##|\Z)", RUNBOOK))
RULE_TESTS = sorted((Path(__file__).parent / "observability").glob("*.yml"))
CHECK_SECONDS = 120
SEVERITIES = {"critical", "warning"}


def promtool(*arguments: str) -> None:
    program = find_promtool()
    if program is None:
        pytest.skip(f"there is no promtool: `apt-get install {PACKAGE}`")
    done = subprocess.run(
        [program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=CHECK_SECONDS * pace(),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_its_configurations() -> None:
    promtool("check", "config", *map(str, PROMETHEUS.glob("*.yml")))


def test_alerts_fire_when_they_should_and_at_no_other_time() -> None:
    promtool("test", "rules", *map(str, RULE_TESTS))


def test_each_alert_is_tried_firing_and_silent() -> None:
    tried: dict[str, set[bool]] = {}
    for file in RULE_TESTS:
        for case in yaml.safe_load(file.read_text())["tests"]:
            for one in case["promql_expr_test"]:
                assert f'"{case["name"]}"' in one["expr"]
                tried.setdefault(case["name"], set()).add(bool(one["exp_samples"]))

    assert tried == {alert: {True, False} for alert in ALERTS}


def test_each_alert_says_what_it_means_and_where_its_paragraph_is() -> None:
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in SEVERITIES, name
        assert "for" in rule, name
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}, name
        assert rule["annotations"]["runbook_url"] == f"deploy/RUNBOOK.md#{name.lower()}"


def test_each_alert_has_a_paragraph_and_each_paragraph_an_alert() -> None:
    assert sorted(PARAGRAPHS) == sorted(ALERTS)
    for name, text in PARAGRAPHS.items():
        assert re.findall(r"(?m)^\*\*(\w+)\.\*\*", text) == ["Means", "Look", "Do"], name
    assert set(re.findall(r"\bBankside[A-Z]\w+", RUNBOOK)) == ALERTS.keys()


def test_the_runbook_names_commands_options_log_events_and_pages_that_exist() -> None:
    code = "\n".join(text for folder in ("libs", "services") for text in _sources(ROOT / folder))
    pages = "\n".join(_sources(ROOT / "services" / "console"))

    for command in re.findall(r"`bankside ([^`]+)`", RUNBOOK):
        _check_command(command.split())
    for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", RUNBOOK):
        is_service = name in {service.name for service in SERVICES}
        assert is_service or f'"{name}"' in code or f"'{name}'" in code, name
    for path in re.findall(r"`(/[a-z-]+)`", RUNBOOK):
        assert f'"{path}"' in pages, path
    for setting in re.findall(r"`BANKSIDE_(?:<SERVICE>|[A-Z]+)_([A-Z_]+)`", RUNBOOK):
        assert re.search(rf"(?m)^    {setting.lower()}: ", code) or setting == "CPUS", setting
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", RUNBOOK):
        assert (ROOT / "deploy" / target).exists(), target


def test_errors_of_the_rules_are_the_answers_of_500_and_more() -> None:
    codes = {error.code for error in _all_errors(BanksideError) if error.status >= 500}
    [rule] = [e for e in expressions() if 'outcome=~"' in e and "handled" in e]
    [pattern] = re.findall(r'outcome=~"([^"]+)"', rule)

    assert set(pattern.split("|")) == codes


def test_what_is_recorded_is_read_and_what_is_read_is_recorded() -> None:
    read = {name for expression in expressions() for name in recorded_in(expression)}

    assert read == RECORDED


def test_a_gauge_that_every_replica_has_is_not_added_up_over_them() -> None:
    sources = "\n".join(text for folder in ("libs", "services") for text in _sources(ROOT / folder))
    gauges = set(re.findall(r'Gauge\(\s*"(\w+)"', sources))
    summed = [
        (name, expression)
        for expression in expressions()
        for by, name in re.findall(r"\bsum(?: by \(([^)]*)\))? ?\((\w+)", expression)
        if name in gauges and "instance" not in by
    ]

    assert gauges
    assert summed == []


def test_prometheus_asks_every_service() -> None:
    [job, _] = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["scrape_configs"]
    asked = job["dns_sd_configs"][0]["names"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]

    assert sorted(asked) == sorted(
        compose[service.name]["networks"]["admin"]["aliases"][0] for service in SERVICES
    )


def test_dashboards_are_told_apart_and_ask_prometheus() -> None:
    assert {"overview", "wires", "webhooks", "providers", "service"} == DASHBOARDS.keys()
    for name, dashboard in DASHBOARDS.items():
        assert dashboard["uid"] == f"bankside-{name}"
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        assert {panel["datasource"]["uid"] for panel in panels} == {"prometheus"}
        assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def _check_command(words: list[str]) -> None:
    """Whether the command line has the command, and what it is given by name."""
    app: App = make_app([])
    while words and words[0].islower() and words[0].isalpha() and words[0] in _commands(app):
        app = app[words.pop(0)]
    assert app.default_command is not None, words
    options = [word for word in words if word.startswith("--")]
    known = {name for argument in app.assemble_argument_collection() for name in argument.names}
    assert set(options) <= known, (options, known)


def _commands(app: App) -> set[str]:
    return {name for name in app if not name.startswith("-")}


def _sources(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*.py"):
        yield file.read_text()


def _all_errors(error: type[BanksideError]) -> Iterator[type[BanksideError]]:
    for one in error.__subclasses__():
        yield one
        yield from _all_errors(one)
