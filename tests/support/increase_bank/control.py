"""`/fake/…`: what tests order and read. None of it is Increase's, and it wants no key."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tests.support.increase_bank import entities, intrafi, statements, wires
from tests.support.increase_bank.errors import ApiError
from tests.support.increase_bank.faults import FaultRule
from tests.support.increase_bank.kinds import ISSUE_CATEGORIES, kind_of
from tests.support.increase_bank.loose_postings import LooseCategory, loose_details
from tests.support.increase_bank.postings import SELECT, balances, load_history, post, transaction
from tests.support.increase_bank.shapes import Json, microseconds, timestamp
from tests.support.increase_bank.verdicts import issue
from tests.support.increase_bank.web import Bank

KINDS = {
    "wires": "wire_transfer",
    "ach": "ach_transfer",
    "accounts": "account",
    "account-numbers": "account_number",
    "entities": "entity",
    "external-accounts": "external_account",
    "owners": "entity_beneficial_owner",
}
B = TypeVar("B", bound="Order")


class Order(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ConductOrder(Order):
    wire_seconds: float | None = Field(default=None, ge=0)
    validation_seconds: float | None = Field(default=None, ge=0)
    page_limit: int | None = Field(default=None, ge=1, le=100)
    whole_seconds: bool | None = None


class WireOrder(Order):
    status: Literal[
        "pending_reviewing",
        "requires_attention",
        "submitted",
        "complete",
        "rejected",
        "canceled",
        "reversed",
    ]
    came_back: int | None = Field(default=None, ge=1)


class EntityOrder(Order):
    """A decision about an entity. Issues are categories, also such as Increase may add; without any, it is valid or
    pending.
    """

    status: Literal["active", "archived", "disabled"] = "active"
    validation: Literal["pending", "valid", "invalid"] = "valid"
    issues: list[str] = []


class PostingOrder(Order):
    """A posting that no object leads to. Increase's own are never earlier than those that it has."""

    amount: int
    category: LooseCategory = "internal_source"
    counterparty: str = "UNNAMED COMPANY"
    description: str = "Booked by the bank"
    at: str | None = None


class HistoryOrder(Order):
    count: int = Field(ge=1, le=2_000_000)
    first: str
    last: str


class StatementOrder(Order):
    year: int = Field(ge=2000, le=2199)
    month: int = Field(ge=1, le=12)


class PatchOrder(Order):
    fields: dict[str, Any]


def routes(bank: Bank) -> list[web.RouteDef]:
    control = Control(bank)
    rows: list[tuple[str, str, Callable[[web.Request], Awaitable[web.Response]]]] = [
        ("GET", "health", control.health),
        ("PUT", "faults", control.put_fault),
        ("GET", "faults", control.list_faults),
        ("DELETE", "faults", control.clear_faults),
        ("PUT", "conduct", control.set_conduct),
        ("GET", "violations", control.list_violations),
        ("DELETE", "violations", control.clear_violations),
        ("GET", "requests", control.list_requests),
        ("GET", "truth/balances", control.list_balances),
        ("GET", "truth/postings", control.list_postings),
        ("GET", "truth/{what}", control.list_objects),
        ("POST", "wires/{id}", control.move_wire),
        ("POST", "entities/{id}", control.decide_entity),
        ("POST", "accounts/{id}/postings", control.book),
        ("POST", "accounts/{id}/history", control.load),
        ("POST", "accounts/{id}/close", control.close),
        ("POST", "accounts/{id}/intrafi", control.rebalance),
        ("POST", "accounts/{id}/statements", control.make_statement),
        ("PATCH", "objects/{id}", control.patch),
        ("DELETE", "keys", control.forget_keys),
    ]
    return [web.route(method, f"/fake/{path}", _mistakes(run)) for method, path, run in rows]


def _mistakes(
    run: Callable[[web.Request], Awaitable[web.Response]],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        try:
            return await run(request)
        except ApiError as error:
            return web.json_response(error.document(), status=error.status)
        except ValidationError as error:
            return web.json_response({"detail": str(error)}, status=422)

    return answer


async def _order(request: web.Request, kind: type[B]) -> B:
    raw = await request.read()
    return kind.model_validate_json(raw or b"{}")


class Control:
    """The requests of a test."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank
        self._store = bank.store

    async def health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "ready"})

    async def put_fault(self, request: web.Request) -> web.Response:
        rule = FaultRule.model_validate_json(await request.read())
        self._bank.faults.put(rule)
        return web.json_response(rule.model_dump())

    async def list_faults(self, _: web.Request) -> web.Response:
        standing = self._bank.faults.standing.values()
        rules = [{**item.rule.model_dump(), "applied": item.applied} for item in standing]
        return web.json_response({"faults": rules})

    async def clear_faults(self, _: web.Request) -> web.Response:
        self._bank.faults.clear()
        return web.json_response({})

    async def set_conduct(self, request: web.Request) -> web.Response:
        order = (await _order(request, ConductOrder)).model_dump(exclude_none=True)
        self._store.whole_seconds = order.pop("whole_seconds", self._store.whole_seconds)
        for name, value in order.items():
            setattr(self._bank.conduct, name, value)
        return web.json_response(dataclasses.asdict(self._bank.conduct))

    async def list_violations(self, _: web.Request) -> web.Response:
        return web.json_response({"violations": self._bank.violations})

    async def clear_violations(self, _: web.Request) -> web.Response:
        self._bank.violations.clear()
        return web.json_response({})

    async def list_requests(self, _: web.Request) -> web.Response:
        return web.json_response({"requests": self._bank.requests})

    async def list_objects(self, request: web.Request) -> web.Response:
        """Every object of a kind, oldest first; `?account_id=` and `?entity_id=` narrow."""
        kind = KINDS.get(request.match_info["what"])
        if kind is None:
            return web.json_response({"detail": f"There are {', '.join(KINDS)}."}, status=404)
        statement, values = "SELECT body FROM object WHERE kind = ?", [kind]
        for name in ("account_id", "entity_id"):
            if name in request.query:
                statement += f" AND {name} = ?"
                values.append(request.query[name])
        rows = self._store.rows(f"{statement} ORDER BY seq", values)
        return _listed(request.match_info["what"], [row[0] for row in rows])

    async def list_postings(self, request: web.Request) -> web.Response:
        """Every transaction of an account, oldest first; without an account, all of them."""
        if "account_id" in request.query:
            where, values = " WHERE account_id = ?", [request.query["account_id"]]
        else:
            where, values = "", []
        rows = self._store.rows(f"{SELECT}{where} ORDER BY created, seq", values)
        return _listed("postings", [transaction(row) for row in rows])

    async def list_balances(self, _: web.Request) -> web.Response:
        rows = self._store.rows("SELECT account_id, current, held FROM balance ORDER BY 1")
        names = ("account_id", "current", "held")
        return web.json_response({"balances": [dict(zip(names, r, strict=True)) for r in rows]})

    async def move_wire(self, request: web.Request) -> web.Response:
        order = await _order(request, WireOrder)
        with self._store.writing():
            wire = self._store.get(wires.KIND, request.match_info["id"])
            self._store.settled(wire["id"])
            wires.move(self._store, wire, order.status, order.came_back)
        return self._object(wires.KIND, wire["id"])

    async def decide_entity(self, request: web.Request) -> web.Response:
        order = await _order(request, EntityOrder)
        with self._store.writing():
            entity = self._store.get(entities.KIND, request.match_info["id"])
            self._store.settled(entity["id"])
            owners = entity["corporation"]["beneficial_owners"]
            issues = [
                issue(category, owners[0]["id"] if category.startswith("beneficial") else None)
                for category in order.issues
            ]
            status = "invalid" if issues else order.validation
            entity["validation"] = {"status": status, "issues": issues}
            is_new = not ISSUE_CATEGORIES.issuperset(order.issues)
            self._store.save(entity | {"status": order.status}, beyond_sdk=is_new)
        return self._object(entities.KIND, entity["id"])

    async def book(self, request: web.Request) -> web.Response:
        order = await _order(request, PostingOrder)
        account_id = request.match_info["id"]
        at = None if order.at is None else microseconds(order.at)
        moment = self._store.now() if at is None else at
        with self._store.writing():
            account = self._store.get("account", account_id)
            posting_id = post(
                self._store,
                account_id,
                order.amount,
                order.category,
                loose_details(order.category, order.amount, order.counterparty, account, moment),
                description=order.description,
                at=at,
            )
        return web.json_response({"id": posting_id})

    async def load(self, request: web.Request) -> web.Response:
        """Postings by the thousand, before there are others."""
        order = await _order(request, HistoryOrder)
        account_id = request.match_info["id"]
        first, last = microseconds(order.first), microseconds(order.last)
        with self._store.writing():
            row = self._store.row(
                "SELECT id FROM object WHERE account_id = ? AND kind = 'account_number'",
                (account_id,),
            )
            route = "account_number_history0000000000000" if row is None else row[0]
            load_history(self._store, account_id, route, order.count, first, last)
        return web.json_response({"balance": balances(self._store, account_id)[0]})

    async def close(self, request: web.Request) -> web.Response:
        """Closes an account at any balance."""
        with self._store.writing():
            account = self._store.get("account", request.match_info["id"])
            closed_at = timestamp(self._store.now())
            self._store.save(account | {"status": "closed", "closed_at": closed_at})
        return self._object("account", account["id"])

    async def rebalance(self, request: web.Request) -> web.Response:
        """What IntraFi does once a day, now."""
        with self._store.writing():
            text = intrafi.rebalance(self._store, request.match_info["id"])
        return web.Response(text=text, content_type="application/json")

    async def make_statement(self, request: web.Request) -> web.Response:
        order = await _order(request, StatementOrder)
        account_id = request.match_info["id"]
        with self._store.writing():
            made = statements.make_statement(self._store, account_id, order.year, order.month)
        return self._object(statements.KIND, made)

    async def patch(self, request: web.Request) -> web.Response:
        """Changes an object behind everyone's back: no event, no validation anew."""
        order, object_id = await _order(request, PatchOrder), request.match_info["id"]
        with self._store.writing():
            body = self._store.get(kind_of(object_id), object_id)
            self._store.save(_merged(body, order.fields), event=False)
        return self._object(kind_of(object_id), object_id)

    async def forget_keys(self, _: web.Request) -> web.Response:
        """As if all keys were older than what the bank remembers."""
        with self._store.writing():
            count = self._store.execute("DELETE FROM used_key").rowcount
        return web.json_response({"forgotten": count})

    def _object(self, kind: str, object_id: str) -> web.Response:
        text = self._store.text(kind, object_id)
        return web.Response(text=text, content_type="application/json")


def _listed(name: str, items: list[str]) -> web.Response:
    text = f"{{{json.dumps(name)}:[{','.join(items)}]}}"
    return web.Response(text=text, content_type="application/json")


def _merged(body: Json, fields: Json) -> Json:
    """JSON Merge Patch, but that null is a value."""
    merged = dict(body)
    for name, value in fields.items():
        mine = merged.get(name)
        nested = isinstance(value, dict) and isinstance(mine, dict)
        merged[name] = _merged(mine or {}, value) if nested else value
    return merged
