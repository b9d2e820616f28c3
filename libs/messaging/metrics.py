"""Prometheus metrics of consumers and of their queues."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

CONSUMER_RESTARTS = Counter(
    "bankside_consumer_restarts_total",
    "Sessions with the broker ended because the consumer of this queue made no progress while messages waited, or"
    " was served nothing.",
    ["queue"],
)
CONSUMER_PAUSED = Gauge(
    "bankside_consumer_paused",
    "1 while the consumer of this queue takes nothing because it cannot record what it takes.",
    ["queue"],
)
QUEUE_MESSAGES = Gauge(
    "bankside_queue_messages",
    "Messages in a queue that are not delivered to a consumer, as the service that owns the queue saw last.",
    ["queue"],
)
QUEUE_OLDEST_SECONDS = Gauge(
    "bankside_queue_oldest_message_seconds",
    "Age of the oldest message in a queue, judged by the one that was delivered last; 0 while the queue is empty.",
    ["queue"],
)
DEAD_LETTERS = Gauge(
    "bankside_dead_letters",
    "Letters in a dead queue, as the service that owns the queue saw last.",
    ["queue"],
)
MESSAGES_REFUSED = Counter(
    "bankside_messages_refused_total",
    "Messages, and envelopes of a batch, that are not taken, by why: sender (one that may not send it), unreadable,"
    " newer_version, not_recordable, may_be_forgotten, missing_key, poison, tenants_share.",
    ["queue", "reason"],
)
