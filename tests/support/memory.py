"""What a process holds of the machine's memory."""

from __future__ import annotations

from pathlib import Path


def resident_mebibytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
