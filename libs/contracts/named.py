"""Types that have a name in the documents, so that code made of them has a class of that name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

MARK = "x-component"


@dataclass(frozen=True, slots=True)
class Named:
    """Marker for `Annotated`, after all that shapes the schema: a list of values that is a component of its own."""

    name: str
    description: str

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), MARK: {"title": self.name, "description": self.description}}
