"""Text from outside is text on every page: in each field of each answer, filter and form that pages declare.

The answers follow from the contracts, so a new field, column, page or action is among them by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from html.parser import HTMLParser
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin
from urllib.parse import quote, urlencode
from uuid import UUID

import pytest
import pytest_asyncio

from libs.contracts.errors import InvalidState, LoginRefused
from libs.contracts.model import Model
from libs.contracts.operating.audit import LIST_AUDIT
from libs.contracts.operating.customers import GET_CUSTOMER
from libs.contracts.operating.overview import GET_OVERVIEW
from libs.contracts.operating.search import SEARCH, FoundId, Kind
from libs.contracts.operating.sessions import GET_SESSION, LOG_IN, SessionView
from libs.contracts.operating.traffic import GET_TRAFFIC
from libs.contracts.principal import Role
from services.console.application import SUBJECTS
from services.console.declarations import Action, DetailPage, ListPage, filled, places_of
from services.console.forms import fields_of, filters_of
from services.console.values import read
from tests.unit.console.browser import Browser, console, csrf_of
from tests.unit.console.gateway_double import AT, GatewayDouble

pytestmark = pytest.mark.asyncio(loop_scope="module")

ATTACK = (
    "\"'><img src=x onerror=alert(1)><script>alert(2)</script><b onclick=alert(3) style=x>{{7*7}}"
)
MARK = "<b onclick=alert(3) style=x>{{7*7}}"
"""What of it stays as it is in JSON as well."""

ALL = [subject for _, group in SUBJECTS for subject in group]
LISTS = [subject.page for subject in ALL]
DETAILS = [detail for subject in ALL for detail in subject.details]
ACTIONS = [*dict.fromkeys(action for subject in ALL for action in subject.actions())]
ID = UUID("019aacf2-1b3e-7000-8000-000000000001")


def hostile(annotation: Any, name: str = "") -> Any:
    """A value in which each text is an attack that names its field. No validation has seen it."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return hostile(inner[0], name)
    if origin in (Union, UnionType):
        return hostile(next(each for each in inner if each is not NoneType), name)
    if origin is Literal:
        return inner[0]
    if origin in (list, tuple):
        return [hostile(inner[0], name)]
    if origin in (dict, Mapping):
        return {attack(f"key of {name}"): hostile(inner[1], name)}
    known = {datetime: AT, date: AT.date(), bool: True, int: 1, Decimal: Decimal(1)}
    known |= {float: 1.0, UUID: ID}
    if isinstance(annotation, type) and annotation in known:
        return known[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Model):
        fields = annotation.model_fields.items()
        return annotation.model_construct(
            **{field: hostile(info.annotation, field) for field, info in fields}
        )
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next(iter(annotation))
    assert annotation in (str, Any) or isinstance(annotation, TypeVar), annotation
    return attack(name)


def attack(name: str) -> str:
    return f"{name.replace('_', ' ')} {ATTACK} {name.replace('_', ' ')}"


class Seen(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.scripts = 0
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.scripts += tag == "script"
        if tag in {"img", "b", "iframe"} or any(re.match("on|style$", name) for name in given):
            self.wrong.append(f"<{tag} {given}>")
        for name in ("href", "action", "src"):
            if name in given and not re.match(r"/(?!/)|\?|#", given[name] or ""):
                self.wrong.append(f"{name}={given[name]}")
        self.texts.append(given.get("value") or "")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def looked_at(page: str) -> str:
    """The text of a page, on which nothing of the attacks has become more than text."""
    seen = Seen(page)
    assert seen.wrong == []
    assert seen.scripts <= 2  # htmx.min.js, forms.js
    assert "49" not in seen.text.split()
    return seen.text


def answers() -> GatewayDouble:
    double = GatewayDouble()
    operations = [
        *(page.operation for page in LISTS),
        *(detail.operation for detail in DETAILS),
        *(panel.list.operation for detail in DETAILS for panel in detail.panels),
        *(action.operation for action in ACTIONS),
        *(GET_OVERVIEW, GET_TRAFFIC, SEARCH),
    ]
    for operation in operations:
        double.answer(operation, hostile(operation.reply))
    steps = double.answers[GET_CUSTOMER.name].steps
    steps[0] = steps[0].model_copy(update={"saga_id": str(ID), "step": str(ID)})
    row = double.answers[LIST_AUDIT.name].items[0]
    entry = {name: attack(name) for name in ("actor", "action", "outcome", "reason", "tenant")}
    entry |= {"at": AT.isoformat(), "address": attack("address"), "request_id": attack("request")}
    double.answers[LIST_AUDIT.name].items[0] = row.model_copy(update={"entry": json.dumps(entry)})
    return double


def address_of(page: ListPage | DetailPage | Action) -> str:
    """Of a page, with ids and choices that its command takes."""
    command = page.operation.command
    fields = {each.name: each for each in fields_of(command)}
    needed = {*places_of(page.path), *(n for n, each in fields.items() if each.required)} - {
        "reason"
    }
    given = {
        name: (fields[name].choices or (str(ID),))[0] if name in fields else str(ID)
        for name in sorted(needed)
    }
    query = {n: t for n, t in given.items() if n not in places_of(page.path)}
    if isinstance(page, Action):
        query = {n: t for n, t in query.items() if n in page.carries}
        query |= dict.fromkeys(page.finds, str(ID))
    return filled(page.path, given) + (f"?{urlencode(query)}" if query else "")


def texts_in(value: Any) -> Iterator[str]:
    """All attacks in a value, those of its parts included."""
    match value:
        case str() if MARK in value:
            yield value
        case Model():
            for name in type(value).model_fields:
                yield from texts_in(getattr(value, name))
        case Mapping():
            for each in value.values():
                yield from texts_in(each)
        case list():
            for each in value:
                yield from texts_in(each)


async def seen_at(browser: Browser, address: str) -> str:
    answer = await browser.get(address)
    assert answer.status == 200, (address, answer.status)
    return looked_at(answer.text)


@dataclass
class Shown:
    double: GatewayDouble
    browser: Browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened() -> AsyncIterator[Shown]:
    """One console for all tests: templates are compiled once."""
    double = GatewayDouble()
    async with console(double) as browser:
        yield Shown(double, browser)


@pytest.fixture
def shown(opened: Shown) -> Shown:
    opened.double.answers |= answers().answers
    opened.double.answers.pop(GET_SESSION.name, None)
    return opened


@pytest.mark.parametrize("page", LISTS, ids=lambda page: page.path)
async def test_each_column_is_text(shown: Shown, page: ListPage) -> None:
    text = await seen_at(shown.browser, address_of(page))

    answer = shown.double.answers[page.operation.name]
    asked = shown.double.commands(page.operation)[-1]
    item = page.prepare(getattr(answer, page.items)[0], asked)
    values = {name: read(item, name) for name in page.columns}
    for name, value in values.items():
        if isinstance(value, str) and ATTACK in value:
            assert value in text, name


@pytest.mark.parametrize("page", DETAILS, ids=lambda page: page.path)
async def test_each_field_of_an_item_and_of_its_parts_is_text(
    shown: Shown, page: DetailPage
) -> None:
    ids = {name: str(ID) for panel in page.panels for name in panel.filters.values()}
    answer = shown.double.answers[page.operation.name]
    item = page.single(answer, dict.fromkeys(places_of(page.path), str(ID)))
    if ids:
        shown.double.answer(page.operation, answer.model_copy(update=ids))
    text = await seen_at(shown.browser, address_of(page))

    names = item if isinstance(item, Mapping) else type(item).model_fields
    for name in {*names} - {*page.without, *ids}:
        value = read(item, name)
        if columns := page.columns.get(name):
            value = [read(each, column) for each in value for column in columns]
        for attacked in texts_in(value):
            assert attacked in text or json.dumps(attacked)[1:-1] in text, name


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.path)
async def test_each_field_of_a_form_is_text(shown: Shown, action: Action) -> None:
    address, browser = address_of(action), shown.browser
    fields = fields_of(action.operation.command)
    typed = {each.name: attack(each.name) for each in fields} | {"unknown": ATTACK}
    right = {each.name: each.choices[0] if each.choices else str(ID) for each in fields}
    await seen_at(browser, address)
    wrong = await browser.post(address, typed)
    done = await browser.post(address, right | {"reason": ATTACK})
    shown.double.answer(action.operation, InvalidState(ATTACK))
    refused = await browser.post(address, right | {"reason": ATTACK})

    for answer in (wrong, done, refused):
        text = looked_at(answer.text)
        assert answer.status in {200, 303, 409, 422}
        assert answer.status == 303 or MARK in text


@pytest.mark.parametrize("page", LISTS, ids=lambda page: page.path)
async def test_each_filter_and_failure_of_a_list_is_text(shown: Shown, page: ListPage) -> None:
    address, browser = address_of(page), shown.browser
    joint = "&" if "?" in address else "?"
    filters = [each.name for each in filters_of(page.operation.command, places_of(page.path))]
    typed = urlencode(dict.fromkeys([*filters, "after", "order"], ATTACK))
    looked_at((await browser.get(f"{address}{joint}{typed}")).text)

    shown.double.answer(page.operation, InvalidState(ATTACK))
    assert MARK in looked_at((await browser.get(address)).text)


async def test_the_overview_the_search_and_the_log_in_show_text(shown: Shown) -> None:
    double, browser = shown.double, shown.browser
    found = [hostile(FoundId).model_copy(update={"kind": kind}) for kind in Kind]
    double.answer(SEARCH, hostile(SEARCH.reply).model_copy(update={"found": found}))
    assert MARK in await seen_at(browser, "/")
    assert MARK in await seen_at(browser, f"/search?q={quote(str(ID))}")
    assert MARK in await seen_at(browser, f"/search?q={quote(ATTACK)}")
    looked_at((await browser.get(f"/wires/{quote(ATTACK, safe='')}")).text)

    session = SessionView(name=ATTACK, role=Role.ADMIN, expires_at=AT, enrolment_needed=False)
    double.answer(GET_SESSION, session)
    assert ATTACK in await seen_at(browser, "/")
    door = await browser.get(f"/login?next={quote('/' + ATTACK)}")
    double.answer(LOG_IN, LoginRefused(ATTACK))
    refused = await browser.post(
        "/login", {"csrf": csrf_of(door.text), "name": ATTACK, "password": "x", "next": ATTACK}
    )
    assert ATTACK in looked_at(refused.text)
    looked_at(door.text)
