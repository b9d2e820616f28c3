"""The how-tos beside the code show code that type-checks in this repository."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"tests/contract/ports/conftest.py"}
"""Its snippet imports a module that the how-to describes and does not show."""
PATH_OR_SNIPPET = re.compile(
    r"^(?:#+ [^\n]*: )?`(?P<path>\w[\w/]*/\w+\.py)`|^```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
"""A path that begins a line or ends a heading is where the snippets below it belong."""


@pytest.mark.parametrize(
    "how_to", ["libs/contracts/ADD_AN_ENDPOINT.md", "libs/providers/ADD_A_PROVIDER.md"]
)
def test_the_snippets_of_a_how_to_type_check_where_they_belong(how_to: str, tmp_path: Path) -> None:
    snippets = snippets_of(ROOT / how_to)
    copy = linked_copy(tmp_path / "copy")
    for path, code in snippets:
        put(copy / path, code)
    # Where adapters stand for their ports.
    compositions = (
        str(p.relative_to(copy)) for p in copy.glob("services/*/adapters/*/composition.py")
    )

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *{*dict(snippets), *compositions}],
        cwd=copy,
        text=True,
        capture_output=True,
        check=False,
    )

    # A snippet shows the lines that it adds to a method or to a mapping under the name of the whole.
    mistakes = [
        line
        for line in checked.stdout.splitlines()
        if ": error: " in line and not line.endswith("[no-redef]")
    ]
    assert len(snippets) > 5
    assert mistakes == [], checked.stdout
    assert "source files" in checked.stdout
    assert checked.stderr == ""


def snippets_of(how_to: Path) -> list[tuple[str, str]]:
    """Each with the path of its file."""
    found: list[tuple[str, str]] = []
    path = ""
    for match in PATH_OR_SNIPPET.finditer(how_to.read_text("utf-8")):
        if match["path"]:
            path = match["path"]
        elif path not in ELSEWHERE:
            found.append((path, match["code"]))
    return found


def linked_copy(copy: Path) -> Path:
    """The folders of Python, each file a link, with mypy's cache of them, which spares it most of the work."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "*.md", "*.json")
    for folder in ("libs", "services", "tests", "deploy"):
        shutil.copytree(ROOT / folder, copy / folder, copy_function=link, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    if (ROOT / ".mypy_cache").is_dir():
        shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache")
    return copy


def link(source: str, target: str) -> None:
    Path(target).symlink_to(source)


def put(path: Path, code: str) -> None:
    """A new file is the whole snippet; to one that exists its lines are added."""
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(code)
        return
    whole = merged(path.read_text("utf-8"), code)
    path.unlink()
    path.write_text(whole)


def merged(whole: str, code: str) -> str:
    lines, added = whole.splitlines(), code.splitlines()
    body = ast.parse(whole).body
    first = next(node for node in body if is_import(node) and node.lineno > 1)
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    inserted: dict[int, list[str]] = {}
    for node in ast.parse(code).body:
        begin, end = node.lineno - 1, node.end_lineno
        if is_import(node):
            at = first.lineno - 1
        elif isinstance(node, ast.ClassDef) and node.name in classes:
            begin, at = node.lineno, classes[node.name].end_lineno or 0
        else:
            at = len(lines)
        inserted.setdefault(at, []).extend(added[begin:end])
    for at in sorted(inserted, reverse=True):
        lines[at:at] = inserted[at]
    return "\n".join([*lines, ""])


def is_import(node: ast.stmt) -> bool:
    """Of a module other than `__future__`, whose import comes first."""
    return isinstance(node, ast.Import) or (
        isinstance(node, ast.ImportFrom) and node.module != "__future__"
    )
