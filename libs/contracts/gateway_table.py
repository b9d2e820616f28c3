"""What the gateway answers itself, in its own process, and with it all that operators may ask."""

from itertools import chain

from libs.contracts.operating import (
    audit,
    commands,
    dead_letters,
    feeds,
    keys,
    operators,
    overview,
    requests,
    resealing,
    restores,
    search,
    sessions,
    traffic,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Family
from libs.contracts.table import OPERATIONS, check, check_ids

GATEWAY_OPERATIONS: tuple[Operation, ...] = (
    *keys.OPERATIONS,
    *operators.OPERATIONS,
    *sessions.OPERATIONS,
    *traffic.OPERATIONS,
    *search.GATEWAY_OPERATIONS,
    *audit.GATEWAY_OPERATIONS,
    *commands.GATEWAY_OPERATIONS,
    *dead_letters.GATEWAY_OPERATIONS,
    *feeds.GATEWAY_OPERATIONS,
    *overview.GATEWAY_OPERATIONS,
    *requests.GATEWAY_OPERATIONS,
    *resealing.GATEWAY_OPERATIONS,
    *restores.GATEWAY_OPERATIONS,
)
"""What the gateway handles itself. To answer, it may query services over the broker."""

OPERATOR_OPERATIONS: tuple[Operation, ...] = tuple(
    row for row in chain(OPERATIONS, GATEWAY_OPERATIONS) if row.family is Family.OPERATOR
)
"""The rows of operators: what the operator listener serves."""

check(OPERATIONS + GATEWAY_OPERATIONS)
check_ids(OPERATOR_OPERATIONS)
