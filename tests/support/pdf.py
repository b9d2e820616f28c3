"""Reading what the sandbox's PDFs say: their texts, page by page. No reader of PDFs in general."""

from __future__ import annotations

import re
import zlib

STREAM = re.compile(rb"stream\r?\n(.*?)\nendstream", re.DOTALL)
TEXT = re.compile(rb"\(((?:[^()\\]|\\.)*)\) Tj", re.DOTALL)


def texts_of_pages(pdf: bytes) -> list[list[str]]:
    """The texts in the order in which they were drawn. Relies on one-byte fonts and deflated pages."""
    return [_texts(content) for content in map(_inflated, STREAM.findall(pdf)) if b" Tj" in content]


def _inflated(stream: bytes) -> bytes:
    """What follows the deflated bytes is left out: they may themselves end like a line does."""
    try:
        return zlib.decompressobj().decompress(stream)
    except zlib.error:
        return b""


def _texts(content: bytes) -> list[str]:
    return [re.sub(rb"\\(.)", rb"\1", text).decode("cp1252") for text in TEXT.findall(content)]
