"""Errors of the Python client as values: they are copied, and go from one process to another."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import product

import pytest

import bankside_client
from bankside_client import BanksideError
from tests.support.with_each import with_each

ERRORS: list[type[BanksideError]] = [BanksideError, *BanksideError.__subclasses__()]
COPIES = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@with_each(product(ERRORS, COPIES), lambda case: f"{case[0].__name__} {case[1]}")
def test_a_copy_of_an_error_has_all_that_it_had(case: tuple[type[BanksideError], str]) -> None:
    kind, way = case
    problem = {"transaction_id": "t1", "detail": [{"loc": ["body", "amount"], "msg": "No."}]}
    error = kind("no_answer", "No.", "r-1", status=504, problem=problem, idempotency_key="k")
    error.add_note("as wire 7 was sent")

    found: BanksideError = COPIES[way](error)

    assert type(found) is kind
    assert (str(found), vars(found)) == (str(error), vars(error))
    assert (found.idempotency_key, found.errors) == ("k", problem["detail"])


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", ["WebhookSecretError", "WebhookSignatureError"])
def test_a_copy_of_an_error_of_webhooks_says_the_same(
    name: str, copied: Callable[[Exception], Exception]
) -> None:
    error: Exception = getattr(bankside_client, name)("a secret is missing")

    found = copied(error)

    assert (type(found), str(found)) == (type(error), "a secret is missing")


def test_every_error_of_the_package_is_copied_here() -> None:
    exported = {getattr(bankside_client, name) for name in bankside_client.__all__}
    errors = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Exception)}

    assert {kind.__name__ for kind in errors - set(ERRORS)} == {
        "WebhookSecretError",
        "WebhookSignatureError",
    }
