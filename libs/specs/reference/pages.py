"""The pages of `/docs`, from the OpenAPI document and the guides: HTML without inline scripts or styles."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from libs.specs.paths import REFERENCE
from libs.specs.reference.guides import Guide, guides, markdown
from libs.specs.reference.operations import Document, Reference

HTML = "text/html; charset=utf-8"
STATIC = {
    "reference.css": "text/css; charset=utf-8",
    "reference.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Page:
    content_type: str
    body: bytes


def pages(document: Document) -> dict[str, Page]:
    """By their paths below the origin, such as `/docs` and `/docs/wires`: pages and what they load."""
    reference, written = Reference(document), guides()
    environment = Environment(
        loader=PackageLoader("libs.specs.reference"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = markdown
    environment.globals |= {"reference": reference, "guides": written}

    def page(template: str, here: str, **values: Any) -> Page:
        html = environment.get_template(template).render(here=here, **values)
        return Page(HTML, html.encode())

    found = {REFERENCE: page("start.html", REFERENCE)}
    for resource in reference.resources:
        here = f"{REFERENCE}/{resource.name}"
        found[here] = page("resource.html", here, resource=resource)
    errors = f"{REFERENCE}/errors"
    found[errors] = page("errors.html", errors)
    for guide in written:
        here = f"{REFERENCE}/guides/{guide.name}"
        found[here] = page("guide.html", here, guide=guide)
    found[f"{REFERENCE}/search.json"] = Page(
        "application/json", json.dumps(_entries(reference, written)).encode()
    )
    static = Path(__file__).parent / "static"
    for name, content_type in STATIC.items():
        found[f"{REFERENCE}/{name}"] = Page(content_type, (static / name).read_bytes())
    return found


def _entries(reference: Reference, written: list[Guide]) -> list[dict[str, str]]:
    """What the search finds: where, a title, and words beside the title."""
    entries = [
        {
            "path": f"{REFERENCE}/{resource.name}#{call.operation_id}",
            "title": operation.summary,
            "about": f"{call.method} {call.path}",
            "words": call.operation_id,
        }
        for resource in reference.resources
        for operation in resource.operations
        for call in operation.calls
    ]
    entries += [
        {
            "path": f"{REFERENCE}/events#{event.type}",
            "title": event.type,
            "about": "event",
            "words": "",
        }
        for event in reference.events
    ]
    entries += [
        {
            "path": f"{REFERENCE}/errors#{error.code}",
            "title": error.code,
            "about": f"error {error.status}",
            "words": error.meaning,
        }
        for error in reference.errors
        if error.code
    ]
    entries += [
        {
            "path": f"{REFERENCE}/guides/{guide.name}",
            "title": guide.title,
            "about": "guide",
            "words": guide.name,
        }
        for guide in written
    ]
    return entries
