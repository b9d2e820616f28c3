"""The recording in the README is an asciicast of at most a minute, and has nothing of the machine that made it."""

from __future__ import annotations

import json

from deploy.console.recording import CAST, COMMAND, LONGEST_SECONDS, shortened


def test_the_recording_is_an_asciicast_of_at_most_a_minute() -> None:
    header, *events = map(json.loads, CAST.read_text("utf-8").splitlines())
    moments = [moment for moment, _, _ in events]
    shown = "".join(text for _, _, text in events)

    assert (header["version"], header["title"]) == (2, COMMAND)
    assert moments == sorted(moments)
    assert moments[-1] <= LONGEST_SECONDS
    assert {kind for _, kind, _ in events} == {"o"}
    assert "/tmp/" not in shown
    assert "Everything is as it should be." in shown


def test_pauses_are_shortened_and_the_whole_to_a_minute() -> None:
    waited = shortened([(0.0, "a"), (300.0, "b")])
    talked = shortened([(float(second), "x") for second in range(200)])

    assert waited == [(0.0, "a"), (1.5, "b")]
    assert talked[-1][0] <= LONGEST_SECONDS
