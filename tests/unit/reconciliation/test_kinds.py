"""The kinds of differences: those by which a list is filtered are those that the README explains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from libs.contracts.operating.differences import DifferenceKind

README = Path(__file__).parents[3] / "services" / "reconciliation" / "README.md"
PREFIX = "external_account"
"""Of the kinds that the README abbreviates as `…_owner`."""


def test_a_list_is_filtered_by_each_kind_that_there_is() -> None:
    _, table = README.read_text().split("| kind of difference | meaning |")
    rows = re.findall(r"(?m)^\| (`.+?) \| ", table.partition("\n\n")[0])
    explained = {name.replace("…", PREFIX) for row in rows for name in re.findall("`(.+?)`", row)}

    assert explained == {*get_args(DifferenceKind)}
