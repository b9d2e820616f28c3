"""Templates to answers. Every value is escaped; templates have no scripts and no styles of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from services.console import charts
from services.console.assets import Assets
from services.console.cookies import Cookies
from services.console.declarations import Subject, may, places_of
from services.console.failures import does_not_answer
from services.console.forms import said
from services.console.security import csrf_token
from services.console.values import age, cell, label, plain
from services.console.visits import VISIT


@dataclass(frozen=True, slots=True)
class Link:
    title: str
    path: str
    is_here: bool


class Renderer:
    """Renders the console's pages from their templates.

    Args:
        subjects: of the navigation, by the titles of its groups.
        search: the operation of the search field, which is shown to those who may ask for it.
    """

    def __init__(
        self,
        subjects: Sequence[tuple[str, Sequence[Subject]]],
        cookies: Cookies,
        assets: Assets,
        search: Operation | None = None,
    ) -> None:
        self._subjects = subjects
        self._cookies = cookies
        self._search = search
        self._environment = Environment(
            loader=PackageLoader("services.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "cell": cell,
            "does_not_answer": does_not_answer,
            "label": label,
            "plain": plain,
            "said": said,
        }
        self._environment.globals |= {
            "asset": assets.address,
            "chart_width": charts.WIDTH,
            "chart_height": charts.HEIGHT,
        }

    def part(self, request: web.Request, template: str, **context: Any) -> web.Response:
        """A part of a page, which replaces another one on it."""
        return self._answer(request, template, HTTPStatus.OK, context)

    def page(
        self,
        request: web.Request,
        template: str,
        *,
        status: int = HTTPStatus.OK,
        csrf: str | None = None,
        **context: Any,
    ) -> web.Response:
        """A whole page.

        Args:
            csrf: the token of its forms, where there is no session yet.
        """
        visit = request.get(VISIT)
        message = None
        if visit is not None:
            message = self._cookies.said(request, visit.token)
            csrf = csrf_token(visit.token)
        context |= {
            "navigation": self._navigation(visit.role, request.path) if visit else [],
            "may_search": visit is not None and self._search is not None,
            "message": message,
            "csrf": csrf,
        }
        response = self._answer(request, template, status, context)
        if message is not None:
            self._cookies.forget_message(response)
        return response

    def _answer(
        self, request: web.Request, template: str, status: int, context: dict[str, Any]
    ) -> web.Response:
        now = datetime.now(UTC)
        text = self._environment.get_template(template).render(
            visit=request.get(VISIT),
            here=request.path_qs,
            now=now,
            age=lambda since: age(since, now),
            **context,
        )
        return web.Response(text=text, status=status, content_type="text/html")

    def _navigation(self, role: Role, here: str) -> list[tuple[str, list[Link]]]:
        """What the role may see."""
        return [
            (title, links)
            for title, subjects in self._subjects
            if (
                links := [
                    Link(s.page.title, s.page.path, _is_below(here, s.page.path))
                    for s in subjects
                    if may(role, s.page.operation) and not places_of(s.page.path)
                ]
            )
        ]


def _is_below(here: str, path: str) -> bool:
    return here == path or here.startswith(f"{path}/")
