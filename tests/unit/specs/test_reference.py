"""The pages of `/docs` against the document that they show."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from libs.contracts.errors import ERRORS, Invalid
from libs.contracts.table import OPERATIONS
from libs.specs.reference.fields import Schemas
from libs.specs.reference.guides import guides, markdown
from libs.specs.reference.pages import HTML, Page, pages
from libs.specs.reference.samples import Request, samples_of
from tests.support.documents import openapi_document

OPERATORS_CODES = {"insufficient_role", "login_refused", "session_ended"}
"""Of errors that only operators are answered."""


class Parsed(HTMLParser):
    def __init__(self, page: Page) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page.body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if identity := attributes.get("id"):
            self.ids.append(identity)
        for name in ("href", "src"):
            if link := attributes.get(name):
                self.links.append(link)

    def handle_data(self, data: str) -> None:
        self.text += data


@cache
def made() -> dict[str, Page]:
    return pages(openapi_document())


@cache
def parsed() -> dict[str, Parsed]:
    return {path: Parsed(page) for path, page in made().items() if page.content_type == HTML}


def test_every_operation_and_event_has_its_place() -> None:
    wanted = {
        operation["operationId"]: operation["tags"][0]
        for item in openapi_document()["paths"].values()
        for operation in item.values()
    } | dict.fromkeys(openapi_document()["webhooks"], "events")

    missing = [name for name, tag in wanted.items() if name not in parsed()[f"/docs/{tag}"].ids]

    assert missing == []
    assert len(wanted) > len(OPERATIONS) / 3


def test_the_id_of_an_operation_or_event_alone_leads_to_it() -> None:
    ids = {
        operation["operationId"]
        for item in openapi_document()["paths"].values()
        for operation in item.values()
    } | {*openapi_document()["webhooks"]}

    assert ids <= {*parsed()["/docs"].ids}


def test_every_code_of_an_error_that_callers_can_be_answered_has_its_place() -> None:
    codes = ERRORS.keys() - OPERATORS_CODES - {Invalid.code}

    assert codes == {*parsed()["/docs/errors"].ids} & ERRORS.keys()
    assert "validation" in parsed()["/docs/errors"].ids


def leads_somewhere(path: str, link: str) -> bool:
    """Whether a link on the page at `path` leads to a page, and to a place on it."""
    target, _, fragment = link.partition("#")
    if target.startswith("https://") or target in ("/openapi.json", "/asyncapi.json"):
        return True
    where = target or path
    if not where.startswith("/"):
        where = f"{path.rpartition('/')[0]}/{where}"
    return where in made() and (not fragment or fragment in parsed()[where].ids)


def test_links_lead_to_what_is_there() -> None:
    lost = [
        (path, link)
        for path, page in parsed().items()
        for link in page.links
        if not leads_somewhere(path, link)
    ]

    assert lost == []


def test_ids_are_unique_on_a_page() -> None:
    twice = {path: Counter(page.ids).most_common(1) for path, page in parsed().items()}

    assert {path for path, found in twice.items() if found and found[0][1] > 1} == set()


def test_pages_have_nothing_that_their_policy_forbids() -> None:
    for path, page in parsed().items():
        for tag, attributes in page.elements:
            assert tag != "style", path
            assert tag != "script" or attributes.get("src") == "/docs/reference.js", path
            assert not any(n == "style" or n.startswith("on") for n in attributes), path


def test_search_finds_operations_events_and_errors_where_they_are() -> None:
    for entry in json.loads(made()["/docs/search.json"].body):
        target, _, fragment = entry["path"].partition("#")
        assert not fragment or fragment in parsed()[target].ids


def test_nested_members_alternatives_and_bounds_are_read_off_a_schema() -> None:
    step = {
        "type": "object",
        "title": "Step",
        "properties": {"at": {"type": "string", "format": "date-time", "description": "When."}},
        "required": ["at"],
    }
    value: dict[str, Any] = {
        "type": "object",
        "properties": {
            "steps": {"type": "array", "items": {"$ref": "#/Step"}, "maxItems": 3},
            "state": {"anyOf": [{"enum": ["open", "shut"], "type": "string"}, {"type": "null"}]},
            "limit": {"type": "integer", "minimum": 1, "default": 50},
        },
    }

    steps, state, limit = Schemas({"Step": step}).members(value)

    assert (steps.type, steps.limits) == ("array of Step object", "at most 3 items")
    (at,) = steps.members
    assert (at.name, at.type, at.required) == ("at", "string, date-time", True)
    assert (state.type, [*state.values]) == ("string or null", ["open", "shut"])
    assert (limit.type, limit.limits) == ("integer", "at least 1, 50 unless given")


def test_a_guide_links_to_others_and_its_parts_can_be_linked_to(tmp_path: Path) -> None:
    text = (
        "# Going live\n\n## What `wires` need\n\n[a](webhooks.md#secrets) [b](/docs#sendWire)\n"
        + 2 * "### Go\n"
    )
    (tmp_path / "going-live.md").write_text(text, "utf-8")
    (tmp_path / "signing.md").write_text("# Signing\n", "utf-8")
    (tmp_path / "README.md").write_text("# Guides\n", "utf-8")

    signing, live = guides(tmp_path)

    assert (signing.name, signing.title, live.name) == ("signing", "Signing", "going-live")
    assert '<h2 id="what-wires-need">' in live.html
    assert '<h3 id="go">' in live.html
    assert '<h3 id="go-1">' in live.html
    assert 'href="webhooks#secrets"' in live.html
    assert 'href="/docs#sendWire"' in live.html


def test_a_text_of_the_document_cannot_bring_html() -> None:
    assert "<script" not in markdown("<script>alert(1)</script>")


@pytest.mark.parametrize("name", ["Node", "Browser"])
def test_a_body_cannot_end_the_literal_that_it_stands_in(name: str) -> None:
    request = Request("POST", "/x", {"purpose": "`${1}\\"}, idempotent=True)

    (code,) = (sample.code for sample in samples_of(request) if sample.name == name)

    literal = re.search(r"const body = `((?:\\.|[^`\\])*)`\n", code)
    assert literal is not None
    read = re.sub(r"\\(.)", r"\1", literal.group(1))
    assert json.loads(read) == request.body
