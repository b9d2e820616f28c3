"""A sealed value opens with its key, in its place, unaltered, and never otherwise."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from libs.persistence.sealing import CHECKED, BadKey, CannotOpen, Keyring, LookupKeys
from tests.support.with_each import with_each
from tests.unit.persistence.keys import a_key, a_keyring

PLAINTEXT, CONTEXT = "123-45-6789", "person/1#/tin"
RING = a_keyring()
KEY = "A" * 43 + "="


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(st.characters(exclude_categories=["Cs"])),
)
def test_what_was_sealed_opens_in_its_context(plaintext: str, context: str) -> None:
    assert RING.open(RING.seal(plaintext, context), context) == plaintext


def test_a_token_opens_in_no_other_context() -> None:
    token = RING.seal(PLAINTEXT, CONTEXT)

    for other in ("person/2#/tin", "person/1#/ein"):
        with pytest.raises(CannotOpen):
            RING.open(token, other)
    with pytest.raises(CannotOpen):
        RING.open(f"s1{token.removeprefix('s2')}", CONTEXT)


def test_a_token_of_an_earlier_release_is_bound_to_its_row_until_it_is_sealed_anew() -> None:
    nonce, key = bytes(12), bytes(32)
    sealed = nonce + AESGCM(key).encrypt(nonce, PLAINTEXT.encode(), b"person/1")
    token = f"s1.k1.{base64.urlsafe_b64encode(sealed).decode()}"
    ring = Keyring(f"k1:{base64.b64encode(key).decode()}")

    anew = ring.reseal(token, CONTEXT)

    assert ring.open(token, CONTEXT) == ring.open(anew, CONTEXT) == PLAINTEXT
    assert not ring.is_current(token)
    assert ring.is_current(anew)
    assert ring.reseal(anew, CONTEXT) == anew
    with pytest.raises(CannotOpen):
        ring.open(token, "person/2#/tin")


def test_no_altered_byte_of_a_token_goes_unseen() -> None:
    version, key_id, data = RING.seal(PLAINTEXT, CONTEXT).split(".")
    raw = base64.urlsafe_b64decode(data)

    for place in range(len(raw)):
        altered = bytearray(raw)
        altered[place] ^= 1
        token = f"{version}.{key_id}.{base64.urlsafe_b64encode(altered).decode()}"
        with pytest.raises(CannotOpen):
            RING.open(token, CONTEXT)


@with_each(
    [
        "",
        "s1",
        "s1.k1.",
        "s1.k1.AAAA",
        "s2.k1.AAAA",
        "s3.k1.AAAA",
        "s1.k9.AAAA",
        "s1.k1.é",
        PLAINTEXT,
        "..",
        "s1.k1.A",
    ],
    repr,
)
def test_what_is_no_token_cannot_be_opened(token: str) -> None:
    with pytest.raises(CannotOpen):
        RING.open(token, CONTEXT)


def test_a_cut_token_cannot_be_opened() -> None:
    token = RING.seal(PLAINTEXT, CONTEXT)

    for length in range(len(token)):
        with pytest.raises(CannotOpen):
            RING.open(token[:length], CONTEXT)


def test_two_seals_of_one_value_are_unlike_and_show_nothing_of_it() -> None:
    first, second = RING.seal(PLAINTEXT, CONTEXT), RING.seal(PLAINTEXT, CONTEXT)

    assert first != second
    assert PLAINTEXT not in first


def test_a_rotated_ring_seals_with_the_new_key_and_opens_what_the_old_one_sealed() -> None:
    old_key, new_key = a_key(), a_key()
    token = Keyring(f"old:{old_key}").seal(PLAINTEXT, CONTEXT)

    rotated = Keyring(f"new:{new_key},old:{old_key}")

    assert rotated.open(token, CONTEXT) == PLAINTEXT
    assert Keyring(f"new:{new_key}").open(rotated.seal(PLAINTEXT, CONTEXT), CONTEXT) == PLAINTEXT
    with pytest.raises(CannotOpen):
        Keyring(f"new:{new_key}").open(token, CONTEXT)


def test_another_key_under_the_same_id_does_not_open() -> None:
    with pytest.raises(CannotOpen):
        a_keyring("k1").open(RING.seal(PLAINTEXT, CONTEXT), CONTEXT)


@with_each(
    [
        ("nothing", ""),
        ("no key", "k1"),
        ("an empty key", "k1:"),
        ("a short key", "k1:c2hvcnQ="),
        ("not base64", f"k1:{KEY[:-2]}!="),
        ("a bad id", f"k 1:{KEY}"),
        ("an id twice", f"k1:{KEY},k1:{KEY}"),
        ("an empty entry", f"k1:{KEY},"),
    ],
    lambda case: case[0],
)
def test_a_ring_that_cannot_work_is_refused_without_showing_a_key(case: tuple[str, str]) -> None:
    _, keys = case

    with pytest.raises(BadKey) as refusal:
        Keyring(keys)

    assert KEY[:16] not in str(refusal.value)


def test_no_repr_shows_a_key() -> None:
    key = a_key()

    shown = f"{Keyring(f'k1:{key}')!r} {LookupKeys(key)!r}"

    assert "k1" in shown
    assert key not in shown
    assert key[:16] not in shown


def digest_of(key: str, purpose: str, value: str | bytes) -> bytes:
    [digest] = LookupKeys(key).digests(purpose, value)
    return digest


def test_a_lookup_digest_is_the_same_for_the_same_and_unlike_for_all_else() -> None:
    key = f"k1:{a_key()}"
    digest = digest_of(key, "ein", "123456789")

    assert digest_of(key, "ein", b"123456789") == digest
    assert digest_of(key, "account", "123456789") != digest
    assert digest_of(key, "ein", "123456780") != digest
    assert digest_of(key, "ein1", "23456789") != digest
    assert digest_of(f"k1:{a_key()}", "ein", "123456789") != digest


def test_a_value_has_a_digest_by_each_lookup_key_which_names_its_key() -> None:
    new, old, earlier = f"new:{a_key()}", f"old:{a_key()}", a_key()

    digests = LookupKeys(f"{new},{old},{earlier}").digests("ein", "1")

    assert digests == tuple(digest_of(key, "ein", "1") for key in (new, old, earlier))
    assert [LookupKeys.key_id_of(digest) for digest in digests] == ["new", "old", ""]
    assert len(digests[-1]) == 32


def test_the_check_value_of_a_key_goes_by_the_key_alone_and_is_no_digest() -> None:
    key, other = a_key(), a_key()
    ring, keys = Keyring(f"a:{key},b:{other}"), LookupKeys(f"c:{key}")

    assert ring.check_values["a"] == keys.check_values["c"]
    assert ring.check_values["a"] != ring.check_values["b"]
    purpose, value = CHECKED.decode(), ""
    assert keys.digests(purpose, value)[0].partition(b":")[2] != keys.check_values["c"]
