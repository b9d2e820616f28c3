"""The table of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.faults.campaign.operations import WENT_AWAY, Kind, Operation
from tests.faults.campaign.run import Run, Struck

SHOWN = 20
"""Findings of a kind that are shown with their history."""


def percentile(values: Iterable[float], share: float) -> float:
    """0 when there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def table(run: Run, seed: int) -> str:
    verdict = run.verdict
    operations = run.callers.operations
    by_kind = Counter(operation.kind for operation in operations)
    codes = Counter(attempt.code for operation in operations for attempt in operation.attempts)
    starts = sum(replica.starts for replica in run.fleet.replicas)
    lines = [
        f"seed {seed}, {(run.ended - run.began) / 60:.1f} min",
        "",
        f"| {'fault':<38} | times | longest recovery | p99 of the innocent | not done at once |",
        f"|{'-' * 40}|------:|-----------------:|--------------------:|-----------------:|",
        *_fault_lines(run),
        "",
        f"quiet: p99 {_ms(percentile(_quiet(run), 0.99))}",
        f"processes killed: {run.kills}; started again: {starts}",
        f"operations: {len(operations)} ("
        + ", ".join(f"{by_kind[kind]} {kind.value}" for kind in Kind)
        + ")",
        "answers: " + ", ".join(f"{count} {code}" for code, count in codes.most_common()),
        f"events: {verdict.delivered} delivered, {verdict.delivered_again} of them more than once",
        "",
        (
            f"lost {len(verdict.lost)}, doubled {len(verdict.doubled)}, "
            f"wrongly answered {len(verdict.wrong)}, not delivered {len(verdict.undelivered)}"
        ),
    ]
    if run.stuck:
        lines.append(run.stuck)
    for what in ("lost", "doubled", "wrong", "undelivered"):
        found = getattr(verdict, what)
        lines += [f"{what}: {one}" for one in found[:SHOWN]]
    for replica in run.fleet.replicas:
        if replica.failures:
            lines.append(f"{replica.name} ended by itself, {len(replica.failures)} times")
            lines.append(replica.failures[-1])
    return "\n".join(lines)


def _fault_lines(run: Run) -> list[str]:
    struck: dict[str, list[Struck]] = defaultdict(list)
    for one in run.struck:
        struck[one.name].append(one)
    return [
        f"| {name:<38} | {len(times):>5} | {max(one.recovery_seconds for one in times):>14.1f} s "
        f"| {_ms(percentile(_innocent(run, times), 0.99)):>19} | {_not_done(run, times):>16} |"
        for name, times in sorted(struck.items(), key=lambda item: -len(item[1]))
    ]


def _innocent(run: Run, times: list[Struck]) -> list[float]:
    """Seconds of the first attempts, answered 200, of operations that had no part in the fault that was on."""
    return [
        operation.first.seconds
        for struck in times
        for operation in _sent_between(run, struck.began, struck.ended)
        if operation.kind not in struck.touched and operation.first.code == "200"
    ]


def _not_done(run: Run, times: list[Struck]) -> int:
    """Operations that were sent while the fault was on, whose first answer was no success."""
    return sum(
        operation.first.code not in {"200", WENT_AWAY}
        for struck in times
        for operation in _sent_between(run, struck.began, struck.mended)
    )


def _quiet(run: Run) -> list[float]:
    return [o.first.seconds for o in _sent_between(run, *run.quiet) if o.first.code == "200"]


def _sent_between(run: Run, began: float, ended: float) -> list[Operation]:
    return [o for o in run.callers.operations if o.attempts and began <= o.first.sent_at < ended]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds else "-"
