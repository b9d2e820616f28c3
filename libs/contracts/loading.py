"""Libraries that few services need, loaded by those.

Every service has all contracts, and few use them all. So validators are built when they are first used
(`libs/contracts/model.py`), or before a service is ready (`build_validators` there), and what one of them needs is
loaded with it.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema

LOADED_AT_USE = ("pydoc",)
"""What libraries import and nothing here uses (stdnum for its own documents): 1.3 MiB of each process."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Marker for `Annotated`: the library is loaded when a validator of the type is built."""

    module: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        for name in LOADED_AT_USE:
            load_at_use(name)
        importlib.import_module(self.module)
        return handler(source)


def load_at_use(name: str) -> None:
    """Have a module's own code run when it is first used, unless it is loaded already (importlib, "Implementing lazy
    imports").
    """
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
