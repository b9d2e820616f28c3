"""Descriptions of fields: the docstring below each field of a model, or what `Args:` in the model's docstring says.

Pydantic can read the former when a class is made, in every process that imports the contracts; here only the process
that makes a document pays for it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel

OURS = ("libs.", "services.")
_ARGUMENT = re.compile(r"^ {4}(\w+): (.+(?:\n {5,}.+)*)", re.MULTILINE)


@cache
def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """By the name that JSON has, those of the model and of its bases; a field's last declaration counts."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        found |= dict(_ARGUMENT.findall(_parts(cls)[1]))
        found |= _by_class(cls.__module__).get(cls.__qualname__, {})
    fields = model.model_fields
    return {
        (name in fields and fields[name].alias) or name: " ".join(text.split())
        for name, text in found.items()
    }


def docstring(model: type[BaseModel]) -> str:
    """Of the model itself, without what it says of its fields; empty where there is none."""
    return _parts(model)[0]


def _parts(cls: type) -> tuple[str, str]:
    """A docstring's text, and its `Args:`, which come last."""
    of = getattr(cls, "__pydantic_generic_metadata__", {}).get("origin") or cls
    own = of.__dict__.get("__doc__") if of.__module__.startswith(OURS) else None
    about, _, arguments = inspect.cleandoc(own or "").partition("Args:\n")
    return about.strip(), arguments


@cache
def _by_class(module: str) -> dict[str, dict[str, str]]:
    """The docstrings of the fields of each class of a module."""
    if not module.startswith(OURS):
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
