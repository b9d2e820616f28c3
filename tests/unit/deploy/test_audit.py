"""The audit of the locked packages, against a registry of the test's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from deploy.local import audit
from tests.support.pace import pace
from tests.support.ports import free_ports

PACKAGES = ("alpha", "beta", "gamma", "delta")
ADVISORY = {
    "id": "PYSEC-1",
    "aliases": ["CVE-1"],
    "fixed_in": ["1.1"],
    "link": "https://advisories.test/PYSEC-1",
    "withdrawn": None,
}


@dataclass
class Registry:
    """Answers with the advisories of each package; those that are missing are unknown to it."""

    url: str
    known: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hangs: bool = False

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.hangs:
            await asyncio.sleep(60)  # longer than the audit waits for an answer
        name = request.match_info["name"]
        if name not in self.known or request.match_info["version"] != "1.0":
            raise web.HTTPNotFound
        return web.json_response({"vulnerabilities": self.known[name]})


@pytest.fixture
def registry() -> Iterator[Registry]:
    """In a thread of its own: the audit has an event loop of its own."""
    (port,) = free_ports(1)
    registry = Registry(f"http://127.0.0.1:{port}", {name: [] for name in PACKAGES})
    loop = asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/pypi/{name}/{version}/json", registry.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        return runner

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(start(), loop).result(30 * pace())
    yield registry
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(30 * pace())
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def lock(tmp_path: Path, registry: Registry) -> Path:
    rows = [
        f'[[package]]\nname = "{name}"\nversion = "1.0"\nsource = {{ registry = "{registry.url}/simple" }}\n'
        for name in PACKAGES
    ]
    own = '[[package]]\nname = "bankside"\nversion = "0.1.0"\nsource = { editable = "." }\n'
    path = tmp_path / "uv.lock"
    path.write_text("".join([own, *rows]))
    return path


def audited(lock: Path, *, seconds: float = 30.0) -> int:
    return audit.audit(lock, lock.parent / "audit.json", seconds=seconds * pace())


def test_packages_without_advisories_pass_and_are_not_asked_about_again_that_day(
    registry: Registry, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = audited(lock), audited(lock)

    assert codes == (0, 0)
    assert sorted(registry.asked) == sorted(f"/pypi/{name}/1.0/json" for name in PACKAGES)
    assert "no advisory is known of the 4 packages" in capsys.readouterr().out

    lock.write_text(lock.read_text() + "\n")
    audited(lock)

    assert len(registry.asked) == 2 * len(PACKAGES)


def test_an_advisory_fails_also_from_memory(
    registry: Registry, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.known["delta"] = [ADVISORY]

    codes = audited(lock), audited(lock)

    assert codes == (1, 1)
    sentence = "audit: delta 1.0: PYSEC-1, fixed in 1.1: https://advisories.test/PYSEC-1\n"
    assert capsys.readouterr().out == sentence * 2


def test_withdrawn_and_accepted_advisories_do_not_fail(
    registry: Registry, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.known["alpha"] = [ADVISORY, {**ADVISORY, "aliases": [], "withdrawn": "2026-01-01"}]
    monkeypatch.setattr(audit, "ACCEPTED", {"CVE-1": "it is about a part that is not used"})

    assert audited(lock) == 0


def test_a_registry_without_advisories_is_asked_about_few_and_skipped_in_a_sentence(
    registry: Registry, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.known.clear()

    assert audited(lock) == 0

    assert capsys.readouterr().out == (
        "audit: skipped: uv.lock is not audited, since its registry serves no advisories of these releases.\n"
    )
    assert len(registry.asked) == audit.FIRST


def test_a_package_that_the_registry_does_not_know_is_told(
    registry: Registry, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del registry.known["gamma"]

    assert audited(lock) == 0

    assert "does not know 1 of 4 packages" in capsys.readouterr().out
    assert not (lock.parent / "audit.json").exists()


def test_a_registry_that_does_not_answer_is_skipped_in_time(
    registry: Registry, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry.hangs = True

    assert audited(lock, seconds=0.2) == 0

    assert "audit: skipped: uv.lock is not audited, since its registry did not answer within" in (
        capsys.readouterr().out
    )


def test_a_registry_that_cannot_be_reached_is_skipped(
    lock: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    (port,) = free_ports(1)
    lock.write_text(lock.read_text().replace(registry.url, f"http://127.0.0.1:{port}"))

    assert audited(lock) == 0

    assert "audit: skipped: uv.lock is not audited, since its registry cannot be asked" in (
        capsys.readouterr().out
    )
