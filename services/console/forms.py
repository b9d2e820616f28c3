"""Fields of commands as fields of HTML forms: which there are, and how what was typed becomes a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from libs.contracts.binding import VALUE_ERROR
from libs.contracts.exact_json import decode_request
from libs.contracts.model import Command
from services.console.values import label, plain

C = TypeVar("C", bound=Command)

REASON = "reason"
PAGING = frozenset({"limit", "after", "order"})
LONGEST_VALUE = 4096
_YES, _NO = "yes", "no"
_FLAGS = {"true": True, "false": False, _YES: True, _NO: False}
_NUMBER = re.compile(r"-?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?")


class Widget(StrEnum):
    TEXT = "text"
    DATE = "date"
    CHOICE = "choice"
    FLAG = "flag"
    LINES = "lines"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form.

    Args:
        default: what it has before anything is typed.
        unset: what a choice is called that is not given.
    """

    name: str
    label: str
    widget: Widget
    required: bool
    choices: tuple[str, ...] = ()
    default: str = ""
    unset: str = "Any"


class WrongValues(Exception):
    """What was typed is no command. `problems`: sentences by field; those of no one field have the name ``."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(" ".join(said(name, problem) for name, problem in problems.items()))
        self.problems = dict(problems)


def said(name: str, problem: str) -> str:
    """A problem away from its field."""
    return f"{label(name)}: {problem}" if name else problem


def fields_of(command: type[Command], without: Iterable[str] = ()) -> tuple[Field, ...]:
    """What can be typed for a command, except the names in `without`."""
    left_out = {*without}
    return tuple(
        _field(name, info) for name, info in command.model_fields.items() if name not in left_out
    )


def filters_of(command: type[Command], decided: Iterable[str] = ()) -> tuple[Field, ...]:
    """By what a list can be narrowed; its address decides some fields already."""
    return fields_of(command, {*PAGING, *decided})


def command_of(command: type[C], typed: Mapping[str, str]) -> C:
    """A command out of texts by the names of its fields. Empty texts are not given.

    Raises:
        WrongValues
    """
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, info in command.model_fields.items():
        text = typed.get(name, "").strip()
        if not text:
            continue
        try:
            values[name] = _read(info.annotation, text)
        except ValueError as error:
            problems[name] = str(error) if type(error) is ValueError else "It has another form."
    if problems:
        raise WrongValues(problems)
    aliased = {command.model_fields[name].alias or name: item for name, item in values.items()}
    for place, rule in command.broken_rules(aliased):
        problems.setdefault(_name(command, place), _sentence(rule))
    try:
        made = command.model_validate(values, by_name=True)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        raise WrongValues(problems_of(command, found, skip=0) | problems) from None
    if problems:
        raise WrongValues(problems)
    return made


def problems_of(
    command: type[Command], errors: Iterable[Mapping[str, Any]], *, skip: int
) -> dict[str, str]:
    """Sentences by field, of errors as Pydantic and the gateway list them.

    Args:
        skip: the number of parts of a place before the field: 1 for the gateway's (`body`, `query`).
    """
    found: dict[str, str] = {}
    for error in errors:
        place = tuple(error.get("loc", ()))[skip:]
        found.setdefault(_name(command, place), _sentence(str(error.get("msg", ""))))
    return found


def _name(command: type[Command], place: tuple[Any, ...]) -> str:
    """The field at a place, which calls it as the wire does; nothing when it is of no one field."""
    called = str(place[0]) if place else ""
    names = (name for name, info in command.model_fields.items() if info.alias == called)
    return next(names, called)


def _sentence(text: str) -> str:
    text = text.removeprefix(VALUE_ERROR)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _field(name: str, info: FieldInfo) -> Field:
    kind = _bare(info.annotation)
    choices = _choices(kind)
    widget, unset = Widget.TEXT, "Choose" if info.is_required() else "Any"
    if choices:
        widget = Widget.CHOICE
    elif kind is bool and _may_be_null(info.annotation):
        # A checkbox could not say "no": an unticked one is not given, which is the default.
        widget, choices, unset = Widget.CHOICE, (_YES, _NO), "Default"
    elif kind is bool:
        widget = Widget.FLAG
    elif get_origin(kind) is list:
        widget = Widget.LINES
    elif get_origin(kind) is dict:
        widget = Widget.JSON
    elif getattr(kind, "__name__", "") == "date":
        widget = Widget.DATE
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    shown = plain(default) if default else ""
    return Field(name, label(name), widget, info.is_required(), choices, shown, unset)


def _may_be_null(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType) and type(None) in get_args(annotation)


def _choices(kind: Any) -> tuple[str, ...]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(member.value) for member in kind)
    return tuple(map(str, get_args(kind))) if get_origin(kind) is Literal else ()


def _bare(annotation: Any) -> Any:
    """The type without constraints and without null."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
        else:
            return annotation


def _read(annotation: Any, text: str) -> Any:
    """Raises ValueError."""
    if len(text) > LONGEST_VALUE:
        raise ValueError(f"At most {LONGEST_VALUE} characters.")
    kind = _bare(annotation)
    if kind is bool:
        if text not in _FLAGS:
            raise ValueError("Yes or no.")
        return _FLAGS[text]
    if kind is int:
        if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20):
            raise ValueError("A whole number.")
        return int(text)
    if kind is Decimal:
        return _number(text)
    if get_origin(kind) is list:
        return [line.strip() for line in text.splitlines() if line.strip()]
    if get_origin(kind) is dict:
        try:
            return decode_request(text.encode())
        except ValueError:
            raise ValueError("A JSON object.") from None
    choices = _choices(kind)
    if choices and text not in choices:
        raise ValueError(f"One of: {', '.join(choices)}.")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(text)
    return text


def _number(text: str) -> Decimal:
    """Commas separate thousands alone: without that `1,50` would be 150."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("A number, such as 1250.5 or 1,250.5.")
    return Decimal(text.replace(",", ""))
