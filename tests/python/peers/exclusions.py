"""Records that are not judged, each with its reason (exclusions.txt)."""

from __future__ import annotations

import fnmatch
from dataclasses import replace
from pathlib import Path

from peers.causes import Item
from peers.judge import GOOD, Outcome

LIMIT = 0.10
FILE = Path(__file__).with_name("exclusions.txt")


def read(path: Path = FILE) -> dict[str, str]:
    out = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pattern, gap, reason = line.partition("  ")
        if not gap or not reason.strip():
            raise ValueError(f"exclusions.txt: no reason stands behind {pattern!r}")
        out[pattern] = reason.strip()
    return out


def exclude(items: list[Item], patterns: dict[str, str]) -> list[Item]:
    """Mark what the patterns name; a record that passes is judged all the same."""
    out = []
    for item in items:
        why = next((r for p, r in patterns.items() if fnmatch.fnmatchcase(item.place, p)), None)
        if why is None or item.outcome in GOOD or item.outcome is Outcome.CRASH:
            out.append(item)
        else:
            out.append(replace(item, outcome=Outcome.EXCLUDED, why=why))
    return out
