"""The files that pages load, read once. Their addresses have a digest of the content, so browsers may keep them.

During a roll a page of the new process may load its files from one of the old: content under another digest's address
is not kept.
"""

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
NOT_KEPT = "no-store"


class Assets:
    def __init__(self) -> None:
        folder = files("services.console") / "static"
        self._content = {name: (folder / name).read_bytes() for name in CONTENT_TYPES}
        self._digests = {
            name: hashlib.sha256(content).hexdigest()[:16]
            for name, content in self._content.items()
        }

    def address(self, name: str) -> str:
        return f"/static/{name}?v={self._digests[name]}"

    async def get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._content:
            raise web.HTTPNotFound
        is_of_address = request.query.get("v") == self._digests[name]
        return web.Response(
            body=self._content[name],
            content_type=CONTENT_TYPES[name],
            charset="utf-8",
            headers={"Cache-Control": KEPT if is_of_address else NOT_KEPT},
        )
