"""Lists that `--limit` cuts off."""

from __future__ import annotations

from typing import Any

import pytest

from libs.cli import pages
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.wires import LIST_WIRES, ListOperatorWires


@pytest.mark.parametrize(("rows", "said"), [(7, ""), (250, "there are more than these 210")])
def test_a_list_that_is_cut_off_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rows: int, said: str
) -> None:
    def ask(_: Any, query: ListOperatorWires) -> Listed[int]:
        begin = int(query.after or 0)
        end = min(begin + query.limit, rows)
        return Listed[int](items=[*range(begin, end)], next=str(end) if end < rows else None)

    monkeypatch.setattr(pages, "ask", ask)

    found = pages.list_of(LIST_WIRES, ListOperatorWires(), 210)

    assert len(found) == min(rows, 210)
    assert said in capsys.readouterr().err
