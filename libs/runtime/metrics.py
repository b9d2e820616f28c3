"""Prometheus metrics that every service has. Labels are operation names and outcomes, never ids."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25)

HANDLED_SECONDS = Histogram(
    "bankside_handled_seconds",
    "Time to answer a query or to drive a command once, by outcome (an error's code, or ok).",
    ["operation", "outcome"],
    buckets=SECONDS,
)
COMMANDS_ACCEPTED = Counter(
    "bankside_commands_accepted_total",
    "Commands recorded, by operation and whether new, redelivered or repeated.",
    ["operation", "how"],
)
COMMANDS_OPEN = Gauge("bankside_commands_open", "Commands accepted and not final.")
OLDEST_COMMAND_SECONDS = Gauge(
    "bankside_oldest_open_command_seconds", "Age of the oldest command that is not final."
)
EVENTS_RELAYED = Counter("bankside_events_relayed_total", "Events confirmed by the broker.")
