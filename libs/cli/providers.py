"""`bankside provider …`: which company has each provider role, and what it offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from cyclopts import App

from libs.cli.decisions import Flag
from libs.cli.output import console, escape, print_json
from libs.cli.services import settings_of_services
from libs.client.errors import OperatorError
from libs.providers.capabilities import Lists, RoleCapabilities, capabilities_of
from libs.providers.companies import Company, Role
from libs.providers.writing import Capabilities
from libs.runtime.provider_settings import ProviderSettings

LISTS = {
    Lists.NUMBERED: "pages by number, with totals",
    Lists.CURSORS: "one page after another, without totals",
}

app = App(name="provider", help="Which company has each provider role, and what it offers.")


@app.command
def show(role: str | None = None, /, *, json: Flag = False) -> int:
    """Show which company has each role, for which services, what it promises and what it lacks.

    The choices are read from the environment that is here, as services read them.

    Such as `bankside provider show core`.

    Args:
        role: identity, core or financial; without, all of them.
        json: Print one JSON document.
    """
    if role is not None and role not in set(Role):
        raise OperatorError(f"There is no role {role!r}; there are: {', '.join(Role)}.")
    shown = [one for one in Role if role in (None, one.value)]
    found = [
        (one, company, services, _offers(company, one))
        for one in shown
        for company, services in _companies(one).items()
    ]
    if json:
        print_json({"roles": [_document(*item) for item in found]})
        return 0
    out = console()
    for one, company, services, offers in found:
        out.print(f"[bold]{one}[/]  {company}  (of {', '.join(services)})")
        for line in _lines(offers):
            out.print(f"  {escape(line)}")
    return 0


def _offers(company: Company, role: Role) -> RoleCapabilities:
    """Raises OperatorError: the company does not have the role."""
    offers = capabilities_of(company)
    if role not in offers:
        raise OperatorError(
            f"{company} does not have the role {role}: set BANKSIDE_{role.upper()}_PROVIDER to a company that does."
        )
    return offers[role]


def _companies(role: Role) -> dict[Company, list[str]]:
    """Those that have the role, each with the services that call it there."""
    found: dict[Company, list[str]] = {}
    for name, kind in settings_of_services().items():
        if issubclass(kind, ProviderSettings):
            for company, roles in kind.chosen().items():
                if role in roles:
                    found.setdefault(company, []).append(name)
    return found


def described(offers: RoleCapabilities) -> Iterator[tuple[str, str]]:
    """What it offers in a role, in the words of people: names and texts."""
    if offers.writes is not None:
        yield "idempotency keys", _remembered(offers.writes)
        yield "refusals", "kept under their keys" if offers.keeps_refusals else "not kept"
    if offers.changes is not None:
        takes_keys = offers.changes.takes_keys
        yield "changes", "take keys" if takes_keys else "take no keys, are read back and compared"
    yield "lists", LISTS[offers.lists]
    numbered = "entries have positions"
    unnumbered = "entries have ids; Bankside numbers them as it applies them"
    yield "feed", numbered if offers.numbers_feed else unnumbered


def _lines(offers: RoleCapabilities) -> Iterator[str]:
    for name, text in described(offers):
        yield f"{name}: {text}"
    for lack in offers.lacks:
        yield f"lacks {lack.what}: {lack.instead}"


def _remembered(writes: Capabilities) -> str:
    if writes.keys_remembered_seconds is None:
        return "remembered for ever"
    return f"remembered for {writes.keys_remembered_seconds / 3600:g} h"


def _document(
    role: Role, company: Company, services: list[str], offers: RoleCapabilities
) -> dict[str, Any]:
    return {
        "role": role.value,
        "company": company.value,
        "services": services,
        "writes": None if offers.writes is None else asdict(offers.writes),
        "changes": None if offers.changes is None else asdict(offers.changes),
        "keeps_refusals": offers.keeps_refusals,
        "lists": offers.lists.value,
        "feed_has_positions": offers.numbers_feed,
        "lacks": [asdict(lack) for lack in offers.lacks],
    }
