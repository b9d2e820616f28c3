"""Both libraries make the same of a value, and refuse the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from nacl.exceptions import UnavailableError

from libs.persistence import aes_gcm

KEY, NONCE, CONTEXT = b"k" * 32, b"n" * 12, b"person/1#/tin"
Use = Callable[[bool], None]


@pytest.fixture
def use_libsodium(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Decide which library is used, where both can be."""
    if not aes_gcm.libsodium_can():
        pytest.skip("libsodium has no AES for this processor")

    def use(libsodium: bool) -> None:
        monkeypatch.setattr(aes_gcm, "libsodium_can", lambda: libsodium)

    return use


@pytest.mark.parametrize("plaintext", [b"", b"x", b"123-45-6789", b"x" * 4096])
@pytest.mark.parametrize("context", [b"", CONTEXT])
@pytest.mark.parametrize(("encrypts", "decrypts"), [(True, False), (False, True)])
def test_what_one_encrypts_the_other_decrypts(
    use_libsodium: Use, encrypts: bool, decrypts: bool, context: bytes, plaintext: bytes
) -> None:
    use_libsodium(encrypts)
    ciphertext = aes_gcm.encrypt(plaintext, context, NONCE, KEY)
    use_libsodium(decrypts)

    assert aes_gcm.encrypt(plaintext, context, NONCE, KEY) == ciphertext
    assert aes_gcm.decrypt(ciphertext, context, NONCE, KEY) == plaintext


@pytest.mark.parametrize("libsodium", [True, False])
def test_what_is_not_authentic_is_refused(use_libsodium: Use, libsodium: bool) -> None:
    use_libsodium(libsodium)
    ciphertext = aes_gcm.encrypt(b"123-45-6789", CONTEXT, NONCE, KEY)
    open_it = partial(aes_gcm.decrypt, ciphertext, CONTEXT, NONCE, KEY)
    wrong: list[Callable[[], bytes]] = [
        partial(aes_gcm.decrypt, ciphertext[:-1], CONTEXT, NONCE, KEY),
        partial(aes_gcm.decrypt, b"", CONTEXT, NONCE, KEY),
        partial(aes_gcm.decrypt, ciphertext, b"person/2#/tin", NONCE, KEY),
        partial(aes_gcm.decrypt, ciphertext, CONTEXT, b"m" * 12, KEY),
        partial(aes_gcm.decrypt, ciphertext, CONTEXT, b"n" * 3, KEY),
        partial(aes_gcm.decrypt, ciphertext, CONTEXT, b"", KEY),
        partial(aes_gcm.decrypt, ciphertext, CONTEXT, NONCE, b"l" * 32),
    ]

    assert open_it() == b"123-45-6789"
    for attempt in wrong:
        with pytest.raises(aes_gcm.NotAuthentic):
            attempt()


def test_a_processor_that_libsodium_has_no_aes_for_is_noticed(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def unavailable(*_: bytes) -> bytes:
        raise UnavailableError

    request.addfinalizer(aes_gcm.libsodium_can.cache_clear)
    aes_gcm.libsodium_can.cache_clear()
    monkeypatch.setattr(aes_gcm, "crypto_aead_aes256gcm_encrypt", unavailable)

    ciphertext = aes_gcm.encrypt(b"123-45-6789", CONTEXT, NONCE, KEY)

    assert not aes_gcm.libsodium_can()
    assert aes_gcm.decrypt(ciphertext, CONTEXT, NONCE, KEY) == b"123-45-6789"
