"""The batch cases' common part: tables, questions, engines in turn, answers compared, one table of ratios.

A case gives a Suite. Every answer is compared with DuckDB's before anything is timed, by the rules of
equal.answers_differ. A question that an engine cannot answer stands in the table as failed, with its message below, and
is left out of the means, which say how many questions they are of.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import pathlib
import re
import tempfile
from collections.abc import Callable
from typing import Any

import equal
import harness

ORACLE = "duckdb"
OURS = "riverbed"


# Question -> engine -> what it answered each time.
Answers = dict[str, dict[str, list[dict[str, Any]]]]


@dataclasses.dataclass
class Question:
    """One question: its SQL, how far its order is given, and other words for engines that need them.

    `ordered` is the number of leading columns whose sequence is given by ORDER BY: 0 compares answers as sets of rows,
    -1 row by row. `words` is engine -> SQL, `code` is engine -> an expression of its API in Python.
    An `extra` question is no part of the means.
    """

    sql: str
    ordered: int = 0
    words: dict[str, str] = dataclasses.field(default_factory=dict)
    code: dict[str, str] = dataclasses.field(default_factory=dict)
    extra: bool = False

    def request(self, engine: str) -> dict[str, Any]:
        if engine in self.code:
            return {"op": "sql", "code": self.code[engine]}
        return {"op": "sql", "sql": self.words.get(engine, self.sql)}


@dataclasses.dataclass
class Suite:
    """A named set of questions over tables (name -> Parquet file), which the engines hold in `form`.

    `setup` is engine -> statements that come first; `note` says in a sentence what else the answers show.
    """

    name: str
    title: str
    tables: dict[str, pathlib.Path]
    questions: dict[str, Question]
    form: str = "file"
    setup: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    note: Callable[[Answers], str] | None = None


def parser(name: str, *, engines: str, repeat: int = 3) -> argparse.ArgumentParser:
    """Return the options that all batch cases have."""
    p = argparse.ArgumentParser(prog=f"bench {name}")
    p.add_argument("part", nargs="?", help="one question, such as q1")
    p.add_argument("--queries", default="", help="some, such as q1,q6")
    p.add_argument("--engines", default=engines)
    p.add_argument("--repeat", type=int, default=repeat)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--memory-limit", default="", help="of engines that have one, such as 4GB")
    p.add_argument("--check", action="store_true", help="only compare answers")
    p.add_argument("--no-check", action="store_true", help="do not compare answers")
    p.add_argument("--alone", action="store_true", help="without peers")
    return p


def numbered(text: str) -> dict[str, str]:
    """Read a file of questions, each behind a line `-- name: q1`."""
    parts = re.split(r"(?m)^-- name: (\w+)\s*$", text)
    return {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def compare(engines: dict[str, harness.Engine], questions: dict[str, Question]) -> dict[str, dict[str, str]]:
    """Compare every engine's answers with DuckDB's; returns engine -> question -> what differs."""
    faults: dict[str, dict[str, str]] = {e: {} for e in engines if e != ORACLE}
    with tempfile.TemporaryDirectory() as folder:
        for q, question in questions.items():
            files = {e: pathlib.Path(folder) / f"{e}.arrow" for e in engines}
            answers = {e: engines[e].ask(**question.request(e), save=str(files[e])) for e in engines}
            for e in faults:
                if "error" in answers[ORACLE]:
                    faults[e][q] = f"{ORACLE} failed: {answers[ORACLE]['error']}"
                elif "error" not in answers[e]:
                    fault = equal.answers_differ(files[e], files[ORACLE], question.ordered)
                    if fault:
                        faults[e][q] = fault
            for f in files.values():
                f.unlink(missing_ok=True)
    return faults


def run(suite: Suite, a: argparse.Namespace) -> None:
    """Compare, time, print and keep."""
    given = suite.questions
    chosen = [a.part] if a.part else [q.strip() for q in a.queries.split(",") if q] or list(given)
    if unknown := [q for q in chosen if q not in given]:
        raise SystemExit(f"{suite.name} has no question {', '.join(unknown)}; it has {', '.join(given)}")
    questions = {q: given[q] for q in chosen}
    names = [OURS] if a.alone else a.engines.split(",")
    engines = {n: harness.Engine(n, threads=a.threads, memory_limit=a.memory_limit) for n in names}
    loads = {e.name: [e.table(name, path, suite.form) for name, path in suite.tables.items()] for e in engines.values()}
    for e in engines.values():
        for statement in suite.setup.get(e.name, []):
            e.prepare(op="run", sql=statement)
    faults: dict[str, dict[str, str]] = {}
    if ORACLE in engines and not a.no_check:
        faults = compare(engines, questions)
        for e, wrong in faults.items():
            for q, why in wrong.items():
                print(f"{e} {q}: {why}", flush=True)
    got = {}
    if not a.check:
        jobs = {q: {e: question.request(e) for e in engines} for q, question in questions.items()}
        got = harness.interleaved(list(engines.values()), jobs, repeat=a.repeat)
        print(f"\n{suite.title}, {a.threads} threads, medians of {a.repeat} interleaved; {harness.machine()}")
        print(", ".join(f"{e.name} {e.version}" for e in engines.values()))
        print(report(got, questions, list(engines)))
        if suite.note:
            print(suite.note(got))
    for e, wrong in faults.items():
        print(f"{e}: {len(questions) - len(wrong)} of {len(questions)} answers do not differ from DuckDB's")
    if got:
        print("raw answers: " + str(harness.save(suite.name, {"load": loads, **got})))
    for engine in engines.values():
        engine.close()
    if faults.get(OURS):
        raise SystemExit(1)


def report(got: Answers, questions: dict[str, Question], names: list[str]) -> str:
    """Draw CPU and wall seconds, their ratios and means, peak memory, and what failed."""
    out = []
    peers = [n for n in names if n != OURS]
    for key, unit in (("cpu", "CPU seconds"), ("wall", "wall seconds")):
        rows: list[list[Any]] = []
        ratios: dict[str, list[float]] = {}
        for q, answers in got.items():
            m = {n: harness.median(answers[n], key) for n in names}
            over = {f"over {n}": m[OURS] / m[n] if m.get(n) and OURS in m else math.nan for n in peers}
            if len(peers) > 1:
                best = min((m[n] for n in ("duckdb", "polars") if n in m and not math.isnan(m[n])), default=math.nan)
                over["over the better"] = m[OURS] / best if OURS in m and best else math.nan
            for name, ratio in over.items():
                if not questions[q].extra:
                    ratios.setdefault(name, []).append(ratio)
            cells = ["failed" if "error" in answers[n][0] else m[n] for n in names]
            rows.append([q, *cells, *over.values()])
        rows.append(["sum", *(sum(v for r in rows if isinstance(v := r[i + 1], float)) for i in range(len(names)))])
        rows[-1] += [""] * len(ratios)
        means = [harness.geomean(r) for r in ratios.values()]
        counts = [sum(not math.isnan(v) for v in r) for r in ratios.values()]
        if peers and OURS in names:
            rows.append(["geometric mean", *([""] * len(names)), *means])
            rows.append(["… of questions", *([""] * len(names)), *counts])
        out.append(f"\n{unit}\n" + harness.table(["question", *names, *ratios], rows))
    peaks = {n: max((x.get("rss_mb", 0) for q in got for x in got[q][n]), default=0) for n in names}
    out.append("\npeak RSS MB of a question, tables included: " + ", ".join(f"{n} {v:.0f}" for n, v in peaks.items()))
    for q, answers in got.items():
        for n in names:
            if "error" in answers[n][0]:
                out.append(f"{n} failed {q}: " + " ".join(answers[n][0]["error"].split()))
    return "\n".join(out)
