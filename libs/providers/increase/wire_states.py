"""The states of wires at Increase, in ours. It accepts a wire before anyone has approved or reviewed it."""

from __future__ import annotations

from collections.abc import Mapping

from libs.contracts.wires import WireState

STATES: Mapping[str, WireState] = {
    "pending_approval": WireState.SUBMITTED,
    "pending_creating": WireState.SUBMITTED,
    "pending_reviewing": WireState.SUBMITTED,
    "requires_attention": WireState.SUBMITTED,
    "submitted": WireState.SUBMITTED,
    "complete": WireState.COMPLETED,
    "rejected": WireState.REJECTED,
    "canceled": WireState.REJECTED,
    "reversed": WireState.RETURNED,
}
