"""Statuses that Increase has added are counted, for an alert."""

from __future__ import annotations

from typing import get_args

from libs.providers.increase.new_statuses import NEW_STATUSES, Kind


def test_each_kind_of_object_has_its_count_before_the_first_one_so_that_that_is_an_increase() -> (
    None
):
    [family] = NEW_STATUSES.collect()

    assert {sample.labels["kind"] for sample in family.samples} == {*get_args(Kind)}
