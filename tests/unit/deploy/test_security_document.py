"""SECURITY.md names the tests that show what it says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = "contract|e2e|faults|integration|schema|security|unit"


def test_the_tests_that_the_threat_model_names_are_there() -> None:
    text = (ROOT / "SECURITY.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")]

    named = re.findall(rf"`((?:{FOLDERS})(?:/[\w/]+(?:\.py)?)?)`", text)

    assert len(set(named)) > 20
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []
    assert [row for row in rows if re.search(r"`test_\w+\.py`", row)] == []
