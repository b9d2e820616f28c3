"""Tests of behaviour share one running stack per worker."""

from tests.support.live import deployment, idempotency_key, live, own_environment

__all__ = ["deployment", "idempotency_key", "live", "own_environment"]
