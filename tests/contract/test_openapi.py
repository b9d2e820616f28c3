"""The OpenAPI document says what the table says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from http import HTTPMethod
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from libs.contracts.binding import bind
from libs.contracts.events import API_VERSION, EVENT_TYPES
from libs.contracts.exact_json import encode
from libs.contracts.gateway_table import OPERATOR_OPERATIONS
from libs.contracts.operation import Operation
from libs.contracts.table import OPERATIONS, PUBLIC_OPERATIONS
from libs.specs.example_events import event_example
from libs.specs.problems import errors_of
from tests.support.documents import openapi_document, operator_document
from tests.support.with_each import with_each

ROWS = PUBLIC_OPERATIONS
WITH_BODY = [row for row in ROWS if row.takes_body]


def name_of(row: Operation) -> str:
    return row.name


each_row = with_each(ROWS, name_of)
each_row_with_body = with_each(WITH_BODY, name_of)


def described(row: Operation) -> dict[str, Any]:
    found: dict[str, Any] = openapi_document()["paths"][row.path][str(row.method).lower()]
    return found


def parameters(row: Operation) -> dict[str, dict[str, Any]]:
    components = openapi_document()["components"]["parameters"]
    resolved = [
        components[item["$ref"].rpartition("/")[2]] if "$ref" in item else item
        for item in described(row)["parameters"]
    ]
    return {item["name"]: item for item in resolved}


def responses(row: Operation) -> dict[str, Any]:
    shared = openapi_document()["components"]["responses"]
    return {
        status: shared[item["$ref"].rpartition("/")[2]] if "$ref" in item else item
        for status, item in described(row)["responses"].items()
    }


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The component that a schema refers to."""
    found: dict[str, Any] = openapi_document()["components"]["schemas"][
        schema["$ref"].rpartition("/")[2]
    ]
    return found


def codes_of(response: dict[str, Any]) -> set[str]:
    schema = response["content"]["application/problem+json"]["schema"]
    problems = [resolved(item) for item in schema.get("oneOf", [schema])]
    return {problem["properties"]["code"]["const"] for problem in problems}


def validator(schema: dict[str, Any]) -> Any:
    return OAS31Validator(
        {**schema, "components": openapi_document()["components"]},
        format_checker=OAS31Validator.FORMAT_CHECKER,
    )


def test_the_document_is_valid_openapi() -> None:
    validate(openapi_document())


def test_the_document_has_each_row_of_the_table_and_nothing_else() -> None:
    documented = {
        operation["operationId"]
        for path in openapi_document()["paths"].values()
        for operation in path.values()
    }

    assert documented == {row.operation_id for row in ROWS}


@each_row
def test_an_operations_id_is_a_verb_and_a_noun(row: Operation) -> None:
    assert re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", row.operation_id)
    assert not row.operation_id.lower().startswith(row.service.replace("_", ""))


def test_every_schema_has_a_title_of_its_own() -> None:
    for name, schema in openapi_document()["components"]["schemas"].items():
        assert schema["title"] == name
        assert re.fullmatch(r"[A-Z][A-Za-z]+", name)


@each_row
def test_an_operation_is_under_the_tag_of_its_resource(row: Operation) -> None:
    assert described(row)["tags"] == [row.resource]
    assert row.resource in {tag["name"] for tag in openapi_document()["tags"]}


def test_the_document_has_what_is_posted_for_each_type_of_event() -> None:
    webhooks = openapi_document()["webhooks"]

    assert set(webhooks) == set(EVENT_TYPES)
    for name, webhook in webhooks.items():
        schema = webhook["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert resolved(schema)["properties"]["type"]["const"] == name


def test_webhooks_and_events_are_the_same_in_both_families() -> None:
    paths = openapi_document()["paths"]

    for path in ("/webhooks/subscriptions", "/webhooks/subscriptions/{subscription_id}", "/events"):
        customer, partner = paths[f"/customer{path}"], paths[f"/partner/reseller{path}"]
        assert customer.keys() == partner.keys()
    assert len([path for path in paths if "/webhooks/" in path or "/events" in path]) == 24
    assert "x-extension" not in paths["/customer/webhooks/subscriptions"]["post"]


def test_internal_queries_are_nobody_elses_business() -> None:
    internal = [row.command.__name__ for row in OPERATIONS if not row.path]

    assert internal
    assert not set(internal) & set(openapi_document()["components"]["schemas"])


def test_every_operation_wants_the_four_headers_together() -> None:
    schemes = openapi_document()["components"]["securitySchemes"]
    (alternative,) = openapi_document()["security"]

    assert {(item["type"], item["in"], item["name"]) for item in schemes.values()} == {
        ("apiKey", "header", "X-API-SUBSCRIPTION-KEY"),
        ("apiKey", "header", "X-API-TIMESTAMP"),
        ("apiKey", "header", "X-API-NONCE"),
        ("apiKey", "header", "X-API-SIGNATURE"),
    }
    assert alternative == {name: [] for name in schemes}
    for row in ROWS:
        assert "security" not in described(row)
        assert not [name for name in parameters(row) if name.startswith("X-API-")]


@each_row
def test_writes_and_only_writes_take_an_idempotency_key(row: Operation) -> None:
    assert ("Idempotency-Key" in parameters(row)) == (row.method is not HTTPMethod.GET)


@each_row
def test_extensions_are_marked(row: Operation) -> None:
    assert described(row).get("x-extension", False) is row.extension


@each_row
def test_what_the_path_holds_is_a_path_parameter_and_not_in_the_body(row: Operation) -> None:
    body = openapi_document()["components"]["schemas"].get(row.command.__name__, {})

    for name in row.path_fields:
        assert parameters(row)[name]["in"] == "path"
        assert name not in body.get("properties", {})
    assert set(re.findall(r"{(\w+)}", row.path or "")) == set(row.path_fields)


@each_row
def test_each_field_of_a_read_is_a_parameter_and_of_a_write_in_the_body(row: Operation) -> None:
    fields = set(row.command.model_fields) - set(row.path_fields) - {f for f, _ in row.headers}
    in_query = {name for name, item in parameters(row).items() if item["in"] == "query"}
    schema = openapi_document()["components"]["schemas"].get(row.command.__name__, {})
    in_body = set(schema.get("properties", {})) if "requestBody" in described(row) else set()

    assert in_query == (fields if row.is_query else set())
    assert in_body == (set() if row.is_query else fields)


@each_row
def test_every_error_of_an_operation_is_under_its_status(row: Operation) -> None:
    found = responses(row)

    for error in {*errors_of(row), *row.errors}:
        assert error.code in codes_of(found[str(error.status)])
    assert "application/json" in found["422"]["content"]


@each_row
def test_an_operation_has_no_error_that_is_not_its_own(row: Operation) -> None:
    documented = {
        code
        for status, response in responses(row).items()
        if status not in {"200", "422"}
        for code in codes_of(response)
    }

    assert documented == {error.code for error in errors_of(row)}


@each_row
def test_an_operation_has_what_it_refuses_a_body_with_also_where_there_is_none_to_send(
    row: Operation,
) -> None:
    assert {"400", "415"} <= {*responses(row)}


@each_row
def test_every_answer_to_a_request_that_counts_tells_the_rate(row: Operation) -> None:
    rate = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}

    told = {status for status, found in responses(row).items() if rate <= found["headers"].keys()}

    assert told == responses(row).keys() - {"401", "408", "413"}


@with_each([row for row in ROWS if not row.is_read], name_of)
def test_a_write_tells_a_replay(row: Operation) -> None:
    found = responses(row)

    for status in {"404", "409"} & {*found}:
        assert "Idempotent-Replayed" in found[status]["headers"]


@with_each(
    [row for row in ROWS if not row.is_read and "transaction_id" in row.path_fields], name_of
)
def test_a_write_about_a_wire_names_it_while_it_is_pending(row: Operation) -> None:
    assert row.pending_id == "transaction_id"


@each_row
def test_every_example_of_a_problem_is_a_problem(row: Operation) -> None:
    for response in responses(row).values():
        content = response["content"].get("application/problem+json")
        if content:
            validator(content["schema"]).validate(content["example"])


@each_row
def test_success_is_the_envelope(row: Operation) -> None:
    schema = resolved(described(row)["responses"]["200"]["content"]["application/json"]["schema"])
    expected = {"message", "data"}
    if row.pagination:
        expected |= {"pagination"}
    if row.as_of_date:
        expected |= {"as_of_date"}

    assert set(schema["properties"]) == set(schema["required"]) == expected
    if row.reply is None:
        assert schema["properties"]["data"]["type"] == "null"
    if row.pagination:
        reference = schema["properties"]["pagination"]["$ref"]
        assert reference == f"#/components/schemas/{row.pagination.__name__}"


@each_row_with_body
def test_the_example_of_a_request_is_valid_by_the_schema_and_by_the_service(row: Operation) -> None:
    content = described(row)["requestBody"]["content"]["application/json"]

    validator(content["schema"]).validate(content["example"])
    bind(row, dict.fromkeys(row.path_fields, "some-id"), body=encode(content["example"]))


@each_row_with_body
def test_a_request_with_an_unknown_field_is_invalid_by_the_schema(row: Operation) -> None:
    content = described(row)["requestBody"]["content"]["application/json"]

    assert not validator(content["schema"]).is_valid({**content["example"], "no_such_field": 1})


def test_money_is_a_number_and_an_instant_is_a_date_time() -> None:
    schemas = openapi_document()["components"]["schemas"]

    amount = schemas["Money"]["properties"]["amount"]
    at = schemas["Balance"]["properties"]["system_timestamp"]
    assert (amount["type"], amount["format"]) == ("number", "decimal")
    assert (at["type"], at["format"]) == ("string", "date-time")


@each_row
def test_an_operation_its_parameters_and_its_answer_are_described(row: Operation) -> None:
    operation = described(row)

    assert operation["description"] != operation["summary"]
    assert operation["description"].endswith(".")
    for name, item in parameters(row).items():
        assert item.get("description", "").endswith("."), (
            f"describe {name} below the field, or in libs/specs/wording.py"
        )
    assert "example" in operation["responses"]["200"]["content"]["application/json"], (
        "add one to libs/specs/example_answers.py"
    )


@pytest.mark.parametrize("make", [openapi_document, operator_document])
def test_every_schema_and_every_property_is_described(make: Callable[[], dict[str, Any]]) -> None:
    for name, schema in make()["components"]["schemas"].items():
        assert schema["description"], name
        for field, item in schema.get("properties", {}).items():
            assert item["description"], (name, field)


@each_row
def test_the_example_of_an_answer_is_whole_and_valid(row: Operation) -> None:
    content = described(row)["responses"]["200"]["content"]["application/json"]

    validator(content["schema"]).validate(content["example"])
    assert content["example"]["message"] == row.message
    if row.reply is not None:
        assert content["example"]["data"]


@with_each(EVENT_TYPES)
def test_the_example_of_an_event_is_valid_and_has_every_field(name: str) -> None:
    content = openapi_document()["webhooks"][name]["post"]["requestBody"]["content"][
        "application/json"
    ]

    validator(content["schema"]).validate(content["example"])
    model = EVENT_TYPES[name].data
    assert set(content["example"]["data"]) == set(model.model_fields)
    assert content["example"]["api_version"] == API_VERSION


def test_an_event_of_a_kind_without_an_example_is_named() -> None:
    frozen = replace(EVENT_TYPES["wire.created"], name="card.frozen")

    with pytest.raises(LookupError, match=r"card\.frozen has no example: add 'card' to"):
        event_example(frozen)


@with_each(["DeliveredEvent", "WireCompletedEvent"])
def test_an_event_that_was_recorded_by_another_version_is_valid(name: str) -> None:
    schema = openapi_document()["components"]["schemas"][name]
    event = event_example(EVENT_TYPES["wire.completed"])

    validator(schema).validate({**event, "api_version": "0.0.9"})

    assert schema["properties"]["api_version"]["examples"] == [API_VERSION]


def test_every_amount_has_a_format_an_example_and_a_sentence() -> None:
    for name, schema in openapi_document()["components"]["schemas"].items():
        for field, item in schema.get("properties", {}).items():
            variants = [item, *item.get("anyOf", [])]
            for number in (part for part in variants if part.get("type") == "number"):
                if name != "LimitExceededProblem":
                    assert number["format"] == "decimal", (name, field)
                    assert number["examples"], (name, field)
                    assert len(item["description"]) > 10


def test_every_field_of_a_reply_is_required() -> None:
    schemas = openapi_document()["components"]["schemas"]

    for name in ("Account", "Customer", "OnboardingResult", "PartnerAccountList"):
        assert set(schemas[name]["required"]) == set(schemas[name]["properties"])


def test_the_document_of_operators_has_their_rows_and_nothing_else() -> None:
    described = operator_document()
    documented = {
        operation["operationId"]: operation
        for path in described["paths"].values()
        for operation in path.values()
    }

    validate(described)
    for operation in documented.values():
        assert operation["description"] != operation["summary"]
        for item in (operation, *operation["parameters"]):
            assert item["description"].endswith("."), (operation["operationId"], item)
    assert set(documented) == {row.operation_id for row in OPERATOR_OPERATIONS}
    for row in OPERATOR_OPERATIONS:
        operation = documented[row.operation_id]
        assert operation["x-role"] == ("console" if row.for_console else row.role)
        assert "Idempotency-Key" not in str(operation)
        assert operation["summary"]
        forbidden = operation["responses"]["403"]
        if "$ref" in forbidden:
            forbidden = described["components"]["responses"]["Forbidden"]
        assert "`insufficient_role`" in forbidden["description"]
        without_reason = row.is_read or row.for_console
        assert ("reason" in row.command.model_fields) is not without_reason
