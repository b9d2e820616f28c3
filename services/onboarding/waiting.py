"""What waits for a person in onboarding."""

from __future__ import annotations

from libs.contracts.operating.overview import WaitingKind
from libs.handling.operating.waiting import counting
from services.onboarding.repository.step_cases import IS_REFUSED_COMPENSATION, IS_UNKNOWN
from services.onboarding.tables import saga_steps

COUNTS = (
    counting(WaitingKind.UNKNOWN_STEPS, saga_steps.c.first_sent_at, IS_UNKNOWN),
    counting(WaitingKind.REFUSED_COMPENSATIONS, saga_steps.c.recorded_at, IS_REFUSED_COMPENSATION),
)
