"""What the cases share: one process per engine, runs interleaved A B A B, medians, ratios.

An engine runs in a process of its own (worker.py) so that its CPU seconds are its own: user and system time of all
its threads. Every figure is the median of the repetitions; a ratio is one of medians.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path(os.environ.get("RIVERBED_BENCH_DATA", HERE / "data"))
RESULTS = pathlib.Path(os.environ.get("RIVERBED_BENCH_RESULTS", HERE.parent / "build" / "bench"))


class Engine:
    """A worker process. One that dies is an answer with an error, and another takes its place."""

    def __init__(self, kind: str, *, threads: int, memory_limit: str = "", name: str = "") -> None:
        self.name = name or kind
        self.command = [sys.executable, str(HERE / "worker.py"), kind, str(threads), memory_limit]
        self.prepared: list[dict[str, Any]] = []
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.version = self.read()["version"]
        self.read_answer({"op": "warm"})
        for request in self.prepared:
            self.read_answer(request)

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise EOFError(f"{self.name} ended with code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def read_answer(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        return self.read()

    def ask(self, **request: Any) -> dict[str, Any]:
        try:
            return self.read_answer(request)
        except (EOFError, BrokenPipeError) as e:
            self.start()
            return {"error": str(e) or f"{self.name} ended"}

    def prepare(self, **request: Any) -> dict[str, Any]:
        """Ask what has to be asked again of a worker that takes the place of one that died."""
        answer = self.read_answer(request)
        if "error" in answer:
            raise SystemExit(f"{self.name} cannot begin with {request}: {answer['error']}")
        self.prepared.append(request)
        return answer

    def table(self, name: str, path: str | pathlib.Path, form: str) -> dict[str, Any]:
        """Give the engine a table; see worker.py for the forms."""
        return self.prepare(op="table", name=name, path=str(path), form=form)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def interleaved(
    engines: Sequence[Engine], jobs: dict[str, dict[str, dict[str, Any]]], *, repeat: int
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Run every job (job -> engine -> request) `repeat` times, engines in turn. Returns job -> engine -> answers.

    What fails is not asked again.
    """
    out: dict[str, dict[str, list[dict[str, Any]]]] = {job: {e.name: [] for e in engines} for job in jobs}
    for round_ in range(repeat):
        for job, requests in jobs.items():
            for e in engines if round_ % 2 == 0 else list(reversed(engines)):
                answers = out[job][e.name]
                if not (answers and "error" in answers[0]):
                    answers.append(e.ask(**requests[e.name]))
    return out


def median(answers: Iterable[dict[str, Any]], key: str) -> float:
    values = [a[key] for a in answers if key in a]
    return statistics.median(values) if values else math.nan


def geomean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values if v > 0 and not math.isnan(v)]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def machine() -> str:
    with open("/proc/cpuinfo") as info:
        models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    # A library that was built elsewhere says of what (compare.py); else it is taken for that of the tree.
    commit = os.environ.get("RIVERBED_BENCH_COMMIT") or (
        subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE, check=False
        ).stdout.strip()
    )
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} x {model}, load {load:.1f}, commit {commit}, {datetime.date.today()}"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Draw a Markdown table; floats get three significant digits."""

    def text(v: Any) -> str:
        if isinstance(v, float):
            return "-" if math.isnan(v) else f"{v:.3g}" if abs(v) < 1000 else f"{v:,.0f}"
        return str(v)

    lines = [[text(v) for v in row] for row in rows]
    widths = [max(len(h), *(len(line[i]) for line in lines)) if lines else len(h) for i, h in enumerate(head)]
    form = "| " + " | ".join(f"{{:>{w}}}" if i else f"{{:<{w}}}" for i, w in enumerate(widths)) + " |"
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([form.format(*head), rule, *(form.format(*line) for line in lines)])


def save(case: str, result: Any) -> pathlib.Path:
    """Keep the raw answers, for `make bench-compare`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{case}-{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps({"case": case, "machine": machine(), "result": result}, default=str))
    return path
