"""The table of the suites, and what fails in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from peers.causes import Item, causes
from peers.exclusions import LIMIT
from peers.judge import GOOD, TOO_LONG, Outcome

# Per cent of the judged records.
GOALS = {"duckdb": 90, "sqlite": 99, "datafusion": 90, "risingwave": 85, "feldera": 85, "arroyo": 85, "flink": 85}
HEAD = "| suite | goal | rate | judged | passed | as DuckDB | failed | both refuse | excluded | skipped |"


@dataclass(frozen=True)
class Suite:
    name: str
    items: list[Item]
    files: int
    of: int  # files there are

    def count(self, *outcomes: Outcome) -> int:
        return sum(i.outcome in outcomes for i in self.items)

    @property
    def failed(self) -> int:
        return sum(i.failed for i in self.items)

    @property
    def judged(self) -> int:
        return self.count(*GOOD) + self.failed

    @property
    def rate(self) -> float:
        return 100 * self.count(*GOOD) / max(1, self.judged)

    @property
    def too_many_excluded(self) -> bool:
        out = self.count(Outcome.EXCLUDED)
        return self.files == self.of and out > LIMIT * (self.judged + out)

    def row(self) -> str:
        name = self.name if self.files == self.of else f"{self.name} ({self.files} of {self.of} files)"
        numbers = [
            self.judged,
            self.count(Outcome.PASSED),
            self.count(Outcome.AS_DUCKDB),
            self.failed,
            self.count(Outcome.BOTH_REFUSE),
            self.count(Outcome.EXCLUDED),
            self.count(Outcome.SKIPPED),
        ]
        return f"| {name} | {GOALS[self.name]} | {self.rate:.1f} | " + " | ".join(map(str, numbers)) + " |"


def table(suites: list[Suite]) -> str:
    return "\n".join([HEAD, "|---" * 10 + "|", *(s.row() for s in suites)])


def details(suite: Suite, top: int = 20) -> str:
    """Return the causes of a suite's failures, and every wrong answer that follows from no other failure."""
    kinds = Counter(str(i.outcome) for i in suite.items if i.failed)
    out = [f"== {suite.name}: {', '.join(f'{n} {k}' for k, n in kinds.most_common()) or 'no failures'}"]
    for c in causes(suite.items)[:top]:
        out.append(f"{c.count:6d} (first {c.first}, files {c.files}) {c.name}")
        out.append(f"         {c.example.place} {c.example.sql[:100]!r}")
    for item in suite.items:
        if item.outcome in (Outcome.WRONG, Outcome.CRASH) and not item.follows:
            out.append(f"  {item.outcome.upper()} {item.place}: {item.why[:200]!r}\n         {item.sql[:160]!r}")
    unread = sum(i.outcome is Outcome.SKIPPED and i.why == TOO_LONG for i in suite.items)
    if unread:
        out.append(f"  {unread} skipped records were not reached: {TOO_LONG}")
    if suite.too_many_excluded:
        out.append(f"  {suite.count(Outcome.EXCLUDED)} records are excluded: more than {LIMIT:.0%}")
    return "\n".join(out)
