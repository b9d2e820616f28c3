"""Descriptions of fields: the docstring below each field of a model, read off the model's source.

Pydantic can do the same when a class is made, in every process that imports the contracts; here only the process that
makes a document pays for it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel


@cache
def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """By name, those of the model and of its bases; a field's last declaration counts."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        found |= _by_class(cls.__module__).get(cls.__qualname__, {})
    return found


@cache
def _by_class(module: str) -> dict[str, dict[str, str]]:
    """The docstrings of the fields of each class of a module."""
    if not module.startswith(("libs.", "services.")):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_of(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _of(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in zip(node.body, node.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, inspect.cleandoc(text)
