"""The files that pages load, read once. Their addresses have a digest of the content, so browsers may keep them."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from aiohttp import web

CONTENT_TYPES = {
    "console.css": "text/css",
    "forms.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
KEPT = "public, max-age=31536000, immutable"


class Assets:
    def __init__(self) -> None:
        folder = files("services.console") / "static"
        self._content = {name: (folder / name).read_bytes() for name in CONTENT_TYPES}

    def address(self, name: str) -> str:
        digest = hashlib.sha256(self._content[name]).hexdigest()[:16]
        return f"/static/{name}?v={digest}"

    async def get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._content:
            raise web.HTTPNotFound
        return web.Response(
            body=self._content[name],
            content_type=CONTENT_TYPES[name],
            charset="utf-8",
            headers={"Cache-Control": KEPT},
        )
