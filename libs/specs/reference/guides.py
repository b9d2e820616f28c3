"""The guides: markdown beside this package, one source for the repository and for the pages."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from markdown_it import MarkdownIt

FOLDER = Path(__file__).parent.parent / "guides"
ORDER = (
    "quickstart",
    "signing",
    "idempotency",
    "errors",
    "money",
    "webhooks",
    "queues",
    "approvals",
    "testing",
    "going-live",
    "versioning",
)
"""As the navigation has those that are there; others follow by name."""

_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True, slots=True)
class Guide:
    """`name`: of its page and its file. `html`: without its title, which is the first line of the file."""

    name: str
    title: str
    html: str


@cache
def markdown(text: str) -> str:
    """As HTML; HTML in the text is shown as text. Of the reference's 2,600 texts there are 450 different ones."""
    return str(_markdown.render(text))


def guides(folder: Path = FOLDER) -> list[Guide]:
    """In the order of the navigation. The file `README.md` is the folder's, and no guide."""
    found = {path.stem: path for path in sorted(folder.glob("*.md")) if path.stem != "README"}
    names = [name for name in ORDER if name in found]
    names += [name for name in found if name not in names]
    return [_guide(name, found[name].read_text("utf-8")) for name in names]


def _guide(name: str, text: str) -> Guide:
    title, _, body = text.partition("\n")
    html = markdown(body)
    # `webhooks.md#secrets` in the repository is `webhooks#secrets` among the pages.
    html = re.sub(r'href="([a-z-]+)\.md(#[^"]*)?"', r'href="\1\2"', html)
    html = re.sub(r"<h([23])>(.*?)</h\1>", partial(_with_id, Counter()), html)
    return Guide(name, title.removeprefix("# ").strip(), html)


def _with_id(seen: Counter[str], heading: re.Match[str]) -> str:
    """A heading that can be linked to, by the id that code hosts give it: `python`, the next one `python-1`."""
    level, inner = heading.groups()
    text = re.sub(r"<[^>]+>|&[a-z]+;", "", inner).lower()
    anchor = re.sub(r"[^a-z0-9 _-]", "", text).strip().replace(" ", "-")
    seen[anchor] += 1
    if seen[anchor] > 1:
        anchor += f"-{seen[anchor] - 1}"
    return f'<h{level} id="{anchor}">{inner}</h{level}>'
