"""Living inside another program: import, first query, a warm SELECT 1, memory at rest, size; beside DuckDB and Polars.

    make bench CASE=embed

Each engine is imported in a fresh process, engines in turn. CPU is that of the whole process. At rest is the resident
memory of the process after the first query, an empty interpreter's included; warm is SELECT 1 planned, run and read as
Python values, again and again.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
from typing import Any

import harness

FRESH = """
import gc, json, resource, sys, time

def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime

def rss_mb():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024

def timed(run):
    c, t = cpu(), time.perf_counter()
    run()
    return {{"cpu": cpu() - c, "wall": time.perf_counter() - t, "rss_mb": rss_mb()}}

def load():
    global ask
    {load}

out = {{"start": {{"cpu": cpu(), "wall": 0, "rss_mb": rss_mb()}}, "import": timed(load)}}
if ask is not None:
    out["first query"] = timed(ask)
    walls, c = [], cpu()
    for _ in range(1000):
        t = time.perf_counter()
        ask()
        walls.append(time.perf_counter() - t)
    walls.sort()
    out["warm SELECT 1"] = {{"cpu": (cpu() - c) / 1000, "wall": walls[500], "p99": walls[990], "rss_mb": rss_mb()}}
print(json.dumps(out))
"""
LOADS = {
    "python alone": "ask = None",
    "riverbed": "import riverbed as r; s = r.Session(); ask = lambda: s.sql('SELECT 1').to_pylist()",
    "duckdb": "import duckdb; s = duckdb.connect(); ask = lambda: s.sql('SELECT 1').fetchall()",
    "polars": "import polars; s = polars.SQLContext(); ask = lambda: s.execute('SELECT 1', eager=True).rows()",
}


def fresh(load: str) -> dict[str, dict[str, float]]:
    done = subprocess.run([sys.executable, "-c", FRESH.format(load=load)], check=True, capture_output=True, text=True)
    answer: dict[str, dict[str, float]] = json.loads(done.stdout)
    return answer


def size_mb(package: str) -> float:
    """Sum what the package's files take, as installed or, for ours in the tree, beside it."""
    if package == "riverbed":
        import pathlib

        import riverbed

        return sum(f.stat().st_size for f in pathlib.Path(riverbed.__file__).parent.rglob("*") if f.is_file()) / 1e6
    names = [package, *(d.metadata["Name"] for d in importlib.metadata.distributions() if is_runtime(package, d))]
    files = [f for n in names for f in importlib.metadata.files(n) or []]
    return sum(p.stat().st_size for f in files if (p := f.locate()).is_file()) / 1e6


def is_runtime(package: str, d: importlib.metadata.Distribution) -> bool:
    """Whether a distribution is the compiled half of a package, as polars-runtime-32 is of polars."""
    return d.metadata["Name"].startswith(f"{package}-runtime")


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench embed")
    p.add_argument("--repeat", type=int, default=9)
    p.add_argument("--alone", action="store_true", help="without peers")
    a = p.parse_args(argv)
    names = ["python alone", "riverbed"] if a.alone else list(LOADS)
    got: dict[str, dict[str, list[dict[str, Any]]]] = {n: {} for n in names}
    for _ in range(a.repeat):
        for n in names:
            for phase, figures in fresh(LOADS[n]).items():
                got[n].setdefault(phase, []).append(figures)

    def ms(n: str, phase: str, key: str) -> float:
        return harness.median(got[n].get(phase, []), key) * 1e3

    rows = [
        [
            n,
            ms(n, "import", "cpu"),
            ms(n, "import", "wall"),
            ms(n, "first query", "cpu"),
            ms(n, "first query", "wall"),
            ms(n, "warm SELECT 1", "cpu") * 1e3,
            ms(n, "warm SELECT 1", "wall") * 1e3,
            ms(n, "warm SELECT 1", "p99") * 1e3,
            harness.median(got[n]["start" if n == "python alone" else "first query"], "rss_mb"),
            float("nan") if n == "python alone" else size_mb(n),
        ]
        for n in names
    ]
    head = ["", "import CPU ms", "wall ms", "first query CPU ms", "wall ms", "warm CPU µs", "wall µs", "p99 µs"]
    print(f"embed, medians of {a.repeat} fresh processes, in turn; {harness.machine()}")
    print(harness.table([*head, "at rest MB", "installed MB"], rows))
    print(f"the interpreter itself takes {ms('python alone', 'start', 'cpu'):.0f} CPU ms")
    print("raw answers: " + str(harness.save("embed", got)))
