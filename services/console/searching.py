"""Search by any id: one thing that is found is gone to at once; what belongs to one request is shown with its way."""

from __future__ import annotations

from urllib.parse import quote

from aiohttp import web

from libs.contracts.errors import BanksideError, Invalid, SessionEnded
from libs.contracts.operating.search import SEARCH, FoundId, Kind, Search
from libs.runtime.routes import Routes
from services.console.declarations import filled
from services.console.failures import sentence
from services.console.forms import WrongValues, command_of
from services.console.lists import Row, Table
from services.console.pages.webhooks import ONE_DELIVERY
from services.console.rendering import Renderer
from services.console.sessions import see_other
from services.console.values import PAGES, Cell, cell
from services.console.values import Kind as Shown
from services.console.visits import visit_of

PAGE_OF = {
    Kind.WIRE: PAGES["transaction_id"],
    Kind.CUSTOMER: PAGES["customer_id"],
    Kind.PERSON: PAGES["customer_id"],
    Kind.COMMAND: "/commands/{}",
    Kind.EVENT: PAGES["event_id"],
    Kind.SUBSCRIPTION: PAGES["subscription_id"],
    Kind.DIFFERENCE: PAGES["difference_id"],
    Kind.SUBSCRIPTION_KEY: PAGES["subscription_key"],
}
LABELS = ["What", "Id", "Tenant", "Customer", "About"]


def page_of(found: FoundId) -> str | None:
    """Where it is shown: on its own page, or on its customer's; a command, which has a page until it is final, on its
    request's.
    """
    if found.kind is Kind.COMMAND and found.request_id:
        return PAGES["request_id"].format(quote(found.request_id, safe=""))
    if found.kind is Kind.DELIVERY and found.subscription_id:
        return filled(ONE_DELIVERY, found, {"delivery_id": "id"})
    if found.kind in PAGE_OF:
        return PAGE_OF[found.kind].format(quote(found.id, safe=""))
    if found.customer_id is not None:
        return PAGES["customer_id"].format(quote(found.customer_id, safe=""))
    return None


def belongs_to_request(found: FoundId, query: str) -> bool:
    """Whether it was found by the id of its request: commands and events are found by their own id otherwise."""
    return found.kind in (Kind.COMMAND, Kind.EVENT) and found.id != query.lower()


class Searching:
    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def add(self, routes: Routes) -> None:
        routes.add_get("/search", self._search)

    async def _search(self, request: web.Request) -> web.Response:
        query = request.query.get("q", "").strip()
        table = Table("search", LABELS, [])
        if query:
            try:
                command = command_of(Search, {"q": query})
                answer = await visit_of(request).operators.ask(SEARCH, command)
            except (WrongValues, Invalid):
                table = Table("search", LABELS, [], failure="An id has no spaces and no accents.")
            except SessionEnded:
                raise
            except BanksideError as error:
                table = Table("search", LABELS, [], failure=sentence(error))
            else:
                of_request = any(belongs_to_request(found, query) for found in answer.found)
                request_page = PAGES["request_id"].format(quote(query, safe=""))
                pages = {request_page} if of_request else {page_of(found) for found in answer.found}
                if len(pages) == 1 and (page := pages.pop()) is not None and not answer.unreachable:
                    return see_other(page)
                rows = [
                    _row(
                        found.kind.value.replace("_", " "),
                        Cell(found.id, Shown.ID, href=page_of(found)),
                        found,
                    )
                    for found in answer.found
                ]
                if of_request:
                    rows.insert(0, _row("request", Cell(query, Shown.ID, href=request_page)))
                table = Table("search", LABELS, rows, unreachable=answer.unreachable)
        return self._renderer.page(request, "search.html", query=query, table=table)


def _row(what: str, identifier: Cell, found: FoundId | None = None) -> Row:
    cells = [
        Cell(what),
        identifier,
        cell("tenant", found and found.tenant),
        cell("customer_id", found and found.customer_id),
        cell("label", found and found.label),
    ]
    return Row(list(zip(LABELS, cells, strict=True)), [])
