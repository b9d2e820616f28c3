"""Tests of behaviour share one running stack per worker."""

from tests.support.live import chosen_bank, deployment, idempotency_key, live, own_environment

__all__ = ["chosen_bank", "deployment", "idempotency_key", "live", "own_environment"]
