"""What pages declare exists in the contracts."""

from __future__ import annotations

from collections.abc import Iterable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from libs.contracts.model import Model
from libs.contracts.operating.overview import WaitingKind
from services.console.application import SUBJECTS
from services.console.declarations import Action, DetailPage, ListPage, Subject, places_of
from services.console.forms import REASON, Widget, command_of, fields_of, filters_of
from services.console.pages import audit
from services.console.pages.overview import WORDS
from tests.support.with_each import with_each

ALL = [subject for _, group in SUBJECTS for subject in group]
LISTS = [subject.page for subject in ALL if subject.page is not audit.LIST]
DETAILS = [detail for subject in ALL for detail in subject.details if detail.path.count("{") == 1]
ACTIONS = [*dict.fromkeys(action for subject in ALL for action in subject.actions())]


def models_in(annotation: Any) -> Iterable[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    elif get_origin(annotation) in (Annotated, Union, UnionType, list):
        for each in get_args(annotation):
            yield from models_in(each)


def has(model: type[Model], path: str) -> bool:
    first, _, rest = path.partition(".")
    if first not in model.model_fields:
        return False
    inner = models_in(model.model_fields[first].annotation)
    return not rest or any(has(each, rest) for each in inner)


def item_of(page: ListPage) -> type[Model]:
    reply: Any = page.operation.reply
    [item] = models_in(reply.model_fields[page.items].annotation)
    return item


@with_each(LISTS, lambda page: page.path)
def test_a_list_shows_fields_of_its_items(page: ListPage) -> None:
    item = item_of(page)

    assert [name for name in page.columns if not has(item, name)] == []
    assert [name for name in places_of(page.one) if not has(item, name)] == []
    for action in page.each:
        called = dict(action.called)
        decided = [called.get(name, name) for name in action.fixed]
        assert [name for name in decided if not has(item, name)] == []


@with_each([*LISTS, audit.LIST], lambda page: page.path)
def test_a_list_is_shown_without_any_choice(page: ListPage) -> None:
    decided = dict.fromkeys(places_of(page.path), "an-id")
    command_of(page.operation.command, {**page.unless_chosen, **decided})

    assert {*page.unless_chosen} <= {each.name for each in filters_of(page.operation.command)}
    assert bool(page.sorted_by) == ("order" in page.operation.command.model_fields)
    assert {page.sorted_by, *page.sorted_when.values()} <= {*page.columns, ""}
    for condition in page.sorted_when:
        name, _, value = condition.partition("=")
        [field] = [each for each in filters_of(page.operation.command) if each.name == name]
        assert not value or value in field.choices


@with_each(ACTIONS, lambda action: action.path)
def test_an_action_fits_its_operation(action: Action) -> None:
    fields = action.operation.command.model_fields
    reply: Any = action.operation.reply

    assert REASON in fields
    assert not action.operation.is_read
    assert {*action.fixed, *action.seen, *action.hidden} <= {*fields}
    assert [name for name in (*action.shown, *action.progress) if not has(reply, name)] == []
    assert bool(action.unfinished) == has(reply, "next")
    assert {*places_of(action.back)} <= {*places_of(action.path)}


@with_each(ACTIONS, lambda action: action.path)
def test_an_action_says_what_each_checkbox_of_its_form_will_do(action: Action) -> None:
    fields = fields_of(action.operation.command, {*action.fixed, *action.seen, *action.hidden})

    flags = [each.label for each in fields if each.widget is Widget.FLAG]
    assert [label for label in flags if f"`{label}`" not in action.effect] == []


@with_each(ACTIONS, lambda action: action.path)
def test_a_link_to_an_action_says_what_its_item_is_found_by(action: Action) -> None:
    details = [each for subject in ALL for each in subject.details if each.path == action.item]
    given = {*action.fixed, *action.finds}

    for detail in details:
        fields = detail.operation.command.model_fields
        wanted = {name for name, info in fields.items() if info.is_required()}
        assert wanted <= given


@with_each(DETAILS, lambda detail: detail.path)
def test_an_item_is_found_by_its_path(detail: DetailPage) -> None:
    assert {*places_of(detail.path)} <= {*detail.operation.command.model_fields}


def test_every_kind_that_waits_has_a_page() -> None:
    assert {*WORDS} == {*WaitingKind}


def test_pages_do_not_share_addresses() -> None:
    paths = [page.path for page in LISTS]
    paths += [detail.path for detail in DETAILS]
    paths += [action.path for action in ACTIONS]

    assert len({*paths}) == len(paths)
    assert all(isinstance(subject, Subject) for subject in ALL)
