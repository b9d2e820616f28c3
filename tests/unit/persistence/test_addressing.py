"""How a database is connected to, out of its URL."""

from __future__ import annotations

import ssl

import pytest

from libs.persistence.addressing import BadDatabaseUrl, connect_arguments
from tests.support.with_each import with_each

URL = "postgresql://login:canary@db.example:5433/bankside"


@pytest.mark.parametrize("query", ["", "?sslmode=disable"])
def test_a_connection_is_encrypted_only_when_the_url_says_so(query: str) -> None:
    assert connect_arguments(URL + query) == {
        "host": "db.example",
        "port": 5433,
        "user": "login",
        "password": "canary",
        "database": "bankside",
        "ssl": False,
    }


@pytest.mark.parametrize("query", ["sslmode=require", "sslmode=verify-ca", "ssl=verify-full"])
def test_every_encrypted_connection_verifies_certificate_and_host(query: str) -> None:
    context = connect_arguments(f"{URL}?{query}")["ssl"]

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_path_of_a_socket_stays_as_it_is() -> None:
    found = connect_arguments("postgresql://login@/bankside?host=/run/postgresql")

    assert (found["host"], found["ssl"]) == ("/run/postgresql", False)


def test_the_parameters_that_the_driver_takes_are_handed_to_it() -> None:
    found = connect_arguments(f"{URL}?target_session_attrs=primary&port=5434&sslmode=disable")

    assert (found["target_session_attrs"], found["port"]) == ("primary", "5434")


@pytest.mark.parametrize(
    "parameter",
    ["application_name=canary", "channel_binding=require", "connect_timeout=10", "canary=1"],
)
def test_a_parameter_that_the_driver_does_not_take_is_refused_by_naming_those_that_it_takes(
    parameter: str,
) -> None:
    with pytest.raises(BadDatabaseUrl, match="may be sslmode, ssl, host") as refused:
        connect_arguments(f"{URL}?sslmode=require&{parameter}")

    assert "canary" not in str(refused.value)


def test_an_at_sign_in_a_password_is_refused_by_saying_how_it_is_written() -> None:
    with pytest.raises(BadDatabaseUrl, match="%40") as refused:
        connect_arguments("postgresql://login:first@canary@db.example/bankside")

    assert "canary" not in str(refused.value)


@with_each(
    [
        f"{URL}?target_session_attrs=canary",
        f"{URL}?port=canary",
        f"{URL}?port=5432&port=5433",
        "postgresql://login:canary@db.example:99999/bankside",
        f"{URL}?sslmode=prefer",
        f"{URL}?sslmode=allow",
        f"{URL}?sslmode=require&ssl=disable",
        f"{URL}?sslmode=canary",
        "mysql://login:canary@db.example/bankside",
        "canary",
        "postgresql://login:canary@db.example:port/bankside",
    ]
)
def test_what_may_not_be_encrypted_and_what_is_no_url_is_refused_without_showing_it(
    url: str,
) -> None:
    with pytest.raises(BadDatabaseUrl) as refused:
        connect_arguments(url)

    assert "canary" not in str(refused.value)
