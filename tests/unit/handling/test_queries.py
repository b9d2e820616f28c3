"""How long the answer to a query may take, and what becomes of one that looks expired."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from libs.contracts.onboarding_operations import FIND_CUSTOMER
from libs.contracts.principal import SERVICE
from libs.handling import queries
from libs.handling.queries import QueryAnswerer, seconds_for
from libs.messaging.envelope import Envelope, raw
from libs.messaging.replier import Replier
from tests.unit.messaging.test_service_client import NoSealer


@pytest.mark.parametrize(("left", "seconds"), [(25, 22), (5, 2.5), (2, 1), (-1, 0.05)])
def test_an_answer_may_take_what_is_left_but_for_a_margin(left: float, seconds: float) -> None:
    assert seconds_for(left) == seconds


async def test_queries_that_look_expired_are_counted_and_one_line_says_how_late_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As those of a caller whose clock is some seconds behind."""
    monkeypatch.setattr(queries, "prepare", lambda *_, **__: None)
    answerer = QueryAnswerer("onboarding", {}, NoSealer(), Replier("onboarding"))
    late = Envelope(
        id=str(uuid4()),
        message_id=str(uuid4()),
        request_id="request",
        operation=FIND_CUSTOMER.name,
        principal=SERVICE,
        deadline=time.time() - 7,
        body=raw({}),
    )
    labels = {"operation": FIND_CUSTOMER.name, "outcome": "expired"}
    before = REGISTRY.get_sample_value("bankside_handled_seconds_count", labels) or 0

    with capture_logs() as logs:
        for _ in range(3):
            await answerer.answer(late, "payments.replies.1")

    after = REGISTRY.get_sample_value("bankside_handled_seconds_count", labels)
    assert after == before + 3
    [line] = logs
    assert line.pop("late_seconds") >= 7
    assert line == {
        "event": "query_expired",
        "log_level": "warning",
        "operation": FIND_CUSTOMER.name,
        "left_out": 0,
    }
