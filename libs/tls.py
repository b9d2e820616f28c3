"""TLS of every connection: version 1.2 or later, and a server's certificate and host name are always verified."""

from __future__ import annotations

import os
import ssl
from datetime import datetime
from functools import lru_cache
from pathlib import Path


class BadCertificates(ValueError):
    """A file of certificates or of a key cannot be used. The message is half a sentence that begins with its path."""


def ca_file_setting(what: str, prefix: str) -> str | None:
    """The file with the CA of the servers, for commands that do not load the settings of a service.

    Args:
        what: `AMQP` or `DATABASE`.
        prefix: of the service's own variables.
    """
    own = os.environ.get(f"BANKSIDE_{prefix}_{what}_CA_FILE")
    return own or os.environ.get(f"BANKSIDE_{what}_CA_FILE") or None


def client_context(ca_file: str | None = None) -> ssl.SSLContext:
    """For connections to servers, by what the file is now: asked for each connection, it follows a renewed CA.

    Args:
        ca_file: the CAs (PEM) that the servers' certificates must lead to; None: those that the system trusts.

    Raises:
        BadCertificates: the file cannot be read or has no certificate.
    """
    if ca_file is None:
        return _client_context(None)
    try:
        found = Path(ca_file).stat()
    except OSError as error:
        raise BadCertificates(f"{ca_file} cannot be read: {error.strerror}") from None
    return _client_context(ca_file, found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _client_context(ca_file: str | None, *_version: int) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError:
        raise BadCertificates(f"{ca_file} has no certificate in PEM") from None
    except OSError as error:
        raise BadCertificates(f"{ca_file} cannot be read: {error.strerror}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def server_context(certificate_file: str, key_file: str) -> ssl.SSLContext:
    """For a server.

    Args:
        certificate_file: its certificate, followed by those between it and its CA (PEM).
        key_file: the certificate's key, without a passphrase (PEM).

    Raises:
        BadCertificates: a file cannot be read, or the key is not the certificate's.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for path in (certificate_file, key_file):
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise BadCertificates(f"{path} cannot be read: {error.strerror}") from None
    try:
        # Without a password, OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certificate_file, key_file, password="")
    except (ssl.SSLError, ValueError):
        raise BadCertificates(
            f"{certificate_file} has no certificate that goes with the key in {key_file}, or the key has a passphrase"
        ) from None
    return context


def expiry_of(certificate_file: str) -> datetime | None:
    """When the first certificate of the file, the server's own, expires; None where that cannot be read."""
    # It takes 5 MiB, which processes without a certificate do not need.
    from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415 - see above

    try:
        return load_pem_x509_certificate(Path(certificate_file).read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return None
