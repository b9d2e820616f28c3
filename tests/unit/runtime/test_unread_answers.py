"""Which connection is closed where too much of answers is not read."""

from __future__ import annotations

from dataclasses import dataclass, field

from libs.runtime.unread_answers import UnreadAnswers


@dataclass(eq=False)
class Answered:
    """A connection on which so much of an answer waits."""

    address: str | None
    unread: int
    closed_for: list[str] = field(default_factory=list)

    def unread_bytes(self) -> int:
        return self.unread

    def abort(self, bound: str) -> None:
        self.closed_for.append(bound)


def added(answers: UnreadAnswers, *connections: tuple[str | None, int]) -> list[Answered]:
    made = [Answered(address, unread) for address, unread in connections]
    for connection in made:
        answers.add(connection)
    return made


def closed(connections: list[Answered]) -> list[bool]:
    return [each.closed_for == ["unread_answers"] for each in connections]


def test_an_address_with_too_much_for_a_second_loses_the_connection_with_the_most() -> None:
    answers = UnreadAnswers(most_bytes=1000, most_bytes_of_address=100)
    connections = added(answers, ("a", 20), ("b", 90), ("a", 50), ("a", 40))
    answers.check()
    closed_before = closed(connections)

    answers.check()

    assert closed_before == [False, False, False, False], "they may just be read"
    assert closed(connections) == [False, False, True, False]


def test_answers_that_are_taken_within_a_second_are_not_bounded_for_their_address() -> None:
    answers = UnreadAnswers(most_bytes=1000, most_bytes_of_address=100)
    [first, second] = connections = added(answers, ("a", 80), ("a", 70))
    answers.check()
    for each in (first, second):
        answers.remove(each)
        answers.add(each)

    answers.check()

    assert closed(connections) == [False, False]


def test_where_all_have_too_much_the_address_with_the_most_makes_room() -> None:
    answers = UnreadAnswers(most_bytes=100, most_bytes_of_address=100)

    connections = added(answers, ("a", 25), ("b", 30), ("a", 20), ("c", 26))

    assert closed(connections) == [True, False, False, False]


def test_connections_of_a_proxy_count_each_by_itself() -> None:
    answers = UnreadAnswers(most_bytes=1000, most_bytes_of_address=100)
    connections = added(answers, (None, 60), (None, 60), (None, 101))
    answers.check()

    answers.check()

    assert closed(connections) == [False, False, True]


def test_what_callers_have_taken_since_does_not_count() -> None:
    answers = UnreadAnswers(most_bytes=100, most_bytes_of_address=100)
    [reads, is_done] = added(answers, ("a", 50), ("a", 40))

    reads.unread = 5
    answers.remove(is_done)
    [late] = added(answers, ("a", 90))

    assert closed([reads, is_done, late]) == [False, False, False]


def test_what_is_written_while_an_answer_waits_counts() -> None:
    answers = UnreadAnswers(most_bytes=1000, most_bytes_of_address=100)
    [grows] = added(answers, ("a", 50))
    answers.check()
    grows.unread = 101

    answers.check()

    assert closed([grows]) == [True]


def test_what_a_closed_connection_had_does_not_count() -> None:
    answers = UnreadAnswers(most_bytes=100, most_bytes_of_address=100)

    connections = added(answers, ("a", 101), ("a", 60), ("a", 40))

    assert closed(connections) == [True, False, False]
