"""The generated modules of the TypeScript client: types by openapi-typescript, operations and methods by ours."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from libs.contracts.exact_json import encode
from libs.specs.advice import ADVICE
from libs.specs.clients.rows import EVENT, Row, name_of, rows_of
from libs.specs.release import without_prose
from libs.specs.schemas import Schema

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "libs" / "typescript_client" / "src"
PROGRAM = ROOT / ".tools" / "typescript" / "node_modules" / ".bin" / "openapi-typescript"
TYPES = FOLDER / "api.ts"
MADE = "Made by `python -m libs.specs.clients` of the interface's document: do not edit."
_SECONDS = 60


def typescript_modules(document: Schema) -> dict[Path, str]:
    """The generated modules by their files, but for the types."""
    rows = rows_of(document)
    made = {
        "advice.ts": _advice(),
        "events.ts": _events(document),
        "operations.ts": _operations(rows),
        "methods.ts": _methods(rows, document["components"]["schemas"]),
    }
    return {FOLDER / name: text for name, text in made.items()}


def typescript_types(document: Schema) -> str:
    """The text of `api.ts`: what openapi-typescript makes of successes and events, without prose.

    Raises:
        OSError: the program is not installed.
        CalledProcessError, TimeoutExpired: it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, types = Path(folder, "openapi.json"), Path(folder, "api.ts")
        source.write_bytes(encode(_successes(without_prose(json.loads(encode(document))))))
        subprocess.run(
            (PROGRAM, source, "-o", types, "--default-non-nullable", "false"),
            check=True,
            capture_output=True,
            timeout=_SECONDS,
        )
        return types.read_text()


def _successes(document: Any) -> Any:
    """Without problems: a client reads any of them alike. In place."""
    for item in document["paths"].values():
        for operation in item.values():
            operation["responses"] = {"200": operation["responses"]["200"]}
    schemas = document["components"]["schemas"]
    document["components"]["schemas"] = {
        name: schema
        for name, schema in schemas.items()
        if not name.endswith("Problem") and not name.startswith("Validation")
    }
    document["components"].pop("responses", None)
    document.pop("webhooks", None)
    return document


def _advice() -> str:
    lines = (f"  {code}: {json.dumps(sentence)}," for code, sentence in sorted(ADVICE.items()))
    about = f"/** What to do about each error, by its code. {MADE} */\n"
    return "\n".join((about, "export const ADVICE: Record<string, string> = {", *lines, "};\n"))


def _events(document: Schema) -> str:
    names = sorted(
        name
        for name in document["components"]["schemas"]
        if name.endswith("Event") and name != EVENT
    )
    return "\n".join(
        (
            f"/** Every event. {MADE} */\n",
            'import type { components } from "./api.js";\n',
            'type Schemas = components["schemas"];\n',
            "/**",
            " * What happened to a resource; `type` says which form `data` has. A newer gateway may send other types.",
            " * Drop an `id` that you have seen, and a `sequence` below the one that you know of the resource.",
            " */",
            "export type Event =",
            *(f'  | Schemas["{name}"]' for name in names[:-1]),
            f'  | Schemas["{names[-1]}"];\n',
        )
    )


def _operations(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        members = [f'method: "{row.method}"', f'path: "{row.path}"']
        if row.pages:
            members.append(f'pages: "{row.pages}"')
        if row.body:
            members.append("takesBody: true")
        if row.headers:
            members.append(f"headers: {json.dumps([field.name for field in row.headers])}")
        lines.append(f"  {row.operation_id}: {{ {', '.join(members)} }},")
    return "\n".join(
        (
            f"/** The operations of the interface. {MADE} */\n",
            'import type { operations } from "./api.js";\n',
            "export interface Operation {",
            "  method: string;",
            "  path: string;",
            "  /** How a list goes on: by `page`, by `after` (an event's id), or not at all. */",
            '  pages?: "page" | "after";',
            "  /** Without values its body is `{}`; that of the others is empty. */",
            "  takesBody?: true;",
            "  /** Those values that travel as headers. */",
            "  headers?: readonly string[];",
            "}\n",
            "export const OPERATIONS: Record<keyof operations, Operation> = {",
            *lines,
            "};\n",
        )
    )


def _methods(rows: list[Row], schemas: dict[str, Schema]) -> str:
    passed = "operation: Operation, pathValues: readonly string[], values: Values"
    return "\n".join(
        (
            f"/** The methods of the client: every operation. {MADE} */\n",
            'import type { Answer, Page } from "./answers.js";',
            'import type { components, operations } from "./api.js";',
            'import type { Event } from "./events.js";',
            'import { type Operation, OPERATIONS } from "./operations.js";\n',
            'type Schemas = components["schemas"];',
            'type Parameters<K extends keyof operations> = operations[K]["parameters"];',
            'type Query<K extends keyof operations> = NonNullable<Parameters<K>["query"]>;',
            'type Header<K extends keyof operations> = NonNullable<Parameters<K>["header"]>;',
            'type Headers<K extends keyof operations> = Omit<Header<K>, "Idempotency-Key">;\n',
            "export type Values = Record<string, unknown> | object;\n",
            "/** `idempotencyKey`: of a write; a fresh one unless set. A call that repeats it has its effect once. */",
            "export interface Options {",
            "  idempotencyKey?: string;",
            "}\n",
            "/** Every method rejects with a BanksideError, or with a TypeError where nothing can be sent. */",
            "export abstract class Methods {",
            f"  protected abstract call<T>({passed}, options?: Options): Promise<Answer<T>>;\n",
            f"  protected abstract list<T>({passed}): Promise<Page<T>>;",
            *(_method(row, schemas) for row in rows),
            "}\n",
        )
    )


def _method(row: Row, schemas: dict[str, Schema]) -> str:
    parts = [f"{name}: string" for name in row.path_names]
    arguments = [f"OPERATIONS.{row.operation_id}", f"[{', '.join(row.path_names)}]"]
    kind = _values(row)
    if kind:
        needed = [field.name for field in (*row.query, *row.headers) if field.required]
        if row.body:
            needed += schemas[row.body].get("required", [])
            if row.method == "PUT":  # what is absent is taken away: nothing is left out by chance
                needed.append(row.body)
        parts.append(f"values: {kind}{'' if needed else ' = {}'}")
    arguments.append("values" if kind else "{}")
    if row.takes_idempotency_key:
        parts.append("options?: Options")
        arguments.append("options")
    data = _type(row.data)
    wrapped = f"Page<{data.removesuffix('[]')}>" if row.is_list else f"Answer<{data}>"
    return (
        f"\n  /** {row.summary}: `{row.method} {row.path}`. */\n"
        f"  {row.operation_id}({', '.join(parts)}): Promise<{wrapped}> {{\n"
        f"    return this.{'list' if row.is_list else 'call'}({', '.join(arguments)});\n  }}"
    )


def _values(row: Row) -> str:
    if row.body:
        return f'Schemas["{row.body}"]'
    kinds = [f'Query<"{row.operation_id}">'] if row.query else []
    kinds += [f'Headers<"{row.operation_id}">'] if row.headers else []
    return " & ".join(kinds)


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        name = name_of(schema["$ref"])
        return "Event" if name == EVENT else f'Schemas["{name}"]'
    if "anyOf" in schema:
        return " | ".join(_type(item) for item in schema["anyOf"])
    if schema["type"] == "array":
        return f"{_type(schema['items'])}[]"
    return {"null": "null"}[schema["type"]]
