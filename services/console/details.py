"""Serves the declared pages of one item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from libs.contracts.model import Model
from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from libs.gathering import gather_or_cancel
from libs.runtime.routes import Routes
from services.console.declarations import (
    Beside,
    DetailPage,
    Panel,
    filled,
    links_of,
    may,
    places_of,
)
from services.console.failures import does_not_answer
from services.console.forms import WrongValues, command_of
from services.console.gateway import OperatorApi
from services.console.lists import Row, Table, table_of
from services.console.rendering import Renderer
from services.console.values import NO_LINKS, STATES, Cell, Links, cell, label, plain, read
from services.console.visits import Visit, visit_of

PANEL_ROWS = "10"


@dataclass(frozen=True, slots=True)
class Moment:
    """One entry of a timeline."""

    at: Cell
    state: Cell | None
    facts: list[tuple[str, Cell]]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an item: facts, a table or a timeline."""

    id: str
    title: str
    facts: Sequence[tuple[str, Cell]] = ()
    table: Table | None = None
    moments: Sequence[Moment] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    label: str
    ours: Cell
    theirs: Cell
    differs: bool


def typed_of(request: web.Request, operation: Operation) -> dict[str, str]:
    """Values for the fields of a command, from the path and the query."""
    known = operation.command.model_fields
    given = {**request.query, **request.match_info}
    return {name: text for name, text in given.items() if name in known}


async def item_of(page: DetailPage, request: web.Request, operators: OperatorApi) -> Any:
    """The item that the path and the query name.

    Raises:
        BanksideError: as the gateway answered.
        HTTPNotFound: there is no such item, or the id can be none.
        HTTPServiceUnavailable: a service that may have the item does not answer.
    """
    try:
        command = command_of(page.operation.command, typed_of(request, page.operation))
    except WrongValues:
        raise web.HTTPNotFound from None
    answer = await operators.ask(page.operation, command)
    item = page.single(answer, request.match_info)
    if item is not None:
        return item
    if unreachable := getattr(answer, "unreachable", ()):
        raise web.HTTPServiceUnavailable(text=" ".join(map(does_not_answer, unreachable)))
    raise web.HTTPNotFound


def facts_of(
    item: Any, without: Iterable[str] = (), links: Links = NO_LINKS
) -> list[tuple[str, Cell]]:
    """The fields of an item that are no parts (`sections_of`)."""
    left_out = {*without}
    return [
        (label(name), cell(name, value, links))
        for name, value in _fields(item)
        if name not in left_out and not _is_part(value)
    ]


def sections_of(page: DetailPage, item: Any, role: Role) -> list[Section]:
    """The parts of an item, each with its own parts behind it: the declared ones first, then those that the contract
    has besides.
    """
    names = [*page.parts, *(name for name, value in _fields(item) if _is_part(value))]
    return [
        section
        for name in dict.fromkeys(names)
        if name not in page.without and (value := read(item, name))
        for section in _sections(page, name, value, role)
    ]


def compared(page: DetailPage, item: Any) -> list[Compared]:
    """Both sides of an item. A value that only one side has differs where the sides are whole objects."""
    found = []
    for each in beside_of(page, item):
        ours, theirs = read(item, each.ours), read(item, each.theirs)
        if ours is None and each.otherwise:
            ours = read(item, each.otherwise)
        found.append(
            Compared(
                each.label,
                cell(each.ours.rpartition(".")[2], ours),
                cell(
                    each.theirs.rpartition(".")[2], theirs, {each.theirs.rpartition(".")[2]: None}
                ),
                not _same(ours, theirs) and (page.two_sides is not None or theirs is not None),
            )
        )
    return found


def beside_of(page: DetailPage, item: Any) -> list[Beside]:
    """What is compared of this item: the declared values, and each member of its two sides."""
    found = list(page.beside)
    if page.two_sides is not None:
        ours, theirs = page.two_sides
        names = dict.fromkeys([*(read(item, ours) or {}), *(read(item, theirs) or {})])
        found += [Beside(label(name), f"{ours}.{name}", f"{theirs}.{name}") for name in names]
    return found


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, Decimal) and isinstance(theirs, Decimal):
        return ours == theirs
    return plain(ours) == plain(theirs)


def _fields(item: Any) -> list[tuple[str, Any]]:
    if isinstance(item, Mapping):
        return list(item.items())
    return [(name, getattr(item, name)) for name in type(item).model_fields]


def _is_part(value: Any) -> bool:
    return isinstance(value, Model) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Model)
    )


def _sections(page: DetailPage, name: str, value: Any, role: Role) -> Iterator[Section]:
    if isinstance(value, list):
        yield _section_of_list(page, name, value, role)
        return
    yield Section(name, label(name), facts=facts_of(value, links=page.links(value)))
    for inner, part in _fields(value):
        if _is_part(part):
            yield from _sections(page, inner, part, role)


def _section_of_list(page: DetailPage, name: str, value: list[Any], role: Role) -> Section:
    title = label(name)
    if name in page.timeline:
        return Section(name, title, moments=[_moment(page, each) for each in value])
    columns = page.columns.get(name) or tuple(field for field, _ in _fields(value[0]))
    actions = page.each.get(name, ())
    called = page.called.get(name, {})
    names = {field: called.get(field, field.rpartition(".")[2]) for field in columns}
    rows = [
        Row(
            [
                (label(shown), cell(shown, read(each, field), page.links(each)))
                for field, shown in names.items()
            ],
            links_of(actions, each, role),
        )
        for each in value
    ]
    return Section(name, title, table=Table(name, [*map(label, names.values())], rows))


def _moment(page: DetailPage, each: Any) -> Moment:
    links = page.links(each)
    fields = dict(_fields(each))
    at = next((name for name, value in fields.items() if isinstance(value, datetime)), "at")
    state = next((name for name in fields if name in STATES), None)
    return Moment(
        cell(at, fields.get(at)),
        cell(state, fields[state]) if state else None,
        [
            (label(n), cell(n, v, links))
            for n, v in fields.items()
            if n not in (at, state) and v is not None
        ],
    )


class Details:
    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def add(self, routes: Routes, page: DetailPage) -> None:
        async def shown(request: web.Request) -> web.StreamResponse:
            return await self._page(request, page)

        routes.add_get(page.path, shown)

    async def _page(self, request: web.Request, page: DetailPage) -> web.Response:
        visit = visit_of(request)
        item = await item_of(page, request, visit.operators)
        panels = await gather_or_cancel(
            (
                _panel(panel, item, visit)
                for panel in page.panels
                if may(visit.role, panel.list.operation)
            ),
            name="panel",
        )
        return self._renderer.page(
            request,
            "detail.html",
            detail=page,
            name=cell(page.name, read(item, page.name)).text,
            facts=facts_of(
                item, {*page.without, *(page.two_sides or ()), page.name}, page.links(item)
            ),
            sections=sections_of(page, item, visit.role),
            compared=compared(page, item),
            actions=links_of(page.actions, item, visit.role),
            panels=panels,
        )


async def _panel(panel: Panel, item: Any, visit: Visit) -> tuple[Panel, Table, str]:
    """With the link to the whole list."""
    typed = {name: plain(read(item, field)) for name, field in panel.filters.items()}
    typed = {**panel.list.unless_chosen, **typed}
    rows = {"limit": PANEL_ROWS} if "limit" in panel.list.operation.command.model_fields else {}
    table = await table_of(panel.list, typed | rows, visit.operators, visit.role)
    given = {name: text for name, text in typed.items() if name not in places_of(panel.list.path)}
    path = filled(panel.list.path, typed)
    return panel, table, f"{path}?{urlencode(given)}" if given else path
