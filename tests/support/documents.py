"""The documents of the interface as this release makes them, made once for a worker. Not to be changed by a test."""

from __future__ import annotations

from functools import cache

from libs.specs import openapi

openapi_document = cache(openapi.openapi_document)
operator_document = cache(openapi.operator_document)
