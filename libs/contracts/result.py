"""What a handler returns on success: the payload of the envelope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from libs.contracts.model import Model
from libs.contracts.operation import Operation


@dataclass(frozen=True, slots=True)
class Result:
    """`data` is a model, a list of models, or None; the rest only where the operation's row has it."""

    data: Model | list[Any] | None = None
    pagination: Model | None = None
    as_of_date: date | None = None

    def payload(self, operation: Operation) -> dict[str, Any]:
        """As plain values, ready for sealing and encoding."""
        data = self.data
        plain = (
            [item.model_dump() for item in data]
            if isinstance(data, list)
            else data.model_dump()
            if data is not None
            else None
        )
        payload: dict[str, Any] = {"data": plain}
        if self.pagination is not None:
            payload["pagination"] = self.pagination.model_dump()
        if operation.as_of_date:
            payload["as_of_date"] = self.as_of_date
        return payload
