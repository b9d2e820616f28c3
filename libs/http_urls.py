"""URLs of HTTP servers that an operator sets: looked at when they are read, or each exchange would fail by a mistyped
one.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

# The client refuses a login beside the Authorization header that it sends, and paths are added at the end.
_FORM = re.compile(r"https?://[^\x00-\x20\x7f/?#@%\\]+(/[^\s?#]*)?")


def is_http_url(url: str) -> bool:
    """Whether it is `http` or `https` with a host, perhaps a port and a path, and nothing else."""
    try:
        parts = urlsplit(url)
        return _FORM.fullmatch(url) is not None and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is no number
        return False


def _require(url: str) -> str:
    if not is_http_url(url):
        raise ValueError(
            "it has to be http://HOST:PORT or https://HOST, in lower case and without a login"
        )
    return url


HttpUrl = Annotated[str, AfterValidator(_require)]
