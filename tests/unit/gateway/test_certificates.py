"""Which certificate the gateway serves after its files are renewed, and when that one expires."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from services.gateway.certificates import Certificate
from services.gateway.settings import Settings
from tests.support.certificates import Authority, Identity
from tests.support.waiting import eventually

HOUR = 3600


def settings(identity: Identity | None, profile: str = "production") -> Settings:
    given: dict[str, Any] = {"profile": profile}
    if identity is not None:
        given["tls_certificate_file"] = identity.certificate_file
        given["tls_key_file"] = identity.key_file
    return Settings.model_construct(**given)


@asynccontextmanager
async def followed(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[ssl.SSLContext]]:
    """Those that the certificate was renewed to."""
    monkeypatch.setattr("services.gateway.certificates.CHECK_SECONDS", 0.01)
    renewed: list[ssl.SSLContext] = []
    following = asyncio.create_task(certificate.follow_for_ever(renewed.append), name="following")
    yield renewed
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


def expires_in_hours() -> float | None:
    value = REGISTRY.get_sample_value("bankside_certificate_expires_timestamp_seconds")
    return None if value is None else (value - datetime.now(UTC).timestamp()) / HOUR


async def test_the_expiry_is_that_of_the_certificate_that_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    certificate = Certificate(settings(authority.identity(days=3)))
    before = expires_in_hours()

    async def is_renewed() -> bool:
        return bool(renewed)

    async with followed(certificate, monkeypatch) as renewed:
        authority.identity(days=90)
        await eventually("the renewed one is served", is_renewed)

    assert before == pytest.approx(3 * 24, abs=1)
    assert expires_in_hours() == pytest.approx(90 * 24, abs=1)


async def test_connections_that_are_not_encrypted_never_expire() -> None:
    Certificate(settings(None))

    assert expires_in_hours() == float("inf")


@pytest.mark.parametrize(("profile", "is_refused"), [("production", True), ("development", False)])
async def test_a_renewed_key_that_others_can_read_is_refused_in_production_as_at_the_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    profile: str,
    is_refused: bool,
) -> None:
    authority = Authority(tmp_path)
    identity = authority.identity()
    key_file = Path(identity.key_file)
    certificate = Certificate(settings(identity, profile))
    said: list[str] = []

    async def is_decided() -> bool:
        said.append(capsys.readouterr().out)
        return bool(renewed) or "can be read by other users" in "".join(said)

    async def is_renewed() -> bool:
        return bool(renewed)

    async with followed(certificate, monkeypatch) as renewed:
        key_file.chmod(0o644)
        authority.identity()
        await eventually("the renewed key is taken or refused", is_decided)
        was_renewed = bool(renewed)
        key_file.chmod(0o600)
        await eventually("the private key is taken", is_renewed)

    assert was_renewed is not is_refused
