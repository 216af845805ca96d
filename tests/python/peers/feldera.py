"""Feldera's compiler tests: steps of changes with weights, and queries; all through materialized views."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from peers.causes import Item
from peers.engines import Engine, Materialized, call, runner, timed
from peers.judge import Answer, judge

SECONDS = 15.0


def files(suites: Path) -> list[Path]:
    return sorted((suites / "feldera" / "compiler").glob("*.json"))


class Failed(Exception):
    """A statement's error, which is one already as text."""


class File:
    def __init__(self, suites: Path, path: Path) -> None:
        self._r = runner(suites, "run_feldera")
        self._slt = runner(suites, "slt")
        self._path = path
        self._sql = ""

    def run(self) -> Iterator[Item]:
        data = json.loads(self._path.read_text())
        for case in data["steps"] if isinstance(data, dict) else []:
            both = [list(self._steps(case, engine)) for engine in (Materialized(), self._slt.duckdb_factory())]
            for i, (ours, duck) in enumerate(zip(*both, strict=True)):
                yield self._item(f"{case['test']}[{i}]", ours, duck)
        for case in data["queries"] if isinstance(data, dict) else []:
            both = [list(self._queries(case, engine)) for engine in (Materialized, self._slt.duckdb_factory)]
            for ours, duck in zip(*both, strict=True):
                yield self._item(case["test"], ours, duck, wants_error="fail" in case)

    def _item(self, name: str, ours: Said, duck: Said, *, wants_error: bool = False) -> Item:
        outcome = judge(ours.answer, duck.answer, wants_error=wants_error, ordered=False, same=self._slt.same_row)
        return Item(f"feldera/{self._path.name}:{name}", outcome, ours.why[:400], ours.sql[:400])

    def _do(self, engine: Engine, sql: str) -> Any:
        self._sql = sql
        table, error = call(engine, sql, SECONDS)
        if error is not None:
            raise Failed(error)
        return table

    def _run_all(self, engine: Engine, text: str) -> None:
        for sql in self._r.split(self._r.ddl(text)):
            self._do(engine, sql)

    def _rows(self, engine: Engine, sql: str) -> list[list[str]]:
        table = self._do(engine, sql)
        rows, error = timed(lambda: self._slt.rows_of(table, "duckdb"), SECONDS)
        if error is not None:
            raise Failed(error)
        return list(rows)

    def _steps(self, case: dict[str, Any], engine: Engine) -> Iterator[Said]:
        before: Counter[tuple[str, ...]] = Counter()
        try:
            self._run_all(engine, "\n".join([*case["setup"], case["sql"]]))
            view = re.findall(r"CREATE\s+(?:MATERIALIZED\s+|LOCAL\s+)?VIEW\s+(\w+)", case["sql"], re.I)[-1]
            if not str(case.get("first")):
                before = Counter(tuple(r) for r in self._rows(engine, f"SELECT * FROM {view}"))
        except Failed as e:
            for _ in case["steps"]:
                yield Said(Answer(error=str(e)), str(e), self._sql)
            return
        for step in case["steps"]:
            try:
                for sql in self._r.split(step["input"]):
                    self._change(engine, self._r.ddl(sql))
                now = Counter(tuple(r) for r in self._rows(engine, f"SELECT * FROM {view}"))
            except Failed as e:
                yield Said(Answer(error=str(e)), str(e), self._sql)
                continue
            changes = [[*r, str(n)] for r in {*now, *before} if (n := now[r] - before[r])]
            before = now
            yield self._compare(changes, step["expected"], weights=True)

    def _change(self, engine: Engine, sql: str) -> None:
        m = re.match(r"REMOVE\s+FROM\s+(\w+)\s+VALUES\s*(.*)$", sql, re.I | re.S)
        if not m:
            self._do(engine, sql)
            return
        columns = self._do(engine, f"DESCRIBE {m[1]}").column(0).to_pylist()
        for row in self._do(engine, f"SELECT * FROM (VALUES {m[2]}) v({','.join(columns)})").to_pylist():
            where = " AND ".join(f"{k} IS NOT DISTINCT FROM {self._r.lit(x)}" for k, x in row.items())
            one = f"SELECT min(rowid) FROM {m[1]} WHERE {where}"
            self._do(engine, f"DELETE FROM {m[1]} WHERE rowid = ({one})")

    def _queries(self, case: dict[str, Any], factory: Callable[[], Engine]) -> Iterator[Said]:
        if "fail" in case:
            yield self._fails(case, factory())
            return
        engine: Engine | None = None
        for block in re.split(r"\n\s*\n", case["text"]):
            m = re.match(r"(.*?);[ \t]*\n(.*)$", block.strip() + "\n", re.S)
            if not m or not m[2].strip():
                continue
            try:
                if engine is None:
                    made = factory()
                    self._run_all(made, "\n".join(case["setup"]))
                    engine = made
                rows = self._rows(engine, self._r.ddl(re.sub(r"^\s*--[^\n]*\n", "", m[1])))
            except Failed as e:
                yield Said(Answer(error=str(e)), str(e), self._sql)
                continue
            yield self._compare(rows, m[2], weights=False)

    def _fails(self, case: dict[str, Any], engine: Engine) -> Said:
        try:
            self._run_all(engine, "\n".join(case["setup"]) + "\n" + case["sql"])
            views = re.findall(r"VIEW\s+(\w+)", case["sql"], re.I)
            if views:
                self._do(engine, f"SELECT * FROM {views[-1]}")
        except Failed as e:
            return Said(Answer(error=str(e), right=True), str(e), self._sql)
        return Said(Answer(), "an error was expected", case["sql"])

    def _compare(self, rows: list[list[str]], expected: str, *, weights: bool) -> Said:
        right, why = self._r.match(rows, self._r.parse_table(expected, weights))
        return Said(Answer(rows=rows, right=bool(right)), "" if right else str(why), self._sql)


class Said:
    """An engine's answer, why it is not the expected one, and the statement."""

    def __init__(self, answer: Answer, why: str, sql: str) -> None:
        self.answer = answer
        self.why = why
        self.sql = sql
