"""Links between the documents of the repository lead to files and headings that are there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
FOLDERS = ("deploy", "libs", "services", "tests")
OF_OTHERS = re.compile(r"[a-z]+:|/")
"""Addresses, and places of a running gateway: `tests/unit/specs/test_reference.py` follows those of the guides."""


def test_links_between_documents_lead_to_what_is_there() -> None:
    documents = [*ROOT.glob("*.md"), *chain.from_iterable(map(of_folder, FOLDERS))]

    lost = [
        f"{document.relative_to(ROOT)}: {link}"
        for document in documents
        for link in links_of(document)
        if not OF_OTHERS.match(link) and not leads_somewhere(document, link)
    ]

    assert len(documents) > len(FOLDERS)
    assert lost == []


def of_folder(name: str) -> Iterator[Path]:
    return (path for path in (ROOT / name).rglob("*.md") if "node_modules" not in path.parts)


def leads_somewhere(document: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    return target.exists() and (not anchor or anchor in anchors_of(target))


def links_of(document: Path) -> Iterator[str]:
    for token in chain.from_iterable(
        (token, *(token.children or ())) for token in parsed(document)
    ):
        for name in ("href", "src"):
            if name in token.attrs:
                yield str(token.attrs[name])
        if token.type.startswith("html"):
            yield from re.findall(r'(?:href|src)="([^"]+)"', token.content)


@cache
def anchors_of(document: Path) -> frozenset[str]:
    """As code hosts make them of headings: `python`, of a second such heading `python-1`."""
    tokens = parsed(document)
    seen: Counter[str] = Counter()
    found = set()
    for opening, heading in pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(part.content for part in heading.children or ()).lower()
            anchor = re.sub(r"[^\w -]", "", text).strip().replace(" ", "-")
            found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
    return frozenset(found)


@cache
def parsed(document: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(document.read_text("utf-8"))
