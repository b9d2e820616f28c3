"""The metrics of a running stack: those that rules and dashboards name are there, with the labels that these select by,
and no label has a value for each caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from deploy.local.ports import LOOPBACK
from libs.contracts.table import OPERATIONS, SERVICES
from libs.messaging.topology import REPLIES, consumed_queues
from services.webhook_dispatcher.ports import AttemptOutcome
from tests.support.alerting import OF_TARGETS, expressions, metrics_in, selected_labels
from tests.support.api import Key
from tests.support.live import ACCOUNTS, Live
from tests.support.waiting import eventually

CLOSED = {
    "bound",
    "check",
    "driver",
    "feed",
    "how",
    "kind",
    "of",
    "operation",
    "outcome",
    "pool",
    "provider",
    "queue",
    "reason",
    "state",
    "step",
    "verdict",
    "current",
    "following",
    "le",
    "api",
    "status",
}
"""Labels whose values are listed in code: names of operations, queues, states, outcomes."""
SHORT_NAME = re.compile(r"[a-zA-Z0-9_.:+-]{1,64}")
HEX = re.compile(r"[0-9a-f]{8}")
SUFFIXES = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
}
MOST_SAMPLES = 5_000
"""Of one process: what Prometheus keeps for it."""


OF_INCREASE = {"bankside_increase_new_statuses_total"}
"""Metrics of Increase's adapters, which are not loaded beside the sandbox."""


async def test_what_rules_and_dashboards_name_is_there_with_its_labels(live: Live) -> None:
    families = [family for found in (await _scraped(live)).values() for family in found]

    known = {name for family in families for name in _sample_names(family)}
    labels: dict[str, set[str]] = {}
    for sample in (sample for family in families for sample in family.samples):
        labels.setdefault(sample.name, set()).update(sample.labels)
    named = {name for expression in expressions() for name in metrics_in(expression)}
    assert sorted(named - known - OF_INCREASE) == []
    for expression in expressions():
        for name, selected in selected_labels(expression).items():
            assert name not in labels or selected <= labels[name], expression
        names = metrics_in(expression)
        grouped = _grouped_by(expression) - OF_TARGETS
        if all(name in labels for name in names) and ":" not in expression:
            assert grouped <= set().union(*(labels[name] for name in names), {"le"}), expression


async def test_every_service_measures_how_far_its_clock_is_off_the_databases(live: Live) -> None:
    async def measured() -> bool:
        measuring = {
            service
            for service, families in (await _scraped(live)).items()
            for family in families
            for sample in family.samples
            if sample.name == "bankside_clock_ahead_seconds" and sample.value != 0
        }
        return measuring == {"gateway", *SERVICES}

    await eventually("all have measured it", measured)


async def test_counters_that_alerts_watch_are_there_before_what_they_count(live: Live) -> None:
    watched = {
        (service, sample.name, *sample.labels.values())
        for service, families in (await _scraped(live)).items()
        for family in families
        for sample in family.samples
    }

    errors, refused = "bankside_internal_errors_total", "bankside_messages_refused_total"
    without_event = "bankside_feed_entries_without_event_total"
    attempts = "bankside_webhook_attempts_total"
    consumed = [(service, queue) for service in SERVICES for queue in consumed_queues(service)]
    expected = {
        *((row.service, errors, row.name) for row in OPERATIONS),
        *(("gateway", errors, row.name) for row in OPERATIONS if row.path is not None),
        *((service, refused, queue, "sender") for service, queue in consumed),
        ("gateway", refused, REPLIES, "sender"),
        *((service, "bankside_consumer_restarts_total", queue) for service, queue in consumed),
        ("payments", "bankside_database_clock_setbacks_total"),
        ("gateway", "bankside_gateway_address_not_allowed_total"),
        *(("webhook_dispatcher", attempts, outcome.value) for outcome in AttemptOutcome),
        *(("ledger_read", without_event, reason) for reason in ("never_owned", "not_reported")),
        ("reconciliation", "bankside_reconciliation_runs_total", "gave_up"),
    }
    assert sorted(expected - watched) == []


async def test_a_request_from_an_address_that_its_key_does_not_allow_is_counted(live: Live) -> None:
    made = await live.stack.command(
        *("keys", "create", "--family", "partner", "--tenant", "counted"),
        *("--allow", "203.0.113.7"),
    )

    async def counted() -> float:
        return sum(
            sample.value
            for family in (await _scraped(live))["gateway"]
            for sample in family.samples
            if sample.name == "bankside_gateway_address_not_allowed_total"
        )

    before = await counted()
    refused = await live.api(Key(made["subscription_key"], made["secret"])).get(ACCOUNTS)

    assert refused.code == "address_not_allowed"
    assert await counted() >= before + 1


async def test_labels_have_few_values_and_none_for_a_caller(live: Live) -> None:
    for service, families in (await _scraped(live)).items():
        ours = [family for family in families if family.name.startswith("bankside_")]
        samples = [sample for family in ours for sample in family.samples]

        assert 0 < len(samples) < MOST_SAMPLES, service
        for sample in samples:
            assert sample.labels.keys() <= CLOSED, sample
            for value in sample.labels.values():
                assert SHORT_NAME.fullmatch(value), sample
                assert not HEX.search(value), sample


async def test_names_of_metrics_end_with_their_units(live: Live) -> None:
    for families in (await _scraped(live)).values():
        for family in families:
            if family.type == "histogram" and family.name != "bankside_webhook_ingest_batch":
                assert family.name.endswith("_seconds"), family.name
            assert "seconds" not in family.name or family.name.endswith("seconds"), family.name


async def _scraped(live: Live) -> dict[str, list[Metric]]:
    """What each service says, by its name; the fake of a company has no metrics."""
    found: dict[str, list[Metric]] = {}
    for name, process in live.deployment.stack.services.items():
        if process.module.startswith("services."):
            url = f"http://{LOOPBACK}:{process.admin_port}/metrics"
            async with live.session.get(url) as response:
                assert response.status == 200
                text = await response.text()
            found[name] = list(text_string_to_metric_families(text))
    return found


def _sample_names(family: Metric) -> Iterable[str]:
    return [family.name + suffix for suffix in SUFFIXES.get(family.type, ("",))]


def _grouped_by(expression: str) -> set[str]:
    groups = re.findall(r"\bby \(([^)]*)\)", expression)
    return {label.strip() for group in groups for label in group.split(",")}
