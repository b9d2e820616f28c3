"""When the certificate of a listener expires, as a metric: a renewal that stopped is otherwise noticed by callers."""

from __future__ import annotations

import math

from prometheus_client import Gauge

from libs.tls import expiry_of

EXPIRES = Gauge(
    "bankside_certificate_expires_timestamp_seconds",
    "When the certificate that callers are served expires, as Unix time; +Inf where connections are not encrypted.",
)
EXPIRES.set(math.inf)


def measure(certificate_file: str | None) -> None:
    """Note the expiry of the certificate that is served from now on."""
    expires_at = expiry_of(certificate_file) if certificate_file else None
    EXPIRES.set(math.inf if expires_at is None else expires_at.timestamp())
