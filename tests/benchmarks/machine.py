"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import asyncpg

from deploy.local.rabbitmq import RabbitMQ

PACKAGES = ("aiohttp", "aio-pika", "asyncpg", "sqlalchemy", "pydantic", "msgspec", "uvloop")


async def describe(postgres_url: str, rabbitmq: RabbitMQ) -> dict[str, str]:
    connection = await asyncpg.connect(postgres_url)
    try:
        settings = {
            name: await connection.fetchval(f"SHOW {name}")
            for name in ("server_version", "fsync", "synchronous_commit")
        }
    finally:
        await connection.close()
    return {
        "cores": str(os.cpu_count()),
        "processor": _processor(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 2**30} GiB",
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "PostgreSQL": settings["server_version"],
        "fsync": settings["fsync"],
        "synchronous_commit": settings["synchronous_commit"],
        "RabbitMQ": await rabbitmq.version(),
        **{name: version(name) for name in PACKAGES},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
