"""The sqllogictest family: every statement and query goes to both engines, one after another."""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cases_adapter
from peers import hooks
from peers.causes import MISSING, Item, names, target
from peers.engines import call, runner, timed
from peers.judge import TOO_LONG, Answer, Outcome, judge

OURS, DUCK, FILE = 20.0, 15.0, 120.0  # seconds


@dataclass(frozen=True)
class Dialect:
    folder: str
    patterns: tuple[str, ...]
    dialect: str
    style: str
    runner: str = ""
    hook: Callable[[Any], hooks.Hook] | None = None


DIALECTS = {
    "duckdb": Dialect("duckdb", ("*.test",), "duckdb", "duckdb"),
    "sqlite": Dialect("sqlite-slt", ("*.test",), "sqlite", "duckdb"),
    "datafusion": Dialect("datafusion", ("*.slt",), "datafusion", "datafusion", "run_datafusion", hooks.datafusion),
    "risingwave": Dialect("risingwave", (), "risingwave", "pg", "run_risingwave", hooks.risingwave),
}


def files(suites: Path, suite: str) -> list[Path]:
    d = DIALECTS[suite]
    patterns, without = list(d.patterns), []
    if suite == "risingwave":
        module = runner(suites, d.runner)
        patterns, without = list(module.PAT), list(module.EX)
    root = suites / d.folder
    found = sorted({p for pattern in patterns for p in root.rglob(pattern)})
    return [p for p in found if not any(fnmatch.fnmatch(str(p.relative_to(root)), e) for e in without)]


class File:
    """One file of records."""

    def __init__(self, suites: Path, suite: str, path: Path) -> None:
        self._d = DIALECTS[suite]
        self._slt = runner(suites, "slt")
        self._path = path
        self._prefix = f"{suite}/{path.relative_to(suites / self._d.folder)}"
        module = runner(suites, self._d.runner) if self._d.runner else None
        self._hook = self._d.hook(module) if self._d.hook and module else None
        self._duck_hook: hooks.Hook | None = module.rewrite_duckdb if module else None
        self._ours = cases_adapter.connect()
        self._duck = self._slt.duckdb_factory()
        self._labels: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        self._sort: str | None = None
        self._bad: dict[str, str] = {}
        self._null_order = ""
        self._until = time.monotonic() + FILE
        if module and hasattr(module, "setup"):
            timed(lambda: module.setup(self._ours, path), OURS)
            timed(lambda: module.setup(self._duck, path), DUCK)

    def run(self) -> Iterator[Item]:
        yield from self._records(self._path)

    def _records(self, path: Path) -> Iterator[Item]:
        for record in self._slt.parse(path.read_text(errors="replace"), self._d.dialect):
            if record.kind == "control" and "sortmode" in record.sql:
                self._sort = record.sort
            elif record.kind == "include":
                for other in sorted(path.parent.glob(record.sql)):
                    yield from self._records(other)
            elif record.kind in ("statement", "query"):
                yield self._record(record)

    def _record(self, record: Any) -> Item:
        place = f"{self._prefix}:{record.line}"
        sql = self._hook(record.sql) if self._hook else record.sql
        explains = re.match(r"\s*explain\b", record.sql, re.I) is not None
        if record.skip or not record.sql.strip() or explains or sql is None:
            return Item(place, Outcome.SKIPPED)
        if time.monotonic() > self._until:
            return Item(place, Outcome.SKIPPED, TOO_LONG)
        ours = self._answer(self._ours, sql, record, 0, OURS)
        why = self._why
        if self._d.dialect == "sqlite" and ours.right and record.kind == "query":
            return Item(place, Outcome.PASSED)  # a query changes nothing that DuckDB would need later
        duck_sql = self._duck_hook(record.sql) if self._duck_hook else record.sql
        duck = self._answer(self._duck, duck_sql or sql, record, 1, DUCK)
        ordered = record.sort not in ("rowsort", "valuesort") and self._sort not in ("rowsort", "valuesort")
        wants_error = record.err is not None
        outcome = judge(ours, duck, wants_error=wants_error, ordered=ordered, same=self._slt.same_row)
        item = Item(place, outcome, why[:400], sql[:400])
        self._follow(item, ours, record)
        return item

    def _answer(self, engine: Any, sql: str, record: Any, which: int, seconds: float) -> Answer:
        table, error = call(engine, sql, seconds)
        self._why = error or ""
        if error is not None:
            return Answer(error=error, right=record.err is not None and not error.startswith("TIMEOUT"))
        if record.err is not None:
            self._why = "an error was expected"
            return Answer(rows=None, right=False)
        if record.kind == "statement":
            return Answer(right=True)
        rows, error = timed(lambda: self._slt.rows_of(table, self._d.style), seconds)
        if error is not None:
            self._why = f"rows as text: {error}"
            return Answer(rows=None)
        compare = self._slt.compare
        verdict, error = timed(
            lambda: compare(record, rows, table, self._d.dialect, self._sort, self._labels[which]), seconds
        )
        right, self._why = verdict if error is None else (False, f"compare: {error}")
        return Answer(rows=rows, right=bool(right))

    def _follow(self, item: Item, ours: Answer, record: Any) -> None:
        """Note what a failure follows from, and what may follow from it."""
        if not item.failed:
            return
        made = target(record.sql)
        hit = [self._bad[n] for n in sorted(names(record.sql)) if n in self._bad]
        if hit and (ours.error is None or MISSING.search(ours.error)):
            item.follows = hit[0][:400]
        if item.outcome is Outcome.ORDER and self._null_order:
            item.follows = self._null_order
        if ours.error and re.match(r"\s*(set|pragma)\b.*null_order", record.sql, re.I):
            self._null_order = ours.error
        if made and ours.error and record.kind == "statement" and not record.err:
            self._bad.setdefault(made, item.follows or ours.error)
