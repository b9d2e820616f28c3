"""Certificates out of files: an operator's mistake is half a sentence that names the file."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from libs.tls import BadCertificates, client_context, server_context
from tests.support.certificates import Authority


def test_no_version_before_1_2_is_spoken(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    for context in (client_context(authority.file), authority.identity().context()):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_ca_file_replaces_the_cas_of_the_system(tmp_path: Path) -> None:
    assert len(client_context(Authority(tmp_path).file).get_ca_certs()) == 1


def test_a_ca_file_without_a_certificate_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    with pytest.raises(BadCertificates, match=f"^{path} cannot be read: No such file"):
        client_context(str(path))

    path.write_text("nothing")
    with pytest.raises(BadCertificates, match=f"^{path} has no certificate"):
        client_context(str(path))


def test_a_key_that_does_not_go_with_the_certificate_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, another = authority.identity("one"), authority.identity("another")

    with pytest.raises(BadCertificates, match=one.key_file):
        server_context(another.certificate_file, one.key_file)
    with pytest.raises(BadCertificates, match="cannot be read"):
        server_context(another.certificate_file, str(tmp_path / "none.key"))


def test_a_key_with_a_passphrase_is_refused_without_asking_for_it(tmp_path: Path) -> None:
    identity = Authority(tmp_path).identity()
    path = Path(identity.key_file)
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )

    with pytest.raises(BadCertificates, match="passphrase"):
        identity.context()
