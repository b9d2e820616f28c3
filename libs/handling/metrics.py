"""Prometheus metrics that every service has. Labels are operation names and outcomes, never ids.

A counter that an alert watches is exported at 0 from the start of the process, with each label that it may get: to
Prometheus, one that appears with its first event has not increased.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25)

HANDLED_SECONDS = Histogram(
    "bankside_handled_seconds",
    "Time to answer a query or to drive a command once, by outcome (an error's code, ok, expired, or cancelled).",
    ["operation", "outcome"],
    buckets=SECONDS,
)
INTERNAL_ERRORS = Counter(
    "bankside_internal_errors_total",
    "Answers and drives of commands that ended with a fault of ours, by operation; at 0 from the start.",
    ["operation"],
)
COMMANDS_ACCEPTED = Counter(
    "bankside_commands_accepted_total",
    "Commands recorded, by operation and whether new, redelivered or repeated.",
    ["operation", "how"],
)
COMMANDS_OPEN = Gauge("bankside_commands_open", "Commands accepted, neither final nor parked.")
OLDEST_COMMAND_SECONDS = Gauge(
    "bankside_oldest_open_command_seconds",
    "Age of the oldest command that is neither final nor parked.",
)
COMMANDS_PARKED = Gauge(
    "bankside_commands_parked", "Commands that wait for an operator to retry or abandon them."
)
LONGEST_PARKED_SECONDS = Gauge(
    "bankside_longest_parked_command_seconds",
    "How long the command has been parked that was parked first; 0 without any.",
)
EVENTS_RELAYED = Counter("bankside_events_relayed_total", "Events confirmed by the broker.")
EVENTS_RETURNED = Counter(
    "bankside_events_returned_total", "Events that the broker returned, since no queue takes them."
)
EVENTS_UNROUTABLE = Gauge(
    "bankside_events_unroutable",
    "Events set aside because no queue takes them or an earlier one of their aggregate, of all replicas.",
)
OLDEST_EVENT_SECONDS = Gauge(
    "bankside_oldest_outbox_event_seconds",
    "Age of the oldest event that waits to be published for the first time, of all replicas.",
)
