"""The page that shows the OpenAPI document: Swagger UI, vendored, so that it needs no network.

The files beside this one are those of swagger-ui-dist 5.35.0, unchanged (Apache-2.0, see LICENSE and NOTICE); for a
newer version, unpack `npm pack swagger-ui-dist` over them and change the number here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

VERSION = "5.35.0"

CONTENT_TYPES = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "favicon-32x32.png": "image/png",
    "initializer.js": "text/javascript; charset=utf-8",
}
"""What the page loads, from the folder `docs/` beside it, with its media type."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""For the page: it loads nothing from elsewhere."""

_PAGE = b"""<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>Bankside</title>
    <link rel="icon" href="docs/favicon-32x32.png">
    <link rel="stylesheet" href="docs/swagger-ui.css">
  </head>
  <body>
    <div id="swagger-ui"></div>
    <script src="docs/swagger-ui-bundle.js"></script>
    <script src="docs/initializer.js"></script>
  </body>
</html>
"""

_INITIALIZER = b"""SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  supportedSubmitMethods: [],
  validatorUrl: "none",
});
"""


def page() -> bytes:
    """The HTML of /docs, which shows /openapi.json. It sends nothing: requests must be signed."""
    return _PAGE


@cache
def asset(name: str) -> tuple[bytes, str] | None:
    """The content and media type of /docs/{name}; None when there is no such file."""
    if name not in CONTENT_TYPES:
        return None
    if name == "initializer.js":
        return _INITIALIZER, CONTENT_TYPES[name]
    return (Path(__file__).parent / name).read_bytes(), CONTENT_TYPES[name]
