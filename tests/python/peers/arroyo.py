"""Arroyo's queries over real streams: the inputs are pushed in order, the final rows compared with the golden ones."""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.causes import Item
from peers.engines import Recorder, runner, timed
from peers.judge import Answer, Outcome, judge
from peers.streams import Pushed, Streams

SECONDS = 60.0


def files(suites: Path) -> list[Path]:
    root = suites / "arroyo"
    queries = sorted((root / "src/test/queries").glob("*.sql"))
    return [p for p in queries if (root / "golden_outputs" / f"{p.stem}.json").exists()]


@dataclass
class Job:
    """What a file of statements asks for."""

    rows: Pushed = field(default_factory=list)
    time: str = '"timestamp"'
    sink: str = ""
    names: list[str] = field(default_factory=list)
    got: list[tuple[Any, ...]] = field(default_factory=list)


class File:
    def __init__(self, suites: Path, path: Path) -> None:
        self._r = runner(suites, "run_arroyo")
        self._slt = runner(suites, "slt")
        self._root = suites / "arroyo"
        self._path = path

    def run(self) -> Iterator[Item]:
        place = f"arroyo/{self._path.name}:{self._path.stem}"
        job = Job()
        _, error = timed(lambda: self._ours(job), SECONDS)
        sql = self._path.read_text()[-400:]
        if error is not None:
            yield Item(place, Outcome.TIMEOUT if error.startswith("TIMEOUT") else Outcome.ERROR, error[:400], sql)
            return
        wanted = self._golden(job)
        got = [[self._text(v) for v in row] for row in job.got]
        right = Counter(map(tuple, got)) == Counter(map(tuple, wanted))
        ours = Answer(rows=got, right=right)
        outcome = judge(ours, None if right else self._duck(), wants_error=False, ordered=False, same=list.__eq__)
        yield Item(place, outcome, "" if right else f"got {len(got)} {got[:3]} want {len(wanted)} {wanted[:3]}", sql)

    def _text(self, value: Any) -> str:
        if isinstance(value, self._slt.TS):
            value = value.text("duckdb")
        elif hasattr(value, "isoformat"):
            value = value.isoformat(sep=" ") if hasattr(value, "hour") else value.isoformat()
        return json.dumps(self._r.norm(value), default=str)

    def _golden(self, job: Job) -> list[list[str]]:
        lines = (self._root / "golden_outputs" / f"{self._path.stem}.json").read_text().splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]
        if rows and {"before", "after", "op"} <= set(rows[0]):
            rows = self._r.debezium(rows)
        names = job.names or (list(rows[0]) if rows else [])
        return [[self._text(row.get(name)) for name in names] for row in rows]

    def _duck(self) -> Answer:
        engines: list[Recorder] = []

        def factory() -> Recorder:
            engines.append(Recorder(self._slt.duckdb_factory()))
            return engines[-1]

        verdict, error = timed(lambda: self._r.one(self._path, factory), SECONDS)
        if error is not None or verdict[0] is None:
            return Answer(error=error or str(verdict[1]))
        columns = self._slt._cols(engines[-1].last)
        rows = [[self._text(v) for v in row] for row in zip(*[c[0] for c in columns], strict=True)]
        return Answer(rows=rows, right=bool(verdict[0]))

    def _ours(self, job: Job) -> None:
        streams = Streams()
        between: dict[str, list[str]] = {}
        for sql in self._r.split(self._path.read_text()):
            table = re.match(
                r"CREATE\s+(?:TEMPORARY\s+)?TABLE\s+(\w+)\s*(?:\((.*)\))?\s*WITH\s*\((.*)\)\s*$", sql, re.I | re.S
            )
            insert = re.match(r"INSERT\s+INTO\s+(\w+)\s+(.*)$", sql, re.I | re.S)
            if table:
                self._table(streams, job, *table.groups())
            elif insert and insert[1] == job.sink:
                query = self._query(job, self._r.types2(insert[2]))
                job.got += streams.rows(query, [job.rows], size=50)
            elif memory := re.match(r"CREATE\s+TABLE\s+(\w+)\s*\(([^)]*)\)\s*$", sql, re.I | re.S):
                between[memory[1]] = [c.split()[0] for c in self._r.cols_of(memory[2])]
            elif insert and insert[1] in between:  # a table between two queries is a view here
                query = self._query(job, self._r.types2(insert[2]))
                names = ", ".join(f"c{i} AS {n}" for i, n in enumerate(between[insert[1]]))
                inner = ", ".join(f"c{i}" for i in range(len(between[insert[1]])))
                streams.session.sql(f"CREATE VIEW {insert[1]} AS SELECT {names} FROM ({query}) AS q({inner})")
            else:
                streams.session.sql(self._query(job, self._r.types2(sql)))
        if not job.sink:
            raise ValueError("no query into the sink")

    def _query(self, job: Job, sql: str) -> str:
        """Put a query to Riverbed: hop(slide, size) gives Arroyo a struct, and is grouped by its number."""
        hop = re.compile(r"hop\s*\(\s*(interval\s*'[^']*'\s*\w*)\s*,\s*(interval\s*'[^']*'\s*\w*)\s*\)", re.I)
        while m := hop.search(sql):
            of = f"({job.time}, {m[1]}, {m[2]})"
            rest = re.sub(r"(GROUP\s+BY\s+(?:\d+\s*,\s*)*)\d+", rf"\1HOP{of}", sql[m.end() :], count=1, flags=re.I)
            sql = f'{sql[: m.start()]}struct_pack("start" := HOP_START{of}, "end" := HOP_END{of}){rest}'
        return str(self._r.rw(sql, job.time))

    def _table(self, streams: Streams, job: Job, name: str, body: str | None, options: str) -> None:
        columns = self._r.cols_of(body or "")
        option = dict(re.findall(r"'?([\w.]+)'?\s*=\s*'([^']*)'", options))
        if option.get("type") == "sink" or "output_path" in options:
            job.sink, job.names = name, [c.split()[0].strip('"') for c in columns]
            return
        schema: dict[str, str] = {}
        watermark = None
        for column in columns:
            mark = re.match(r"watermark\s+for\s+(\S+)(?:\s+as\s+(.*))?$", column, re.I | re.S)
            if mark:
                # Without a bound Arroyo drops nothing outside of windows, so the stream has no watermark here.
                watermark = self._r.quote(mark[2].strip("() \n")) if mark[2] else None
                continue
            if re.search(r"generated\s+always", column, re.I):
                raise NotImplementedError("a generated column of a source")
            first, kind = self._r.types(column).strip().split(None, 1)
            schema[first.strip('"')] = kind.strip()
        if "event_time_field" in option:
            job.time = f'"{option["event_time_field"]}"'
        changes = "debezium" in option.get("format", "")
        streams.create(name, schema, watermark=None if changes else watermark, updating=changes)
        path = self._root / option["path"].replace("$input_dir", "inputs")
        if path.name == "sorted_cars.json" and not path.exists():
            rows = [json.loads(x) for x in (self._root / "inputs/cars.json").read_text().splitlines() if x.strip()]
            rows.sort(key=lambda r: str(r["timestamp"]))
        else:
            rows = [json.loads(x) for x in path.read_text().splitlines() if x.strip()]
        for row in rows:
            for weight, values in changed(row) if changes else [(1, row)]:
                pushed = {k: moment(values.get(k), kind) for k, kind in schema.items()}
                if changes:
                    pushed["__weight"] = weight
                job.rows.append((name, pushed))


def changed(row: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Return what a Debezium record takes away and brings."""
    return [(w, row[k]) for w, k in ((-1, "before"), (1, "after")) if row.get(k) is not None]


def moment(value: Any, kind: str) -> Any:
    """Return a number of microseconds of a TIMESTAMP as one."""
    if isinstance(value, (int, float)) and "TIMESTAMP" in kind.upper():
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=int(value))
    if isinstance(value, str) and "TIMESTAMP" in kind.upper():
        return re.sub(r"(Z|\+00:00)$", "", value.replace("T", " "))
    return value
