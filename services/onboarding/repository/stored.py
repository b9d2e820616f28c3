"""Models read back from their JSON columns by their types alone.

The rules of input are for what callers send. What was taken once stays readable when they become stricter, and they
cost many times as much as reading does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from libs.contracts.model import Model

ModelT = TypeVar("ModelT", bound=Model)


def read_stored(model: type[ModelT], values: Mapping[str, Any]) -> ModelT:
    """The model of what its `model_dump` wrote; what it does not name is left aside."""
    read = {
        name: msgspec.convert(values[name], hint, dec_hook=_nested)
        for name, hint in _types(model).items()
        if name in values
    }
    return cast(ModelT, model.model_construct(**read))


@lru_cache(maxsize=64)
def _types(model: type[Model]) -> dict[str, Any]:
    """Of each field, without the rules that annotate it."""
    hints = get_type_hints(model)
    return {name: hints[name] for name in model.model_fields}


def _nested(kind: type, value: Any) -> Any:
    if issubclass(kind, Model):
        return read_stored(kind, value)
    raise TypeError(f"a stored {kind.__name__} cannot be read")
