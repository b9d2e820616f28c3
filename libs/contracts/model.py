"""The bases of every model on the wire, and `sparse`, which turns a model into its update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from libs.contracts.sensitive import SensitiveShape

OF_ANY_RELEASE = "of_any_release"
"""In the context of a validation: what is read was written by another process, perhaps of the earlier or the later
release.
"""

BrokenRule = tuple[tuple[str | int, ...], str]
"""Where in the values a rule is broken, and the rule as a sentence."""


class Model(BaseModel):
    """A value on the wire: strict JSON types, unknown fields refused, never changed once made."""

    # Validators are built when first used: a service that uses a fifth of the models need not hold the others'.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True
    )

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Without the values of sensitive fields, so that none reaches a log or a trace."""
        sensitive = SensitiveShape.of(type(self)).members
        for name, value in super().__repr_args__():
            hidden = value is not None and name in sensitive and sensitive[name].whole
            yield name, "[sensitive]" if hidden else value


class Command(Model):
    """What a caller asks for: path values, query values or body fields, all by name."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        """Rules over several fields, read off the raw values so that they are told together with all else that is
        wrong.
        """
        return []


def sparse(name: str, model: type[Model]) -> Any:
    """The update of `model`: every field may be absent, and objects within are sparse too.

    Null resets an optional field to its default and is refused for a required one. What was sent is what
    `model_dump(exclude_unset=True)` gives.
    """
    hints = get_type_hints(model, include_extras=True)
    fields: dict[str, Any] = {}
    for field_name, info in model.model_fields.items():
        annotation = hints[field_name]
        nested = model_of(annotation)
        if nested is not None:
            annotation = sparse(f"{nested.__name__}Update", nested)
        if not info.is_required():
            annotation = annotation | None
        fields[field_name] = (annotation, None)
    return create_model(name, __base__=model, __doc__=f"Any subset of {model.__name__}.", **fields)


def model_of(annotation: Any) -> type[Model] | None:
    """The model that a field holds: itself, as an item of a list, or unless it is null."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Model):
            return candidate
        if get_args(candidate) and candidate is not annotation:
            nested = model_of(candidate)
            if nested is not None:
                return nested
    return None


def build_validators(models: Iterable[Any]) -> None:
    """Build those of the models among them: the first use of each would wait for it, up to 0.1 s."""
    for model in models:
        if isinstance(model, type) and issubclass(model, Model):
            model.model_rebuild()
