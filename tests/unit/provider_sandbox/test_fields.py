from __future__ import annotations

from services.provider_sandbox.fields import merged


def test_a_patch_replaces_merges_and_clears() -> None:
    known = {"dba": "Acme", "phone": "1", "address": {"city": "Reno", "state": "NV"}}

    after = merged(known, {"dba": None, "phone": "2", "address": {"city": "Elko"}, "website": "w"})

    assert after == {
        "phone": "2",
        "address": {"city": "Elko", "state": "NV"},
        "website": "w",
    }
    assert known["dba"] == "Acme", "what was known is left as it was"


def test_null_below_clears_below() -> None:
    known = {"address": {"city": "Reno", "street_2": "3b"}}

    assert merged(known, {"address": {"street_2": None}}) == {"address": {"city": "Reno"}}


def test_an_object_replaces_what_is_none_and_null_clears_what_is_not_there() -> None:
    assert merged({"address": "?"}, {"address": {"city": "Reno", "state": None}, "dba": None}) == {
        "address": {"city": "Reno"}
    }
