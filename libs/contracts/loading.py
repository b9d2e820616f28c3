"""Libraries that few services need, loaded by those.

Every service has all contracts, and few use them all. So validators are built when they are first used
(`libs/contracts/model.py`), or before a service is ready (`build_validators` there), and what one of them needs is
loaded with it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Needs:
    """Marker for `Annotated`: the library is loaded when a validator of the type is built."""

    module: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        importlib.import_module(self.module)
        return handler(source)
