"""NEXMark from Parquet files, incremental, beside Flink SQL in its mini-cluster.

    make bench CASE=flink                 all questions that both can say, 2 million events
    python bench/run.py flink --queries q1,q5 --events 200000

Both engines read the same Parquet files as streams with the same watermark. Flink keeps its state in RocksDB with
exactly-once checkpoints every ten seconds, as it is run for real, or, with --state hashmap, on its heap without
checkpoints, which is the most that it can be given. Objects are reused, the sink drops what it gets, and the JVM has
run the question once before the run that counts. Ours reads all changes in Python. CPU is all of the process, or the
JVM, from submission to the last change. With --checkpoints 1000 both take one every second and one at the end, to
local files, and ours is a pipeline whose sink is a callable. Flink's answers are not compared: its changes are
dropped. It is fetched into build/flink (PyPI, Maven Central) and needs Java 17 and mvn.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import harness
from nexmark.run import events as nexmark_events

ONLY_BY_NAME = True
HERE = pathlib.Path(__file__).resolve().parent
HOME = HERE.parent.parent / "build" / "flink"
VERSION = "2.3.0"
JARS = (
    f"org.apache.flink:flink-sql-parquet:{VERSION}",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "commons-logging:commons-logging:1.2",
)


def python() -> pathlib.Path:
    """Give the interpreter of an environment with PyFlink, made once."""
    found = HOME / "venv" / "bin" / "python"
    done = HOME / "done"
    if done.exists():
        return found
    for tool in ("java", "mvn"):
        if not shutil.which(tool):
            raise SystemExit(f"bench flink: {tool} is not installed; Flink needs Java 17 and Maven")
    print("fetching Flink (about 900 MB installed)", flush=True)
    HOME.mkdir(parents=True, exist_ok=True)
    run = lambda *command: subprocess.run(command, check=True)  # noqa: E731
    run(sys.executable, "-m", "venv", str(HOME / "venv"))
    run(str(found), "-m", "pip", "install", "-q", "uv")
    run(
        str(found),
        "-m",
        "uv",
        "pip",
        "install",
        "-q",
        "--python",
        str(found),
        f"apache-flink=={VERSION}",
        "setuptools<81",
    )
    for jar in JARS:
        run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={jar}", f"-DoutputDirectory={HOME / 'jars'}")
    done.touch()
    return found


def ask(
    command: list[str], questions: list[str], folder: pathlib.Path, repeat: int, state: str = "", checkpoints: int = 0
) -> dict[str, list[dict[str, Any]]]:
    """Run an engine's script over the questions; it prints one JSON object a run."""
    out: dict[str, list[dict[str, Any]]] = {q: [] for q in questions}
    done = subprocess.run(
        [*command, str(folder), str(repeat), *questions],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {
            "RIVERBED_FLINK_JARS": str(HOME / "jars"),
            "RIVERBED_FLINK_STATE": state,
            "RIVERBED_BENCH_CHECKPOINTS": str(checkpoints),
        },
    )
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            figures = json.loads(line)
            out[figures["question"]].append(figures)
    if done.returncode:
        print(f"bench flink: {command[-1]} ended with code {done.returncode}", file=sys.stderr)
    return out


def main(argv: list[str]) -> None:
    sys.path.insert(0, str(HERE))
    from questions import FLINK

    p = argparse.ArgumentParser(prog="bench flink")
    p.add_argument("part", nargs="?")
    p.add_argument("--events", type=int, default=2_000_000)
    p.add_argument("--queries", default="")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--state", choices=["rocksdb", "hashmap"], default="rocksdb", help="where Flink keeps its state")
    p.add_argument(
        "--checkpoints", type=int, default=0, help="milliseconds between those of both; 0: Flink's 10 s, ours none"
    )
    p.add_argument("--alone", action="store_true", help="without Flink")
    a = p.parse_args(argv)
    questions = [a.part] if a.part else [q for q in a.queries.split(",") if q] or list(FLINK)
    folder = harness.DATA / f"nexmark-{a.events}"
    nexmark_events(a.events)
    flink = None if a.alone else python()
    ours: dict[str, list[dict[str, Any]]] = {q: [] for q in questions}
    theirs: dict[str, list[dict[str, Any]]] = {q: [] for q in questions}
    for q in questions:  # in turn, a question at a time
        ours[q] += ask([sys.executable, str(HERE / "ours.py")], [q], folder, a.repeat, "", a.checkpoints)[q]
        if flink:
            theirs[q] += ask([str(flink), str(HERE / "theirs.py")], [q], folder, a.repeat, a.state, a.checkpoints)[q]
        print(
            f"  {q}: ours {per_million(ours[q]):.3g}, flink {per_million(theirs[q]):.3g} CPU s per million", flush=True
        )
    rows = [
        [
            q,
            ours[q][0]["events"] if ours[q] else "",
            harness.median(ours[q], "events_per_s"),
            harness.median(theirs[q], "events_per_s"),
            per_million(ours[q]),
            per_million(theirs[q]),
            per_million(ours[q]) / per_million(theirs[q]),
            *(harness.median(x[q], "checkpoints") for x in (ours, theirs) if a.checkpoints),
        ]
        for q in questions
    ]
    head = ["query", "events", "events/s", "flink events/s", "riverbed", "flink", "over flink"]
    head += ["checkpoints", "flink's"] if a.checkpoints else []
    print(
        f"\nNEXMark from Parquet, {a.events:,} events, parallelism 2, medians of {a.repeat}, "
        f"CPU seconds per million events; {harness.machine()}\nFlink {VERSION}, {a.state}"
        + (f", both with checkpoints every {a.checkpoints} ms" if a.checkpoints else "")
        + "\n"
        + harness.table(head, rows)
    )
    ratios = [r[6] for r in rows if not math.isnan(r[6])]
    print(
        f"\nCPU over Flink's: geometric mean {harness.geomean(ratios):.3g}, at most {max(ratios, default=math.nan):.3g}"
    )
    print(
        "raw answers: " + str(harness.save("flink", {q: {"riverbed": ours[q], "flink": theirs[q]} for q in questions}))
    )


def per_million(runs: list[dict[str, Any]]) -> float:
    return harness.median(runs, "cpu") / runs[0]["events"] * 1e6 if runs else math.nan
