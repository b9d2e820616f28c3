"""Write the clients' generated parts: `python -m libs.specs.clients`."""

from __future__ import annotations

from libs.specs.clients.python import python_modules
from libs.specs.openapi import openapi_document

for file, text in python_modules(openapi_document()).items():
    file.write_text(text)
