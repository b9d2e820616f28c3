"""Serves the pages of actions: what it will do, the reason, then the deed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from libs.contracts.errors import (
    BanksideError,
    InsufficientRole,
    Invalid,
    NotFound,
    OutcomePending,
    SessionEnded,
)
from libs.runtime.routes import Routes
from services.console.cookies import Cookies
from services.console.declarations import Action, DetailPage, filled, may
from services.console.details import facts_of, item_of, sections_of, typed_of
from services.console.failures import NO_ANSWER, sentence, wrong_values
from services.console.forms import REASON, WrongValues, command_of, fields_of
from services.console.rendering import Renderer
from services.console.security import SAFE_METHODS, form_of
from services.console.sent_forms import SentAlready, SentForms, new_form_number
from services.console.sessions import see_other
from services.console.values import NOTHING, Cell, cell, label, plain, read
from services.console.visits import Visit, visit_of

_NOT_SENT = "The form did not send what its page showed: look at it again here, and send this one."
_SENT_ALREADY = "This form was sent already, and is not carried out twice."


class Actions:
    """The pages of actions: a form that says what an action will do, and carrying it out.

    Args:
        details: the pages of items, by their paths: an action shows the item that it is about.
    """

    def __init__(
        self, renderer: Renderer, cookies: Cookies, details: Mapping[str, DetailPage]
    ) -> None:
        self._renderer = renderer
        self._cookies = cookies
        self._details = details
        self._sent = SentForms()

    def add(self, routes: Routes, action: Action) -> None:
        async def asked(request: web.Request) -> web.StreamResponse:
            return await self._page(request, action)

        async def done(request: web.Request) -> web.StreamResponse:
            return await self._do(request, action)

        routes.add_get(action.path, asked)
        routes.add_post(action.path, done)

    async def _page(
        self,
        request: web.Request,
        action: Action,
        *,
        typed: Mapping[str, str] | None = None,
        problems: Mapping[str, str] | None = None,
        failure: str | None = None,
        answer: Any = None,
        status: int = HTTPStatus.OK,
        is_over: bool = False,
    ) -> web.Response:
        """
        Args:
            is_over: the form is not offered again.
        """
        visit = visit_of(request)
        if not may(visit.role, action.operation):
            raise InsufficientRole
        fixed = _fixed(request, action)
        detail = self._details.get(action.item)
        item, unread = await self._item(request, detail, visit)
        if item is None and action.seen:
            is_over = True
        if unread and (action.danger or action.needs_item):
            is_over = True
        seen = {name: plain(read(item, name)) for name in action.seen}
        sections = (
            [
                section
                for section in sections_of(detail, item, visit.role)
                if action.danger or section.id in action.parts
            ]
            if detail is not None and item is not None
            else []
        )
        fields = fields_of(action.operation.command, {*fixed, *action.seen, *action.hidden, REASON})
        return self._renderer.page(
            request,
            "action.html",
            status=status,
            action=action,
            facts=_facts(action, fixed, detail, item),
            sections=sections,
            seen=seen,
            fields=fields,
            progress=_cells(answer, action.progress) if answer is not None else [],
            typed=typed or {},
            problems=problems or {},
            failure=failure,
            unread=unread,
            is_over=is_over,
            form_number=new_form_number(),
            back=self._back(request, action),
        )

    async def _item(
        self, request: web.Request, detail: DetailPage | None, visit: Visit
    ) -> tuple[Any, str | None]:
        """What the action is about; else why it cannot be shown, unless the role may not see it.

        Raises:
            NotFound, HTTPNotFound, SessionEnded: of the item, or of the session that ended. Not once the form was sent:
                what came of it is said.
        """
        if detail is None or not may(visit.role, detail.operation):
            return None, None
        try:
            return await item_of(detail, request, visit.operators), None
        except web.HTTPNotFound:
            if request.method in SAFE_METHODS:
                raise
            return None, sentence(NotFound())
        except web.HTTPServiceUnavailable as error:
            return None, error.text
        except BanksideError as error:
            if request.method in SAFE_METHODS and isinstance(error, NotFound | SessionEnded):
                raise
            return None, sentence(error)

    async def _do(self, request: web.Request, action: Action) -> web.StreamResponse:
        visit = visit_of(request)
        typed = await form_of(request)
        fixed = _fixed(request, action)
        try:
            command = _command(action, typed, fixed)
            with self._sent.once(typed):
                answer = await visit.operators.ask(action.operation, command)
        except SentAlready:
            said = f"{_SENT_ALREADY} {action.lost or 'Look at what came of it.'}"
            return await self._page(
                request, action, failure=said, status=HTTPStatus.CONFLICT, is_over=True
            )
        except WrongValues as wrong:
            return await self._wrong(request, action, typed, wrong)
        except Invalid as invalid:
            return await self._wrong(
                request, action, typed, wrong_values(action.operation.command, invalid)
            )
        except SessionEnded:
            raise
        except OutcomePending as pending:
            said = f"{NO_ANSWER}. {action.lost}" if action.lost else sentence(pending)
            return await self._page(
                request,
                action,
                typed=typed,
                failure=said,
                status=pending.status,
                is_over=bool(action.lost),
            )
        except BanksideError as error:
            said, status = sentence(error), error.status
            return await self._page(request, action, typed=typed, failure=said, status=status)
        if action.unfinished and answer.next is not None:
            going_on = typed | {"after": answer.next}
            return await self._page(
                request, action, typed=going_on, failure=action.unfinished, answer=answer
            )
        back = self._back(request, action)
        if action.shown or action.progress:
            return self._shown(request, action, answer, back)
        response = see_other(back)
        self._cookies.say(response, visit.token, back, action.done_by(command) or action.done)
        return response

    async def _wrong(
        self, request: web.Request, action: Action, typed: Mapping[str, str], wrong: WrongValues
    ) -> web.Response:
        return await self._page(
            request,
            action,
            typed=typed,
            problems=wrong.problems,
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
        )

    def _shown(self, request: web.Request, action: Action, answer: Any, back: str) -> web.Response:
        facts = _cells(answer, (*action.shown, *action.progress))
        return self._renderer.page(request, "shown.html", action=action, facts=facts, back=back)

    def _back(self, request: web.Request, action: Action) -> str:
        """The page of the item or list, with the part of the query that it needs."""
        path = filled(action.back, request.match_info)
        detail = self._details.get(action.back)
        if detail is None:
            return path
        query = {
            n: t for n, t in request.query.items() if n in detail.operation.command.model_fields
        }
        return f"{path}?{urlencode(query)}" if query else path


def _command(action: Action, typed: Mapping[str, str], fixed: Mapping[str, str]) -> Any:
    """Raises WrongValues: as `command_of`, and where the form does not send what its page showed."""
    absent = [name for name in action.seen if not typed.get(name)]
    if absent:
        raise WrongValues(dict.fromkeys(absent, _NOT_SENT))
    given = {**typed, **fixed, REASON: _one_line(typed.get(REASON, ""))}
    return command_of(action.operation.command, given)


def _one_line(reason: str) -> str:
    """The field of a reason has lines; the audit keeps text without control characters."""
    return " ".join(line.strip() for line in reason.splitlines() if line.strip())


def _cells(answer: Any, names: Iterable[str]) -> list[tuple[str, Cell]]:
    return [(label(name), cell(name, read(answer, name))) for name in names]


def _facts(
    action: Action, fixed: Mapping[str, str], detail: DetailPage | None, item: Any
) -> list[tuple[str, Cell]]:
    """Of the item, where it is known, with the command's own value of what the item calls otherwise; else what the
    address says.
    """
    decided = {label(name): cell(name, text) for name, text in fixed.items()}
    if detail is None or item is None:
        return [*decided.items()]
    called = {label(name) for name, _ in action.called}
    return [
        (name, decided.get(name, shown) if name in called else shown)
        for name, shown in facts_of(item, detail.without, detail.links(item))
        if shown.text != NOTHING.text
    ]


def _fixed(request: web.Request, action: Action) -> dict[str, str]:
    """What the address of the page decides of the command; the form cannot change it."""
    given = typed_of(request, action.operation)
    return {name: given[name] for name in action.fixed if name in given}
