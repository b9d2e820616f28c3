"""A caller of the interface, written from the interface's text alone: it signs by itself and trusts no library of ours.

Every answer that it gets is checked against the document of the interface before the test sees it.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import aiohttp
from openapi_schema_validator import OAS31Validator
from yarl import URL

from libs.contracts.exact_json import encode as encode_exactly
from tests.support.documents import openapi_document, operator_document

ANSWER_SECONDS = 40.0


@dataclass(frozen=True)
class Key:
    subscription_key: str
    secret: str = field(repr=False)
    tenant: str = ""


@dataclass(frozen=True)
class Answer:
    """What came back. Numbers with a fraction are Decimals."""

    status: int
    body: Any
    headers: Mapping[str, str]
    raw: bytes

    @property
    def data(self) -> Any:
        assert self.status == 200, f"{self.status}: {self.body}"
        return self.body["data"]

    @property
    def code(self) -> str:
        """The code of a problem, or `200`."""
        return str(self.body.get("code")) if self.status != 200 else "200"

    @property
    def is_replayed(self) -> bool:
        return self.headers.get("Idempotent-Replayed") == "true"


def canonical_string(parts: tuple[str, str, str, str, str], body: bytes) -> str:
    """Interface §1; `parts`: timestamp, nonce, subscription key, method, request target."""
    return "\n".join(("v1", *parts, hashlib.sha256(body).hexdigest()))


def sign(secret: str, canonical: str) -> str:
    return hmac.new(secret.encode(), canonical.encode(), hashlib.sha256).hexdigest()


def signed_headers(key: Key, method: str, target: str, body: bytes = b"") -> dict[str, str]:
    timestamp, nonce = str(int(time.time())), uuid.uuid4().hex
    canonical = canonical_string((timestamp, nonce, key.subscription_key, method, target), body)
    return {
        "X-API-SUBSCRIPTION-KEY": key.subscription_key,
        "X-API-TIMESTAMP": timestamp,
        "X-API-NONCE": nonce,
        "X-API-SIGNATURE": sign(key.secret, canonical),
    }


class Interface:
    """The document of /openapi.json: whether an answer is one that it allows."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._components = document["components"]
        self._paths = [
            (re.compile(re.sub(r"{\w+}", "[^/]+", path) + "$"), operations)
            # A path without a variable wins over one with, as in OpenAPI.
            for path, operations in sorted(document["paths"].items(), key=lambda p: "{" in p[0])
        ]
        self._checked: set[tuple[int, int, str, bytes]] = set()
        """Answers that were as described: who waits for something is answered the same over and over."""

    def check(self, method: str, path: str, answer: Answer) -> None:
        operation = self._operation(method, path)
        if operation is None:
            assert answer.status in {404, 405}, f"{method} {path} is not in the document"
            return
        described = operation["responses"].get(str(answer.status))
        assert described, f"{method} {path}: {answer.status} is not documented: {answer.body}"
        if "$ref" in described:
            described = self._components["responses"][described["$ref"].rpartition("/")[2]]
        content_type = answer.headers["Content-Type"].partition(";")[0]
        assert content_type in described["content"], f"{answer.status} as {content_type}"
        schema = described["content"][content_type]["schema"]
        checked = id(operation), answer.status, content_type, hashlib.sha256(answer.raw).digest()
        if checked in self._checked:
            return
        validator = OAS31Validator(
            {**schema, "components": self._components},
            format_checker=OAS31Validator.FORMAT_CHECKER,
        )
        wrong = [f"{e.json_path}: {e.message}" for e in validator.iter_errors(answer.body)]
        assert not wrong, f"{method} {path} {answer.status}: {wrong}"
        self._checked.add(checked)

    def _operation(self, method: str, path: str) -> Any:
        for pattern, operations in self._paths:
            if pattern.match(path) and method.lower() in operations:
                return operations[method.lower()]
        return None


class Api:
    """Calls with one key. An Api without one sends what it is told."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        interface: Interface,
        key: Key | None = None,
        logs: Callable[[], str] = str,
    ) -> None:
        """`logs`: what to show of the services when an answer is 500, which it never should be."""
        self._session = session
        self._base_url = base_url
        self._interface = interface
        self._key = key
        self._logs = logs

    @property
    def key(self) -> Key:
        assert self._key is not None
        return self._key

    async def get(self, target: str, **headers: str) -> Answer:
        return await self.call("GET", target, headers=headers)

    async def post(self, target: str, body: Any, idempotency_key: str | None = None) -> Answer:
        return await self.call("POST", target, body, idempotency_key=idempotency_key)

    async def patch(self, target: str, body: Any, idempotency_key: str | None = None) -> Answer:
        return await self.call("PATCH", target, body, idempotency_key=idempotency_key)

    async def call(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        idempotency_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sign and send. `body`: bytes as they are, anything else as JSON, None is no body."""
        content = body if isinstance(body, bytes) else b"" if body is None else encode(body)
        sent = signed_headers(self._key, method, target, content) if self._key else {}
        if content:
            sent["Content-Type"] = "application/json"
        if idempotency_key is not None:
            sent["Idempotency-Key"] = idempotency_key
        return await self.send(method, target, content, {**sent, **(headers or {})})

    async def send(
        self, method: str, target: str, content: bytes, headers: Mapping[str, str]
    ) -> Answer:
        """Send exactly this, unsigned unless `headers` hold a signature."""
        url = URL(self._base_url + target, encoded=True)
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with self._session.request(
            method, url, data=content or None, headers=headers, timeout=timeout
        ) as response:
            raw = await response.read()
            body = json.loads(raw, parse_float=Decimal) if raw else None
            answer = Answer(response.status, body, response.headers, raw)
        assert answer.headers.get("X-Request-Id"), "every response carries X-Request-Id"
        assert answer.headers.get("Date"), "every response carries Date"
        assert answer.status != 500, f"{answer.body}\n{self._logs()}"
        self._interface.check(method, url.raw_path, answer)
        return answer


class _Numbers(json.JSONEncoder):
    def default(self, o: Any) -> Any:
        return float(o) if isinstance(o, Decimal) else super().default(o)


def encode(body: Any) -> bytes:
    return json.dumps(body, cls=_Numbers).encode()


@functools.cache
def public_interface() -> Interface:
    """As this release's gateway serves it, which tests/integration/gateway/test_gateway_documents.py compares."""
    return Interface(json.loads(encode_exactly(openapi_document())))


@functools.cache
def operator_interface() -> Interface:
    """Likewise, of the listener for operators."""
    return Interface(json.loads(encode_exactly(operator_document())))


async def fetch_interface(session: aiohttp.ClientSession, base_url: str) -> Interface:
    """That of a gateway which may be of another release."""
    async with session.get(f"{base_url}/openapi.json") as response:
        assert response.status == 200
        return Interface(await response.json())
