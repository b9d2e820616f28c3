"""What a gateway publishes without credentials: the OpenAPI and AsyncAPI documents, and the reference that shows the
public one.

`python -m libs.specs.published public` (or `operators`) writes those of one listener to stdout. It takes a second, and
memory: the validators of all models 6 MiB, the templates 8 more.
"""

from __future__ import annotations

import sys
import zlib
from typing import Final

import msgspec

from libs.contracts.exact_json import encode
from libs.specs.event_queues import event_queues_document
from libs.specs.openapi import openapi_document, operator_document
from libs.specs.paths import ASYNCAPI, OPENAPI
from libs.specs.reference.pages import pages

JSON: Final = "application/json"

Published = dict[str, tuple[str, bytes]]
"""By paths: the media type, and the content compressed by zlib, which makes 190 KB of 1.9 MB."""


def public() -> Published:
    document = openapi_document()
    return {
        **{
            path: _published(page.content_type, page.body) for path, page in pages(document).items()
        },
        OPENAPI: _published(JSON, encode(document)),
        ASYNCAPI: _published(JSON, encode(event_queues_document())),
    }


def of_operators() -> Published:
    return {OPENAPI: _published(JSON, encode(operator_document()))}


def _published(content_type: str, body: bytes) -> tuple[str, bytes]:
    return content_type, zlib.compress(body)


LISTENERS: Final = {"public": public, "operators": of_operators}

if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.msgpack.encode(LISTENERS[sys.argv[1]]()))
