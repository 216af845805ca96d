"""Start-up: import and SELECT 1 in a fresh process, a warm SELECT 1, resident memory, sizes; beside DuckDB.

make bench CASE=startup
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys

import harness

FRESH = """
import resource, time
c = time.process_time(); t = time.perf_counter()
{run}
u = resource.getrusage(resource.RUSAGE_SELF)
print((u.ru_utime + u.ru_stime) * 1e3, (time.perf_counter() - t) * 1e3, u.ru_maxrss / 1024)
"""
RUNS = {
    "python alone": "pass",
    "import riverbed": "import riverbed",
    "import riverbed, SELECT 1": "import riverbed\nriverbed.sql('SELECT 1').to_pylist()",
    "import duckdb": "import duckdb",
    "import duckdb, SELECT 1": "import duckdb\nduckdb.sql('SELECT 1').fetchall()",
}
WARM = """
import riverbed, time
s = riverbed.Session()
for _ in range(50): s.sql('SELECT 1').to_pylist()
ts = []
for _ in range(500):
    t = time.perf_counter(); s.sql('SELECT 1').to_pylist(); ts.append(time.perf_counter() - t)
print(sorted(ts)[250] * 1e3, sorted(ts)[495] * 1e3)
"""


def python(code: str) -> list[float]:
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return [float(x) for x in out.split()]


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench startup")
    p.add_argument("--repeat", type=int, default=9)
    a = p.parse_args(argv)
    got: dict[str, list[list[float]]] = {name: [] for name in RUNS}
    for _ in range(a.repeat):
        for name, run in RUNS.items():
            got[name].append(python(FRESH.format(run=run)))
    rows = [[name, *(statistics.median(r[i] for r in runs) for i in range(3))] for name, runs in got.items()]
    print(f"start-up in a fresh process, medians of {a.repeat}; {harness.machine()}")
    print(harness.table(["", "CPU ms", "wall ms", "peak RSS MB"], rows))
    median, p99 = python(WARM)
    print(f"\nwarm SELECT 1, planned and read: {median:.3f} ms median, {p99:.3f} ms p99")
    import riverbed

    library = next(pathlib.Path(riverbed.__file__).parent.glob("*.so"))
    print(f"library {library.stat().st_size / 1e6:.1f} MB")
    raw = {name: [{"cpu": r[0] / 1e3, "wall": r[1] / 1e3, "rss_mb": r[2]} for r in runs] for name, runs in got.items()}
    print("raw answers: " + str(harness.save("startup", raw)))
