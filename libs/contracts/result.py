"""What a handler returns on success: the payload of the envelope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec

from libs.contracts.model import Model
from libs.contracts.operation import Operation


@dataclass(frozen=True, slots=True)
class Result:
    """`data` is a model, a list of models, or None; the rest only where the operation's row has it.

    `msgspec.Raw` stands for a model that is encoded already: its bytes reach the caller as they are. `message` replaces
    that of the row.
    """

    data: Model | msgspec.Raw | list[Any] | None = None
    pagination: Model | None = None
    as_of_date: date | None = None
    message: str | None = None

    def payload(self, operation: Operation) -> dict[str, Any]:
        """As plain values, ready for sealing and encoding."""
        data = self.data
        plain = [_plain(item) for item in data] if isinstance(data, list) else _plain(data)
        payload: dict[str, Any] = {"data": plain}
        if self.pagination is not None:
            payload["pagination"] = self.pagination.model_dump()
        if operation.as_of_date:
            payload["as_of_date"] = self.as_of_date
        return payload


def _plain(item: Model | msgspec.Raw | None) -> Any:
    return item.model_dump() if isinstance(item, Model) else item
