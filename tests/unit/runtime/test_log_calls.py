"""How the code calls its loggers."""

from __future__ import annotations

import ast
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
CALLS = {"debug", "info", "warning", "error", "critical", "exception", "bind", "settle"}
"""structlog's, and `libs.messaging.delivery.settle`, which hands its keywords on."""


def test_no_line_has_a_field_event_which_is_the_name_of_structlogs_first_argument() -> None:
    """structlog raises TypeError for it, where the code meant to go on after an error."""
    found = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for folder in ("libs", "services", "deploy")
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
        if "event=" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and (
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        )
        in CALLS
        and any(keyword.arg == "event" for keyword in node.keywords)
    ]

    assert found == []
