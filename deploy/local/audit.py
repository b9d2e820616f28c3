"""The locked packages against the advisories that their registry knows: `python -m deploy.local.audit`.

The registry is the one that uv.lock names; it is asked by PyPI's JSON API, which has the advisories of each release. A
result is kept for a day, as long as the lock is the same. Where the registry cannot be reached, or has no advisories,
the audit says so in a sentence and fails nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp

from deploy.local.environment import ROOT, TOOLS
from libs.gathering import gather_or_cancel

SECONDS = 30.0
"""For all of it."""
REQUEST_SECONDS = 10.0
AT_ONCE = 16
FIRST = 3
"""Packages that are asked about before the rest: a registry that has no advisories is asked no more."""
GOOD_SECONDS = 24 * 3600
ACCEPTED: Mapping[str, str] = {}
"""Advisories that do not concern this project: their ids, and why."""


class NotAudited(Exception):
    """The registry could not be asked; the message is the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    registry: str


@dataclass(frozen=True, slots=True)
class Advisory:
    package: str
    version: str
    id: str
    fixed_in: str
    link: str


def locked_packages(lock: bytes) -> list[Package]:
    packages = tomllib.loads(lock.decode())["package"]
    return [
        Package(row["name"], row["version"], row["source"]["registry"].removesuffix("/simple"))
        for row in packages
        if "registry" in row["source"]
    ]


async def advisories(
    packages: Sequence[Package], *, seconds: float = SECONDS
) -> tuple[list[Advisory], int]:
    """The advisories, and of how many packages the registry has none because it does not know the release.

    Raises:
        NotAudited: the registry cannot be reached in time, or knows none of the first packages.
    """
    at_once = asyncio.Semaphore(AT_ONCE)
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)

    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:

        async def ask(package: Package) -> list[Advisory] | None:
            async with at_once:
                return await _advisories_of(session, package)

        try:
            async with asyncio.timeout(seconds):
                found = await gather_or_cancel(map(ask, packages[:FIRST]), name="ask-registry")
                if all(one is None for one in found):
                    raise NotAudited("its registry serves no advisories of these releases")
                found += await gather_or_cancel(map(ask, packages[FIRST:]), name="ask-registry")
        except TimeoutError:
            raise NotAudited(f"its registry did not answer within {seconds:g} s") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise NotAudited(f"its registry cannot be asked ({type(error).__name__})") from None
    known = [one for one in found if one is not None]
    return [advisory for one in known for advisory in one], len(found) - len(known)


async def _advisories_of(session: aiohttp.ClientSession, package: Package) -> list[Advisory] | None:
    """None when the registry does not know the release."""
    url = f"{package.registry}/pypi/{package.name}/{package.version}/json"
    async with session.get(url) as response:
        if response.status == 404:
            return None
        response.raise_for_status()
        release: dict[str, Any] = await response.json(content_type=None)
    return [
        Advisory(
            package.name,
            package.version,
            str(row["id"]),
            ", ".join(row.get("fixed_in") or ()),
            str(row.get("link") or ""),
        )
        for row in release.get("vulnerabilities") or ()
        if not row.get("withdrawn")
        and not ACCEPTED.keys() & {row["id"], *(row.get("aliases") or ())}
    ]


def audit(lock: Path, cache: Path, *, seconds: float = SECONDS) -> int:
    """Print what was found; the exit code: 1 when there is an advisory."""
    content = lock.read_bytes()
    packages = locked_packages(content)
    digest = hashlib.sha256(content + repr(sorted(ACCEPTED)).encode()).hexdigest()
    known = _remembered(cache, digest)
    if known is None:
        try:
            known, unknown = asyncio.run(advisories(packages, seconds=seconds))
        except NotAudited as reason:
            print(f"audit: skipped: {lock.name} is not audited, since {reason}.")
            return 0
        if unknown:
            print(f"audit: the registry does not know {unknown} of {len(packages)} packages.")
        else:
            _remember(cache, digest, known)
    for found in known:
        fixed = f"fixed in {found.fixed_in}" if found.fixed_in else "not fixed yet"
        print(f"audit: {found.package} {found.version}: {found.id}, {fixed}: {found.link}")
    if known:
        return 1
    print(f"audit: no advisory is known of the {len(packages)} packages of {lock.name}.")
    return 0


def _remembered(cache: Path, digest: str) -> list[Advisory] | None:
    try:
        stored = json.loads(cache.read_text())
        if stored["of"] != digest or not 0 <= time.time() - stored["at"] < GOOD_SECONDS:
            return None
        return [Advisory(**row) for row in stored["found"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(cache: Path, digest: str, found: Sequence[Advisory]) -> None:
    stored = {"of": digest, "at": time.time(), "found": [asdict(one) for one in found]}
    cache.write_text(json.dumps(stored))


if __name__ == "__main__":
    sys.exit(audit(ROOT / "uv.lock", TOOLS / "audit.json"))
