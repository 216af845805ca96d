"""Groups failures by what caused them, so that a thousand records read as twenty lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from peers.judge import APART, GOOD, Outcome


@dataclass
class Item:
    """One judged record.

    Attributes
    ----------
    place : str
        suite/file:line or suite/file:name.
    why : str
        The error, or how the rows differ.
    follows : str
        The error of the earlier statement that this failure follows from; empty where it stands for itself.
    """

    place: str
    outcome: Outcome
    why: str = ""
    sql: str = ""
    follows: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, line: dict[str, Any]) -> Item:
        return cls(**{**line, "outcome": Outcome(line["outcome"])})

    @property
    def failed(self) -> bool:
        return self.outcome not in GOOD and self.outcome not in APART


NAMED = re.compile(r"no function|no setting|unknown setting|no type|unknown type|no aggregate|is not a type")
TARGET = re.compile(
    r"\s*(?:create\s+(?:or\s+replace\s+)?(?:temp\w*\s+)?(?:unbounded\s+)?(?:external\s+)?(?:materialized\s+)?"
    r"(?:table|view|macro|function|type|sequence|schema)\s+(?:if\s+not\s+exists\s+)?|insert\s+(?:or\s+\w+\s+)?into\s+|"
    r"delete\s+from\s+|update\s+|alter\s+table\s+|merge\s+into\s+|copy\s+|drop\s+\w+\s+(?:if\s+exists\s+)?)\"?([\w.]+)",
    re.I,
)
MISSING = re.compile(
    r"no (materialized|table|view|relation|function|column|such|macro|schema|sequence)|does not exist|unknown"
)


def target(sql: str) -> str:
    """Return the name of what a statement makes or changes, or nothing."""
    m = TARGET.match(sql)
    return m[1].lower().split(".")[-1] if m else ""


def names(sql: str) -> set[str]:
    return {x.lower() for x in re.findall(r"[A-Za-z_]\w*", sql)}


def cause(item: Item) -> str:
    """Return the name of the group that a failure belongs to."""
    if item.outcome in (Outcome.ERROR, Outcome.TIMEOUT, Outcome.CRASH) or item.follows:
        return group(item.follows or item.why)
    return item.outcome.upper()


def group(error: str) -> str:
    """Return an error without what differs from record to record."""
    text = error.strip().split("\n")[0]
    text = re.sub(r"\(line \d+, column \d+\)", "", text)
    text = re.sub(r"the window function \w+\(\)", "the window function F()", text)
    if not NAMED.search(text):
        text = re.sub(r'"[^"]*"', '"X"', text)
        text = re.sub(r"'[^']*'", "'X'", text)
    text = re.sub(r"\b\d+\b", "N", text)
    text = re.sub(r"[;,]? ?did you mean.*", "", text)
    return text.strip()[:150]


@dataclass(frozen=True)
class Cause:
    name: str
    count: int
    first: int
    files: int
    example: Item


def causes(items: Iterable[Item]) -> list[Cause]:
    """Return the groups of all failures, the largest first; `first` counts those that follow from no other."""
    failed = [i for i in items if i.failed]
    counts = Counter(cause(i) for i in failed)
    out = []
    for name, count in counts.most_common():
        of = [i for i in failed if cause(i) == name]
        own = [i for i in of if not i.follows]
        out.append(Cause(name, count, len(own), len({i.place.rsplit(":", 1)[0] for i in of}), (own or of)[0]))
    return out
