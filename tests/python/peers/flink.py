"""Flink's table programs over real streams: watermarks move row by row, a crash stands between the phases."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers.causes import Item
from peers.engines import Recorder, runner, timed
from peers.judge import Answer, Outcome, judge
from peers.streams import Pushed, Streams

SECONDS = 20.0
PHASES = ("producedValues", "producedBeforeRestore", "producedAfterRestore")


class NotDrivenError(Exception):
    """The adapter has no way to run this program: a failure like any other."""


def files(suites: Path) -> list[Path]:
    return sorted((suites / "flink" / "programs").glob("*.json"))


class File:
    def __init__(self, suites: Path, path: Path) -> None:
        self._r = runner(suites, "run_flink")
        self._slt = runner(suites, "slt")
        self._path = path

    def run(self) -> Iterator[Item]:
        for program in json.loads(self._path.read_text())["programs"]:
            yield self._program(program)

    def _program(self, program: dict[str, Any]) -> Item:
        place = f"flink/{self._path.name}:{program['id']}"
        sql = str(program["run_sql"])[:400]
        wanted, error = timed(lambda: self._wanted(program), SECONDS)
        if error is not None:
            return Item(place, Outcome.ERROR, f"the expected rows: {error}", sql)
        got, error = timed(lambda: self._ours(program), SECONDS)
        if error is not None:
            return Item(place, Outcome.TIMEOUT if error.startswith("TIMEOUT") else Outcome.ERROR, error, sql)
        ours = Answer(rows=self._split(got), right=self._equal(got, wanted))
        duck = None if ours.right else self._duck(program, wanted)
        outcome = judge(ours, duck, wants_error=False, ordered=False, same=self._slt.same_row)
        return Item(place, outcome, "" if ours.right else f"got {got[:4]} want {wanted[:4]}", sql)

    def _wanted(self, program: dict[str, Any]) -> list[str]:
        sink = dict(program["sinks"][0])
        for phase in ("consumedValues", "consumedBeforeRestore", "consumedAfterRestore"):
            values = sink.get(phase) or []
            if any(isinstance(v, str) and not re.match(r"[+-]\w*\[", v) for v in values):
                sink[phase] = [values]  # the values of one row
        rows, upserts = self._r.final(sink)
        if upserts:
            raise NotDrivenError("a sink of upserts")
        return list(rows)

    def _split(self, lines: list[str]) -> list[list[str]]:
        return [line.split(", ") for line in lines]

    def _equal(self, got: list[str], wanted: list[str]) -> bool:
        return got == wanted or bool(self._slt.multiset(self._split(got), self._split(wanted)))

    def _duck(self, program: dict[str, Any], wanted: list[str]) -> Answer:
        engines: list[Recorder] = []

        def factory() -> Recorder:
            engines.append(Recorder(self._slt.duckdb_factory()))
            return engines[-1]

        verdict, error = timed(lambda: self._r.run_program(program, factory), SECONDS)
        if error is not None or verdict[0] is None:
            return Answer(error=error or str(verdict[1]))
        columns = self._slt._cols(engines[-1].last)
        rows = sorted(", ".join(self._r.fmt(v) for v in row) for row in zip(*[c[0] for c in columns], strict=True))
        return Answer(rows=self._split(rows), right=self._equal(rows, wanted))

    def _ours(self, program: dict[str, Any]) -> list[str]:
        if program["functions"]:
            raise NotDrivenError("user functions of Java")
        streams = Streams()
        for sql in program["setup_sql"]:
            streams.session.sql(self._r.ty(sql))
        phases: list[Pushed] = [[], []]
        for source in program["sources"]:
            self._source(streams, source, phases)
        text = program["run_sql"][0]
        if not isinstance(text, str):
            raise NotDrivenError("a set of statements, whose text the extraction lost")
        text = text.strip().rstrip(";")
        m = re.match(r"INSERT\s+INTO\s+(\S+)\s*(\([^)]*\))?\s+(SELECT|WITH|VALUES|\()", text, re.I)
        if not m:
            raise NotDrivenError("no INSERT INTO … SELECT")
        rows = streams.rows(self._r.ty(text[m.start(3) :]), phases)
        return sorted(", ".join(shown(v) for v in row) for row in rows)

    def _source(self, streams: Streams, source: dict[str, Any], phases: list[Pushed]) -> None:
        schema: dict[str, str] = {}
        computed: list[tuple[str, str]] = []
        physical: list[str] = []
        watermark = None
        for column in source["addSchema"]:
            text = self._r.ty(column)
            mark = re.match(r'\s*WATERMARK\s+FOR\s+("?\w+"?)\s+AS\s+(.*)$', text, re.I | re.S)
            if mark:
                watermark = mark[2]
                continue
            if re.match(r"\s*(?:CONSTRAINT\s+\S+\s+)?PRIMARY\s+KEY", text, re.I):
                continue
            made = re.match(r'\s*("[^"]+"|\S+)\s+AS\s+(.*)$', text, re.I | re.S)
            if made:
                if "PROCTIME" in made[2].upper():
                    continue
                of = re.search(r'TO_TIMESTAMP\s*\(\s*"?(\w+)"?', made[2], re.I)
                if not of:
                    raise NotDrivenError(f"a computed column {made[2]}")
                name = made[1].strip('"')
                schema[name] = "TIMESTAMP"
                computed.append((name, of[1]))
                continue
            plain = re.match(r'\s*("[^"]+"|\S+)\s+(.*)$', text, re.S)
            if not plain:
                raise NotDrivenError(f"a column {text}")
            name = plain[1].strip('"')
            schema[name] = plain[2].replace("METADATA", "").strip()
            physical.append(name)
        tagged = any(isinstance(row, dict) for phase in PHASES for row in source.get(phase) or [])
        updating = source.get("changelog-mode") not in (None, "I") or tagged
        streams.create(source["name"], schema, watermark=watermark, updating=updating)
        for number, phase in enumerate(PHASES):
            for kind, values in self._r.rows(source, (phase,)):
                row = dict(zip(physical, map(self._value, values), strict=False))
                for name, of_name in computed:
                    row[name] = row[of_name]
                if updating:
                    row["__weight"] = 1 if kind in ("INSERT", "UPDATE_AFTER") else -1
                phases[1 if number == 2 else 0].append((source["name"], row))

    def _value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if value.get("$new") == "BigDecimal":
            return str(value["args"][0]).strip('"')
        if "toLocalDateTime" in value.get("$obj", ""):
            at = datetime.datetime.fromtimestamp(value["args"][0] / 1000, datetime.UTC)
            return at.replace(tzinfo=None).isoformat(sep=" ")
        return self._r.lit(value).strip("'").replace("TIMESTAMP '", "")


def shown(value: Any) -> str:
    """Return a value as Flink prints it."""
    if value is None:
        return "null"
    if isinstance(value, datetime.datetime):
        return re.sub(r"(T\d\d:\d\d):00$", r"\1", value.isoformat())
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)
