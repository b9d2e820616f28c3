"""Dead letters: messages that a service refused."""

from collections.abc import Mapping
from typing import Any

from libs.contracts.operating import dead_letters as o
from services.console.declarations import Action, DetailPage, ListPage, Subject

_OF = ("service", "queue")
_CALLED = (("letter_id", "id"),)

REPLAY = Action(
    title="Replay",
    path="/dead-letters/{letter_id}/replay",
    operation=o.REPLAY_DEAD_LETTER,
    carries=_OF,
    called=_CALLED,
    effect="Has the service that owns the queue accept the message anew, as if it came now. It leaves the dead queue. A"
    " command that was sent more than 24 hours ago stays: if it was carried out, that is forgotten by now, but for"
    " wires, and `Apply again` carries it out once more. Find out first whether it has had its effect, and whether its"
    " caller has sent it again.",
    done="The dead letter is replayed.",
    then="/dead-letters",
)
DISCARD = Action(
    title="Discard",
    path="/dead-letters/{letter_id}/discard",
    operation=o.DISCARD_DEAD_LETTER,
    carries=_OF,
    called=_CALLED,
    effect="Removes the message for good: what it asks or reports never happens here.",
    done="The dead letter is discarded.",
    danger=True,
    then="/dead-letters",
)


def _first(found: o.FoundDeadLetters, _: Mapping[str, str]) -> Any:
    return found.letters[0] if found.letters else None


LIST = ListPage(
    path="/dead-letters",
    title="Dead letters",
    about="Messages that were refused, each with the reason of the service that refused it.",
    operation=o.LIST_DEAD_LETTERS,
    columns=(
        "id",
        "service",
        "operation",
        "event_type",
        "tenant",
        "because",
        "sender",
        "died_at",
    ),
    one="/dead-letters/{id}?service={service}&queue={queue}",
    sorted_by="died_at",
    each=(REPLAY, DISCARD),
)
DETAIL = DetailPage(
    path="/dead-letters/{letter_id}",
    title="Dead letter",
    operation=o.GET_DEAD_LETTERS,
    name="id",
    parent=LIST,
    single=_first,
    actions=(REPLAY, DISCARD),
)

SUBJECT = Subject(LIST, (DETAIL,))
