"""What the production profile refuses, in sentences that say what to do; see `ServiceSettings.refusals`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from libs.persistence.addressing import host_of, parse_database_url, uses_tls

SHORTEST_SECRET = 16
FEWEST_CHARACTERS = 8
"""Different ones in a secret. A random one of 32 hexadecimal digits has fewer once in 10 million times."""
WELL_KNOWN = frozenset({"guest", "password", "postgres", "bankside", "changeme", "secret", "admin"})


def is_on_this_machine(host: str) -> bool:
    """Whether the host is a loopback address, `localhost`, or the path of a socket."""
    if host in ("", "localhost") or host.startswith("/"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def plaintext_database(variable: str, url: str, allowed: frozenset[str]) -> Iterator[str]:
    parsed = parse_database_url(url)
    host, is_encrypted = host_of(parsed), uses_tls(parsed)
    yield from _plaintext(variable, "with ?sslmode=verify-full", host, is_encrypted, allowed)


def plaintext_server(
    variable: str, url: str, scheme: str, allowed: frozenset[str]
) -> Iterator[str]:
    """The refusal of an unencrypted connection to a server that is not on this machine.

    Args:
        scheme: of URLs whose connections are encrypted, such as `amqps`.
        allowed: hosts where the connection need not be encrypted.
    """
    parts = urlsplit(url)
    host, is_encrypted = parts.hostname or "", parts.scheme == scheme
    yield from _plaintext(variable, f"to {scheme}://…", host, is_encrypted, allowed)


def _plaintext(
    variable: str, how: str, host: str, is_encrypted: bool, allowed: frozenset[str]
) -> Iterator[str]:
    if not (is_encrypted or is_on_this_machine(host) or host in allowed):
        yield (
            f"set {variable} {how}: in production the connection to {host} is to be encrypted"
            " (or name it in BANKSIDE_PLAINTEXT_HOSTS)."
        )


def plaintext_provider(variable: str, url: str) -> Iterator[str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not (parts.scheme == "https" or is_on_this_machine(host)):
        yield (
            f"set {variable} to https://…: in production a provider is spoken to by TLS, and never a simulator."
        )


def password_of(url: str) -> str:
    """The password in a URL, which may be none."""
    return unquote(urlsplit(url).password or "")


def weak_secrets(secrets: Mapping[str, str]) -> Iterator[str]:
    """The refusals of secrets that can be guessed, are short, or are the same as another.

    Args:
        secrets: by the name of what sets them.
    """
    seen: dict[str, str] = {}
    for name, secret in secrets.items():
        if secret.lower() in WELL_KNOWN or len(set(secret)) < FEWEST_CHARACTERS:
            yield f"set {name} to a random secret: the one that it has can be guessed."
        elif len(secret) < SHORTEST_SECRET:
            yield f"set {name} to a secret of at least {SHORTEST_SECRET} characters."
        if secret in seen:
            yield f"set {seen[secret]} and {name} to secrets that differ."
        seen.setdefault(secret, name)
