"""The first page: what waits for a person, then traffic and queues of the last hour."""

from __future__ import annotations

from aiohttp import web

from services.console.rendering import Renderer


class OverviewPage:
    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def add(self, router: web.UrlDispatcher) -> None:
        router.add_get("/", self._page)

    async def _page(self, request: web.Request) -> web.Response:
        return self._renderer.page(request, "overview.html")
