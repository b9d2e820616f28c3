"""Write the clients' generated parts: `python -m libs.specs.clients`."""

from __future__ import annotations

from libs.specs.clients.python import python_modules
from libs.specs.clients.typescript import PROGRAM, TYPES, typescript_modules, typescript_types
from libs.specs.openapi import openapi_document

document = openapi_document()
for file, text in (python_modules(document) | typescript_modules(document)).items():
    file.write_text(text)
if PROGRAM.exists():
    TYPES.write_text(typescript_types(document))
else:
    print(
        f"{TYPES.name} of the TypeScript client is not made: install what makes it, by"
        " `.venv/bin/python -m deploy.local requirements --node`, and run this again."
    )
