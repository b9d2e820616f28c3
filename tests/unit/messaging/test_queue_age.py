"""How old the oldest message of a queue is, as its consumer tells."""

from __future__ import annotations

from uuid import UUID

from libs.messaging.queue_age import QueueAge

NOW = 1_800_000_000.0
VERSION_7 = 0x7000_8000_0000_0000_0000


def id_of(sent_at: float) -> str:
    return f"evt_{UUID(int=(int(sent_at * 1000) << 80) | VERSION_7)}"


def test_the_oldest_message_is_as_old_as_the_one_that_was_delivered_last() -> None:
    age = QueueAge()
    age.delivered(id_of(NOW - 200))
    age.delivered(id_of(NOW - 100))

    seconds = age.seconds(3, NOW)

    assert seconds == 100


def test_it_grows_older_while_nothing_is_delivered() -> None:
    age = QueueAge()
    age.delivered(id_of(NOW - 100))
    age.seconds(1, NOW)

    assert age.seconds(1, NOW + 15) == 115


def test_messages_that_nothing_takes_grow_older_from_when_they_were_seen_first() -> None:
    age = QueueAge()

    assert [age.seconds(2, NOW), age.seconds(2, NOW + 15)] == [0, 15]


def test_an_empty_queue_has_no_age_and_what_comes_later_is_not_as_old_as_what_was_there() -> None:
    age = QueueAge()
    age.delivered(id_of(NOW - 100))
    age.seconds(1, NOW)

    assert age.seconds(0, NOW + 15) == 0
    assert age.seconds(1, NOW + 30) == 0


def test_an_id_without_a_time_is_taken_for_a_new_message() -> None:
    age = QueueAge()
    seconds = []
    for later in (0, 15):
        age.delivered("not an id")
        seconds.append(age.seconds(1, NOW + later))

    assert seconds == [0, 0]


def test_what_was_sent_before_the_one_that_was_delivered_last_has_been_delivered() -> None:
    age = QueueAge()
    age.delivered(id_of(NOW - 100))
    age.seconds(1, NOW)
    age.seconds(1, NOW + 15)

    assert age.caught_up_to == NOW - 100


def test_all_that_was_sent_before_the_queue_was_seen_empty_has_been_delivered() -> None:
    age = QueueAge()
    age.seconds(0, NOW)
    age.seconds(1, NOW + 15)

    assert age.caught_up_to == NOW


def test_how_long_what_waits_has_waited_is_not_known_before_any_of_it_is_delivered() -> None:
    age = QueueAge()
    age.seconds(1, NOW)
    age.delivered("not an id")
    age.seconds(1, NOW)

    assert age.caught_up_to is None


def test_how_far_it_has_caught_up_is_not_known_once_messages_may_be_in_the_queue_again() -> None:
    age = QueueAge()
    age.seconds(0, NOW)
    age.delivered(id_of(NOW - 100))

    age.requeued()
    age.seconds(0, NOW + 15, is_consumed=False)
    paused = age.caught_up_to
    age.seconds(1, NOW + 30)

    assert paused is None
    assert age.caught_up_to is None


def test_what_is_in_the_queue_again_is_as_old_as_the_message_that_was_delivered_last() -> None:
    age = QueueAge()
    age.delivered(id_of(NOW - 100))

    age.requeued()

    assert age.seconds(1, NOW, is_consumed=False) == 100
