"""Serves the declared lists: as pages, and as CSV."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from libs.contracts.errors import BanksideError, Invalid, SessionEnded
from libs.contracts.model import Command
from libs.contracts.operating.pages import Order
from libs.contracts.principal import Role
from libs.runtime.routes import Routes
from services.console import csv_export
from services.console.declarations import Action, ListPage, filled, links_of, may, places_of
from services.console.failures import sentence, wrong_values
from services.console.forms import PAGING, Field, WrongValues, command_of, filters_of
from services.console.gateway import OperatorApi
from services.console.rendering import Renderer
from services.console.sessions import CSV
from services.console.values import Cell, Kind, cell, label, plain, read
from services.console.visits import visit_of

CSV_PAGE = "200"


@dataclass(frozen=True, slots=True)
class Row:
    """One item: its cells, and links to what can be done with it."""

    cells: list[tuple[str, Cell]]
    actions: list[tuple[Action, str]]


@dataclass(frozen=True, slots=True)
class Sorted:
    """The column by which a table is sorted, and the link that sorts it the other way."""

    label: str
    order: Order
    link: str


@dataclass(frozen=True, slots=True)
class Table:
    """A page of a list, ready to be shown.

    Args:
        failure: why there are no rows.
        unreachable: services whose rows are missing.
        sorted: None where the order cannot be chosen.
    """

    id: str
    labels: list[str]
    rows: list[Row]
    next: str | None = None
    failure: str | None = None
    unreachable: Sequence[str] = ()
    sorted: Sorted | None = None


def labels_of(page: ListPage) -> list[str]:
    return [label(name.rpartition(".")[2]) for name in page.columns]


def row_of(page: ListPage, item: Any, asked: Command, role: Role) -> Row:
    shown = page.prepare(item, asked)
    links = page.links(shown)
    cells = []
    for number, name in enumerate(page.columns):
        value = cell(name.rpartition(".")[2], read(shown, name), links)
        if number == 0 and page.one:
            value = Cell(value.text, Kind.ID, href=filled(page.one, item))
        cells.append((label(name.rpartition(".")[2]), value))
    return Row(cells, links_of(page.each, item, role))


async def table_of(
    page: ListPage, typed: Mapping[str, str], operators: OperatorApi, role: Role
) -> Table:
    """The rows for these values of filters; a service that does not answer is said in the table.

    Raises:
        WrongValues: the list does not take them.
        SessionEnded
    """
    command = command_of(page.operation.command, {**page.unless_chosen, **_given(typed)})
    try:
        answer = await operators.ask(page.operation, command)
    except Invalid as invalid:
        raise wrong_values(type(command), invalid) from None
    except SessionEnded:
        raise
    except BanksideError as error:
        return Table(page.id, labels_of(page), [], failure=sentence(error))
    return Table(
        page.id,
        labels_of(page),
        [row_of(page, item, command, role) for item in getattr(answer, page.items)],
        next=getattr(answer, "next", None),
        unreachable=getattr(answer, "unreachable", ()),
    )


def _given(typed: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in typed.items() if text.strip()}


class Lists:
    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def add(self, routes: Routes, page: ListPage) -> None:
        async def shown(request: web.Request) -> web.StreamResponse:
            return await self._page(request, page)

        async def exported(request: web.Request) -> web.StreamResponse:
            return await self._csv(request, page)

        routes.add_get(page.path, shown)
        routes.add_get(f"{page.path}{CSV}", exported)

    async def _page(self, request: web.Request, page: ListPage) -> web.Response:
        visit = visit_of(request)
        typed = {**page.unless_chosen, **request.query, **request.match_info}
        path = filled(page.path, request.match_info)
        problems: dict[str, str] = {}
        try:
            table = await table_of(page, typed, visit.operators, visit.role)
        except WrongValues as wrong:
            problems = wrong.problems
            table = Table(page.id, labels_of(page), [])
        filters = filters_of(page.operation.command, places_of(page.path))
        chosen = _chosen(page, filters, typed)
        column = page.sorted_with(typed)
        if column:
            table = replace(table, sorted=_sorted(column, path, chosen))
        return self._renderer.page(
            request,
            "list.html",
            status=422 if problems else 200,
            list=page,
            path=path,
            table=table,
            can_be_sorted=bool(column),
            filters=filters,
            typed=typed,
            is_narrowed=any(typed.get(each.name) for each in filters),
            problems=problems,
            next_link=f"{path}?{urlencode(chosen | {'after': table.next})}" if table.next else None,
            first_link=f"{path}?{urlencode(chosen)}" if typed.get("after") else None,
            csv_link=f"{path}{CSV}?{urlencode(chosen)}",
            make=[
                (action, action.path) for action in page.make if may(visit.role, action.operation)
            ],
        )

    async def _csv(self, request: web.Request, page: ListPage) -> web.StreamResponse:
        """Raises BanksideError when the first page is not answered; later ones break the download off, as does a
        browser that takes too long to read.
        """
        async with asyncio.timeout(csv_export.MOST_SECONDS):
            return await self._exported(request, page)

    async def _exported(self, request: web.Request, page: ListPage) -> web.StreamResponse:
        visit = visit_of(request)
        typed = {**request.query, **request.match_info}
        if "limit" in page.operation.command.model_fields:
            typed["limit"] = CSV_PAGE
        response: web.StreamResponse | None = None
        written = 0
        for number in itertools.count(1):
            try:
                command = command_of(
                    page.operation.command, {**page.unless_chosen, **_given(typed)}
                )
            except WrongValues as wrong:
                if response is not None:
                    raise
                raise web.HTTPUnprocessableEntity(text=str(wrong)) from None
            answer = await visit.operators.ask(page.operation, command)
            if response is None:
                response = await self._begin(request, page)
            items = getattr(answer, page.items)[: csv_export.MOST_ROWS - written]
            shown = [page.prepare(item, command) for item in items]
            lines = [[plain(read(item, name)) for name in page.columns] for item in shown]
            lines += [
                [f"Not complete: {name} did not answer."]
                for name in getattr(answer, "unreachable", ())
            ]
            written += len(items)
            typed["after"] = getattr(answer, "next", None) or ""
            if typed["after"] and written >= csv_export.MOST_ROWS:
                lines.append([f"Not complete: these are the first {csv_export.MOST_ROWS} rows."])
                typed["after"] = ""
            elif typed["after"] and number >= csv_export.MOST_PAGES:
                lines.append(["Not complete: there is more. Narrow the list by a time."])
                typed["after"] = ""
            await response.write(csv_export.rows(lines))
            if not typed["after"]:
                break
        assert response is not None, "there is a first page"
        await response.write_eof()
        return response

    async def _begin(self, request: web.Request, page: ListPage) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/csv; charset=utf-8",
                "Content-Disposition": f'attachment; filename="{page.id}.csv"',
            }
        )
        await response.prepare(request)
        await response.write(csv_export.rows([page.columns]))
        return response


def _sorted(column: str, path: str, chosen: Mapping[str, str]) -> Sorted:
    """The link that reverses the order. It begins at the first page, since a cursor is of one order."""
    is_oldest = chosen.get("order") == Order.OLDEST
    other = Order.NEWEST if is_oldest else Order.OLDEST
    link = f"{path}?{urlencode({**chosen, 'order': other.value})}"
    return Sorted(label(column), Order.OLDEST if is_oldest else Order.NEWEST, link)


def _chosen(page: ListPage, filters: Sequence[Field], typed: Mapping[str, str]) -> dict[str, str]:
    """The query of this list without the place in it."""
    names = [each.name for each in filters] + sorted(PAGING - {"after"})
    return {name: typed[name] for name in names if typed.get(name)}
