"""How many files, and so connections, a process may have open."""

from __future__ import annotations

import resource

from libs.runtime.process import Misconfigured

RESERVED_DESCRIPTORS = 256
"""For the database, the broker and files."""


def possible_connections(service: str, wanted: int) -> int:
    """How many of the `wanted` connections this process may have open, once its limit of files is raised as needed.

    Raises:
        Misconfigured: the system allows too few files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_DESCRIPTORS
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed <= RESERVED_DESCRIPTORS:
        raise Misconfigured(
            f"let {service} open more than {RESERVED_DESCRIPTORS} files: `ulimit -Hn` is {hard}."
        )
    return allowed - RESERVED_DESCRIPTORS
