"""Examples of calls that sign by themselves: whole programs that need a language's own library and nothing else.

The address and the key come from the environment: `BANKSIDE_BASE_URL`, `BANKSIDE_SUBSCRIPTION_KEY`, `BANKSIDE_SECRET`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from libs.specs.operations import IDEMPOTENCY_KEY

FOR_BROWSERS = """\
// Only where the secret is the user's own: a page that others open would give it away.
const { url, key, secret } = window.bankside
"""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent in an example.

    Args:
        target: path and query, with example values in it.
        body: the value of its JSON; None without one.
        idempotent: takes an Idempotency-Key.
    """

    method: str
    target: str
    body: Any
    idempotent: bool

    @property
    def text(self) -> str:
        """The body as it stands in the examples."""
        return "" if self.body is None else json.dumps(self.body, indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Sample:
    """`language`: for the eyes. `name`: of the tab and of a test."""

    name: str
    language: str
    code: str


def samples_of(request: Request) -> list[Sample]:
    return [Sample(name, language, make(request)) for name, language, make in _LANGUAGES]


def _curl(request: Request) -> str:
    if request.body is None:
        body, data = "body=''\n", ""
    else:
        body, data = (
            f"body=$(cat <<'JSON'\n{request.text}\nJSON\n)\n",
            ' \\\n  --data-binary "$body"',
        )
    headers = ""
    if request.idempotent:
        body += "idempotency_key=$(openssl rand -hex 16)  # keep it: a repeat sends the same one\n"
        headers += f' \\\n  --header "{IDEMPOTENCY_KEY}: $idempotency_key"'
    if request.body is not None:
        headers += ' \\\n  --header "Content-Type: application/json"'
    return f"""\
method={request.method} target='{request.target}'
{body}
timestamp=$(date +%s) nonce=$(openssl rand -hex 16)
digest=$(printf %s "$body" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
signature=$(printf 'v1\\n%s\\n%s\\n%s\\n%s\\n%s\\n%s' \\
    "$timestamp" "$nonce" "$BANKSIDE_SUBSCRIPTION_KEY" \\
    "$method" "$target" "$digest" |
  openssl dgst -sha256 -r -hmac "$BANKSIDE_SECRET" | cut -d ' ' -f 1)

curl --silent --show-error --request "$method" "$BANKSIDE_BASE_URL$target" \\
  --header "X-API-SUBSCRIPTION-KEY: $BANKSIDE_SUBSCRIPTION_KEY" \\
  --header "X-API-TIMESTAMP: $timestamp" --header "X-API-NONCE: $nonce" \\
  --header "X-API-SIGNATURE: $signature"{headers}{data}
"""


def _python(request: Request) -> str:
    body = 'b""' if request.body is None else f'"""{request.text}""".encode()'
    headers = key = ""
    if request.body is not None:
        headers += '\n    "Content-Type": "application/json",'
    if request.idempotent:
        headers += f'\n    "{IDEMPOTENCY_KEY}": idempotency_key,'
        key = "\nidempotency_key = secrets.token_hex(16)  # keep it: a repeat sends the same one"
    return f"""\
import hashlib, hmac, os, secrets, time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

method, target = "{request.method}", "{request.target}"
body = {body}{key}

key, secret = os.environ["BANKSIDE_SUBSCRIPTION_KEY"], os.environ["BANKSIDE_SECRET"]
timestamp, nonce = str(int(time.time())), secrets.token_hex(16)
parts = ["v1", timestamp, nonce, key, method, target, hashlib.sha256(body).hexdigest()]
headers = {{
    "X-API-SUBSCRIPTION-KEY": key,
    "X-API-TIMESTAMP": timestamp,
    "X-API-NONCE": nonce,
    "X-API-SIGNATURE": hmac.new(secret.encode(), "\\n".join(parts).encode(), "sha256").hexdigest(),{headers}
}}
request = Request(os.environ["BANKSIDE_BASE_URL"] + target, body or None, headers, method=method)
try:
    print(urlopen(request, timeout=30).read().decode())
except HTTPError as error:
    print(error.code, error.read().decode())
"""


def _node(request: Request) -> str:
    return f"""\
import {{ createHash, createHmac, randomBytes }} from "node:crypto"

const {{ BANKSIDE_BASE_URL: url, BANKSIDE_SUBSCRIPTION_KEY: key, BANKSIDE_SECRET: secret }} = process.env
const method = "{request.method}", target = "{request.target}"
const body = {_literal(request)}

const timestamp = String(Math.floor(Date.now() / 1000)), nonce = randomBytes(16).toString("hex")
const digest = createHash("sha256").update(body).digest("hex")
const parts = ["v1", timestamp, nonce, key, method, target, digest]
const signature = createHmac("sha256", secret).update(parts.join("\\n")).digest("hex")
{_fetch(request, 'randomBytes(16).toString("hex")')}console.log(answer.status, await answer.text())
"""


def _browser(request: Request) -> str:
    return f"""\
{FOR_BROWSERS}const method = "{request.method}", target = "{request.target}"
const body = {_literal(request)}

const bytes = (text) => new TextEncoder().encode(text)
const hex = (buffer) => Array.from(new Uint8Array(buffer), (b) => b.toString(16).padStart(2, "0")).join("")
const timestamp = String(Math.floor(Date.now() / 1000)), nonce = crypto.randomUUID()
const digest = hex(await crypto.subtle.digest("SHA-256", bytes(body)))
const parts = ["v1", timestamp, nonce, key, method, target, digest]
const hmac = {{ name: "HMAC", hash: "SHA-256" }}
const signing = await crypto.subtle.importKey("raw", bytes(secret), hmac, false, ["sign"])
const signature = hex(await crypto.subtle.sign("HMAC", signing, bytes(parts.join("\\n"))))
{_fetch(request, "crypto.randomUUID()")}console.log(answer.status, await answer.text())
"""


def _literal(request: Request) -> str:
    if request.body is None:
        return '""'
    escaped = request.text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")
    return f"`{escaped}`"


def _fetch(request: Request, random: str) -> str:
    headers = key = ""
    if request.body is not None:
        headers += '\n    "Content-Type": "application/json",'
    if request.idempotent:
        headers += f'\n    "{IDEMPOTENCY_KEY}": idempotencyKey,'
        key = f"\nconst idempotencyKey = {random}  // keep it: a repeat sends the same one"
    return f"""{key}
const answer = await fetch(url + target, {{
  method,{"" if request.body is None else chr(10) + "  body,"}
  headers: {{
    "X-API-SUBSCRIPTION-KEY": key,
    "X-API-TIMESTAMP": timestamp,
    "X-API-NONCE": nonce,
    "X-API-SIGNATURE": signature,{headers}
  }},
}})
"""


_LANGUAGES: tuple[tuple[str, str, Callable[[Request], str]], ...] = (
    ("curl", "shell", _curl),
    ("Python", "python", _python),
    ("Node", "javascript", _node),
    ("Browser", "javascript", _browser),
)
