from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from jinja2 import Environment


@pytest.fixture(scope="package", autouse=True)
def templates_compiled_once() -> Iterator[None]:
    """Each console has an environment of its own, all with the same filters, which would compile its templates anew."""
    compiling: Any = Environment.compile
    compiled: dict[tuple[str, ...], Any] = {}

    def compile_once(self: Environment, *template: str) -> Any:
        if template not in compiled:
            compiled[template] = compiling(self, *template)
        return compiled[template]

    with patch.object(Environment, "compile", compile_once):
        yield
