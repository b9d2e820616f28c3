"""What a page is made of: pages are declared, and `lists`, `details` and `acting` serve each kind alike.

Field names are those of the contracts; labels, links, badges and amounts follow from them (`values`), filters and forms
from the fields of the command (`forms`), and what an operator may see from the role of the operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from services.console.values import NO_LINKS, Links, plain, read

_PLACE = re.compile(r"{(\w+)}")


def places_of(path: str) -> tuple[str, ...]:
    return tuple(_PLACE.findall(path))


def filled(path: str, item: Any, called: Mapping[str, str] | None = None) -> str:
    """A path with the fields of an item in its braces; `called` says what the item calls them."""
    names = called or {}
    return _PLACE.sub(
        lambda place: quote(plain(read(item, names.get(place[1], place[1]))), safe=""), path
    )


def may(role: Role, operation: Operation) -> bool:
    return operation.role is not None and role.includes(operation.role)


def always(_: Any) -> bool:
    return True


def nothing(_: Any) -> str:
    return ""


def no_links(_: Any) -> Links:
    return NO_LINKS


def itself(item: Any, _: Command) -> Any:
    return item


@dataclass(frozen=True, slots=True)
class Action:
    """Something that changes. It has a page of its own, which says what it will do and asks for the reason.

    Args:
        path: of its page, with fields of the item in braces.
        carries: further fields of the command that the item decides, in the query of links to the page.
        finds: fields of the item that its own page needs besides, in the same query.
        called: what the item calls fields of the command, where it calls them otherwise.
        seen: further fields of the command whose values are those that its page shows of the item; without the item
            there is nothing to decide on.
        effect: what it will do, in a few sentences, also with each checkbox of its form.
        done: what the next page says.
        done_by: what it says of this command instead, where it depends on the command; else nothing.
        when: whether it is offered for this item.
        danger: it cannot be undone. The form is offered only where its page can show the item.
        parts: what its page shows of the item's parts, for what is typed of them; where it cannot be undone, all.
        needs_item: the form is offered only where its page can show the item, though it is no danger.
        then: where it goes on; empty for the page of the item, or the list.
        shown: the fields of the answer that are shown, once, in place of going on.
        lost: what an operator who does not have the answer is told, where it has what cannot be read again; the form is
            not offered again then.
        hidden: optional fields of the command that the form leaves out.
        unfinished: what is said when the answer has a `next`, with which the form then goes on as `after`; empty for
            what one request does as a whole.
        progress: the fields of the answer that are shown with it, and at the end.
    """

    title: str
    path: str
    operation: Operation
    effect: str
    done: str
    carries: tuple[str, ...] = ()
    finds: tuple[str, ...] = ()
    called: tuple[tuple[str, str], ...] = ()
    seen: tuple[str, ...] = ()
    done_by: Callable[[Any], str] = nothing
    when: Callable[[Any], bool] = always
    danger: bool = False
    parts: tuple[str, ...] = ()
    needs_item: bool = False
    then: str = ""
    shown: tuple[str, ...] = ()
    lost: str = ""
    hidden: tuple[str, ...] = ()
    unfinished: str = ""
    progress: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return "action-" + self.title.lower().replace(" ", "-")

    @property
    def item(self) -> str:
        """The path of the item or list that it belongs to."""
        return self.path.rpartition("/")[0]

    @property
    def back(self) -> str:
        """The path where it goes on."""
        return self.then or self.item

    @property
    def fixed(self) -> tuple[str, ...]:
        """The fields of the command that the item decides."""
        return (*places_of(self.path), *self.carries)

    def link(self, item: Any) -> str:
        called = dict(self.called)
        names = (*self.carries, *self.finds)
        query = urlencode({n: plain(read(item, called.get(n, n))) for n in names})
        return filled(self.path, item, called) + (f"?{query}" if query else "")


def links_of(actions: Iterable[Action], item: Any, role: Role) -> list[tuple[Action, str]]:
    """Those of the actions that are offered for this item to an operator of this role, with links to their pages."""
    return [
        (action, action.link(item))
        for action in actions
        if may(role, action.operation) and action.when(item)
    ]


@dataclass(frozen=True, slots=True)
class ListPage:
    """A list with filters, pages and CSV.

    Args:
        path: may have fields of the command in braces, for the list of what belongs to an item.
        columns: fields of an item, perhaps fields of its fields (`stop.since`). The first names the item.
        one: the path of an item's page, with its fields in braces.
        items: the field of the answer that has them.
        unless_chosen: values of filters that must have one.
        sorted_by: the column by which it is sorted, the newest or the oldest first; empty for a list without order.
        sorted_when: what it is sorted by instead while a filter has this value (`state=parked`), or any (`name`); empty
            where the order cannot be chosen then.
        make: actions that are of no item; `each`: of one.
        prepare: what is shown of each item of the answer to a command, where it is not the item itself.
        links: of what is shown of an item.
    """

    path: str
    title: str
    about: str
    operation: Operation
    columns: tuple[str, ...]
    one: str = ""
    items: str = "items"
    unless_chosen: Mapping[str, str] = field(default_factory=dict)
    sorted_by: str = "created_at"
    sorted_when: Mapping[str, str] = field(default_factory=dict)
    make: tuple[Action, ...] = ()
    each: tuple[Action, ...] = ()
    prepare: Callable[[Any, Command], Any] = itself
    links: Callable[[Any], Links] = no_links

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]

    def sorted_with(self, chosen: Mapping[str, str]) -> str:
        """The column by which it is sorted with these values of filters."""
        for condition, column in self.sorted_when.items():
            name, _, value = condition.partition("=")
            given = chosen.get(name, "").strip()
            if given and value in ("", given):
                return column
        return self.sorted_by


@dataclass(frozen=True, slots=True)
class Beside:
    """A value that two sides have, each by its field.

    Args:
        otherwise: our field where `ours` has no value.
    """

    label: str
    ours: str
    theirs: str
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A list below the details of an item.

    Args:
        filters: of the list, by the fields of the item that have their values.
    """

    list: ListPage
    title: str
    filters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DetailPage:
    """One item: its fields, then its parts, each a section.

    Args:
        path: with fields of the command in braces; the others come from the query.
        name: the field by which its title calls it.
        parts: fields that are sections of their own, in their order; all others of one value stand in the first.
        timeline: those of them that are a history.
        links: of the item, of a part of it, or of one entry of a part.
        columns: of parts that are tables; without, all fields.
        called: what fields of parts are called here, where the contract has a wider name.
        without: fields that are not shown.
        each: actions of one row of a part.
        beside: values to compare.
        two_sides: two fields with objects to compare, member by member.
        sides: what the two sides are called.
        single: what of the answer is the item, by the values of the path.
    """

    path: str
    title: str
    operation: Operation
    name: str
    parent: ListPage | None = None
    parts: tuple[str, ...] = ()
    timeline: tuple[str, ...] = ()
    links: Callable[[Any], Links] = no_links
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    called: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    beside: tuple[Beside, ...] = ()
    two_sides: tuple[str, str] | None = None
    sides: tuple[str, str] = ("ours", "theirs")
    without: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    each: Mapping[str, tuple[Action, ...]] = field(default_factory=dict)
    panels: tuple[Panel, ...] = ()
    single: Callable[[Any, Mapping[str, str]], Any] = lambda answer, _: answer

    def all_actions(self) -> Sequence[Action]:
        return [*self.actions, *(action for of_part in self.each.values() for action in of_part)]


@dataclass(frozen=True, slots=True)
class Subject:
    """An entry of the navigation, with its pages."""

    page: ListPage
    details: tuple[DetailPage, ...] = ()

    def actions(self) -> list[Action]:
        found = [*self.page.make, *self.page.each]
        for detail in self.details:
            found += detail.all_actions()
        return list(dict.fromkeys(found))
