"""Documents that cannot be made."""

from __future__ import annotations

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from services.gateway.documents import Documents


async def test_documents_that_cannot_be_made_are_503(capfd: pytest.CaptureFixture[str]) -> None:
    documents = Documents("a listener that there is not")
    request = make_mocked_request("GET", "/openapi.json", headers={"X-Request-Id": "mine"})

    answer = await documents.page(request)

    assert answer.status == 503
    assert isinstance(answer, web.Response)
    assert isinstance(answer.body, bytes)
    assert json.loads(answer.body)["code"] == "unavailable"
    assert answer.headers["X-Request-Id"] == "mine"
    assert "documents_not_made" in capfd.readouterr().out
