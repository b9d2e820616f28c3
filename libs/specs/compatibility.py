"""Whether an OpenAPI document of ours keeps what callers of an earlier one rely on.

Callers send requests as they did, read answers and events as they did, and compile code that was generated of the
document. What may be added: operations, optional parameters and fields of requests, fields of answers, events, codes of
errors. Answers may not get a value, a type or a null where there was none: generated code refuses these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from libs.contracts import patterns
from libs.specs.schemas import REF, resolved

Schema = Mapping[str, Any]

LOWER_BOUNDS = ("minimum", "exclusiveMinimum", "minLength", "minItems")
UPPER_BOUNDS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
WIDER = {("integer", "number")}


def may_break(released: str, current: str) -> bool:
    """Whether the version tells callers to expect a break: a higher major version, before 1.0 a higher minor one."""
    was, now = ([int(part) for part in version.split(".")] for version in (released, current))
    counted = 1 if was[0] else 2
    return now[:counted] > was[:counted]


def breaking_changes(released: Schema, current: Schema) -> list[str]:
    """What would break callers of the released document, each as a sentence; empty when nothing does."""
    return list(dict.fromkeys(_Comparison(released, current).changes()))


WIDENED = frozenset({patterns.TIN, patterns.WEB_URL, patterns.CALLBACK_URL})
"""Patterns that take all that they took in the released document, and more, which nothing here could find out: a test
draws from the released ones. They are taken out with the next release.
"""


OPENED = frozenset({"api_version"})
"""Fields of answers and events that the released document has as one constant, although its guide to versions says that
their value changes: callers were told to expect others. They are taken out with the next release.
"""
_ANY_TEXT: Schema = {"type": "string"}


class _Comparison:
    def __init__(self, released: Schema, current: Schema) -> None:
        self._old, self._new = released, current
        self._compared: set[tuple[str, str, bool]] = set()

    def changes(self) -> Iterator[str]:
        if self._old["security"] != self._new["security"]:
            yield "the security requirements have changed"
        if self._old["components"]["securitySchemes"].keys() ^ (
            self._new["components"]["securitySchemes"].keys()
        ):
            yield "the security schemes have changed"
        for path, operations in self._old["paths"].items():
            for method, old in operations.items():
                place = f"{method.upper()} {path}"
                new = self._new["paths"].get(path, {}).get(method)
                if new is None:
                    yield f"{place}: is gone"
                else:
                    yield from self._operation(old, new, place)
        for name, webhook in self._old.get("webhooks", {}).items():
            new = self._new.get("webhooks", {}).get(name)
            if new is None:
                yield f"event {name}: is gone"
            else:
                yield from self._schema(
                    _json(webhook["post"]["requestBody"]),
                    _json(new["post"]["requestBody"]),
                    f"event {name}",
                    sent=False,
                )

    def _operation(self, old: Schema, new: Schema, place: str) -> Iterator[str]:
        for member in ("operationId", "tags", "x-scope", "x-role"):
            if old.get(member) != new.get(member):
                yield f"{place}: {member} is {new.get(member)}, and was {old.get(member)}"
        yield from self._parameters(old, new, place)
        yield from self._body(old.get("requestBody"), new.get("requestBody"), place)
        for status, response in old["responses"].items():
            was = resolved(self._old, response)
            if status not in new["responses"]:
                if status == "200":
                    yield f"{place}: the answer 200 is gone"
                continue
            now = resolved(self._new, new["responses"][status])
            for header in was.get("headers", {}).keys() - now.get("headers", {}).keys():
                yield f"{place}: the header {header} of {status} is gone"
            if was["content"].keys() != now["content"].keys():
                yield f"{place}: the media type of {status} has changed"
                continue
            yield from self._answer(_json(was), _json(now), f"{place}: {status}", status)

    def _answer(self, old: Schema, new: Schema, place: str, status: str) -> Iterator[str]:
        """Codes of errors may come and go; what one looks like stays."""
        if status == "200":
            yield from self._schema(old, new, place, sent=False)
            return
        now = {item.get("$ref"): item for item in new.get("oneOf", [new])}
        for item in old.get("oneOf", [old]):
            if item.get("$ref") in now:
                yield from self._schema(item, now[item.get("$ref")], place, sent=False)

    def _parameters(self, old: Schema, new: Schema, place: str) -> Iterator[str]:
        was, now = self._by_place(self._old, old), self._by_place(self._new, new)
        for key, parameter in was.items():
            about = f"{place}: {key[0]} {key[1]}"
            if key not in now:
                yield f"{about}: is gone"
                continue
            if now[key]["required"] and not parameter["required"]:
                yield f"{about}: is required now"
            yield from self._schema(parameter["schema"], now[key]["schema"], about, sent=True)
        for key in now.keys() - was.keys():
            if now[key]["required"]:
                yield f"{place}: {key[0]} {key[1]}: is new and required"

    def _by_place(self, document: Schema, operation: Schema) -> dict[tuple[str, str], Schema]:
        found = (resolved(document, item) for item in operation["parameters"])
        return {(item["in"], item["name"]): item for item in found}

    def _body(self, old: Schema | None, new: Schema | None, place: str) -> Iterator[str]:
        if old is None or new is None:
            if old is not new:
                yield f"{place}: {'takes no body any more' if old else 'takes a body now'}"
            return
        yield from self._schema(_json(old), _json(new), f"{place}: body", sent=True)

    def _schema(self, old: Schema, new: Schema, place: str, *, sent: bool) -> Iterator[str]:
        """`sent`: by callers; else they read it."""
        names = _name(old), _name(new)
        if names[0] and names[0] != names[1]:
            yield f"{place}: is named {names[1] or 'nothing'}, and was named {names[0]}"
        if all(names):
            if (key := (str(names[0]), str(names[1]), sent)) in self._compared:
                return
            self._compared.add(key)
        if sent and old.get("default") != new.get("default"):
            yield f"{place}: the default is {new.get('default')}, and was {old.get('default')}"
        was, now = self._variants(self._old, old), self._variants(self._new, new)
        lost, gained = was.keys() - now.keys(), now.keys() - was.keys()
        if sent:
            lost = {k for k in lost if not any((k, other) in WIDER for other in now)}
        for kind in sorted(lost if sent else gained):
            yield f"{place}: {'takes no' if sent else 'may be'} {kind}{' any more' if sent else ' now'}"
        for kind in sorted(was.keys() & now.keys()):
            yield from self._value(was[kind], now[kind], place, sent=sent)

    def _variants(self, document: Schema, schema: Schema) -> dict[str, Schema]:
        """What a value may be, by type; of several of one type, by name as well."""
        found = [*self._alternatives(document, schema)]
        kinds = Counter(kind for kind, _, _ in found)
        return {
            f"{kind} {name}" if kinds[kind] > 1 else kind: variant for kind, name, variant in found
        }

    def _alternatives(self, document: Schema, schema: Schema) -> Iterator[tuple[str, str, Schema]]:
        """Type, name and schema of each."""
        found = resolved(document, schema)
        items = found.get("anyOf", []) + found.get("oneOf", [])
        for item in items:
            yield from self._alternatives(document, item)
        if not items:
            name = schema.get("$ref", found.get("title", found.get("format", "")))
            yield str(found.get("type", "anything")), str(name).rpartition("/")[2], found

    def _value(self, old: Schema, new: Schema, place: str, *, sent: bool) -> Iterator[str]:
        if old.get("format") != new.get("format"):
            yield f"{place}: the format is {new.get('format')}, and was {old.get('format')}"
        yield from _values(old, new, place, sent=sent)
        if sent:
            yield from _narrowed(old, new, place)
        if "items" in old and "items" in new:
            yield from self._schema(old["items"], new["items"], f"{place}[]", sent=sent)
        yield from self._members(old, new, place, sent=sent)

    def _members(self, old: Schema, new: Schema, place: str, *, sent: bool) -> Iterator[str]:
        was, now = old.get("properties", {}), new.get("properties", {})
        required, required_now = set(old.get("required", ())), set(new.get("required", ()))
        for name in was.keys() - now.keys():
            yield f"{place}.{name}: is gone"
        for name in sorted(
            required_now - required if sent else (required - required_now) & set(now)
        ):
            yield f"{place}.{name}: is {'required' if sent else 'not always there'} now"
        if sent and new.get("additionalProperties", True) != old.get("additionalProperties", True):
            yield f"{place}: takes other unknown fields than before"
        for name in was.keys() & now.keys():
            is_opened = name in OPENED and not sent and "const" in was[name]
            before = _ANY_TEXT if is_opened else was[name]
            yield from self._schema(before, now[name], f"{place}.{name}", sent=sent)


def _values(old: Schema, new: Schema, place: str, *, sent: bool) -> Iterator[str]:
    """The listed values that are allowed; None where any is."""
    was, now = _listed(old), _listed(new)
    if sent and now is not None and was is None:
        yield f"{place}: takes listed values only now"
    elif not sent and was is not None and now is None:
        yield f"{place}: may have values now that are not listed"
    elif was is not None and now is not None:
        for value in sorted(was - now if sent else now - was):
            yield f"{place}: {'takes no' if sent else 'may be'} {value} {'any more' if sent else 'now'}"


def _listed(schema: Schema) -> set[str] | None:
    if "const" in schema:
        return {str(schema["const"])}
    return {str(value) for value in schema["enum"]} if "enum" in schema else None


def _narrowed(old: Schema, new: Schema, place: str) -> Iterator[str]:
    if "pattern" in new and new["pattern"] not in (old.get("pattern"), *WIDENED):
        yield f"{place}: has another pattern"
    for bounds, tighter in ((LOWER_BOUNDS, 1), (UPPER_BOUNDS, -1)):
        for bound in bounds:
            was, now = old.get(bound), new.get(bound)
            if now is not None and (was is None or (now - was) * tighter > 0):
                yield f"{place}: {bound} is {now}, and was {was}"


def _json(holder: Schema) -> Schema:
    """The schema of the one media type of a body or response."""
    (content,) = holder["content"].values()
    schema: Schema = content["schema"]
    return schema


def _name(schema: Schema) -> str | None:
    ref = schema.get("$ref")
    return ref.removeprefix(REF.format(model="")) if ref else None
