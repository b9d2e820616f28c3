"""Where the things that wait for a person are shown, by their kinds."""

from libs.contracts.operating.overview import WaitingKind

WORDS: dict[WaitingKind, tuple[str, str]] = {
    WaitingKind.UNKNOWN_WIRES: ("Wires of unknown outcome", "/wires?unknown=true&order=oldest"),
    WaitingKind.WIRES_FOR_APPROVAL: (
        "Wires that wait for approval",
        "/wires?state=pending_approval&order=oldest",
    ),
    WaitingKind.PARKED_COMMANDS: ("Parked commands", "/commands?state=parked&order=oldest"),
    WaitingKind.DEAD_LETTERS: ("Dead letters", "/dead-letters?order=oldest"),
    WaitingKind.UNKNOWN_STEPS: (
        "Steps of unknown outcome",
        "/saga-steps?kind=unknown&order=oldest",
    ),
    WaitingKind.REFUSED_COMPENSATIONS: (
        "Refused compensations",
        "/saga-steps?kind=refused&order=oldest",
    ),
    WaitingKind.DIFFERENCES: ("Open differences", "/differences?state=open&order=oldest"),
    WaitingKind.UNAVAILABLE_SUBSCRIPTIONS: (
        "Subscriptions that are unavailable",
        "/subscriptions?state=unavailable",
    ),
    WaitingKind.STOPPED_FEEDS: ("Feeds that stand still", "/feeds?stopped=true"),
    WaitingKind.EXPIRING_KEYS: ("Keys about to expire", "/keys?expiring=true"),
    WaitingKind.RESTORES: ("Restores to be looked at", "/restores"),
}
"""What each is called, and its list."""
