"""Runs suites, each file in a process of its own, and prints their table, the causes and the wrong answers."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from peers import arroyo, exclusions, feldera, flink, records, report
from peers.causes import Item
from peers.judge import Outcome

FILE_SECONDS = 300.0  # the harness's limit for a file, not a test's


def files(suites: Path, suite: str) -> list[Path]:
    if suite == "feldera":
        return feldera.files(suites)
    if suite == "flink":
        return flink.files(suites)
    if suite == "arroyo":
        return arroyo.files(suites)
    return records.files(suites, suite)


def run_file(suites: Path, suite: str, path: Path, seconds: float = FILE_SECONDS) -> list[Item]:
    """Run one file; a crash or a hang is one more failed record."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "items.jsonl"
        command = [sys.executable, "-m", "peers.worker", str(suites), suite, str(path), str(out)]
        # The peers' files make files where they run.
        search = os.pathsep.join(
            str(Path(p).resolve()) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p
        )
        environment = {**os.environ, "PYTHONPATH": search}
        lost = ""
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, timeout=seconds, capture_output=True, text=True, errors="replace"
            )
            if done.returncode:
                lost = f"ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        except subprocess.TimeoutExpired:
            lost = f"hung: no end in {seconds:.0f} s"
        lines = out.read_text().splitlines() if out.exists() else []
    items = []
    for line in lines:
        try:
            items.append(Item.from_json(json.loads(line)))
        except json.JSONDecodeError:  # the last line of a process that died
            continue
    if lost:
        last = items[-1].place if items else "its beginning"
        items.append(Item(f"{suite}/{path.name}:process", Outcome.CRASH, f"after {last}: {lost}"))
    return items


def run_suite(suites: Path, name: str, sample: int, jobs: int, only: str) -> report.Suite:
    every = files(suites, name)
    chosen = [p for p in every if only in str(p)][::sample]
    with ThreadPoolExecutor(jobs) as pool:
        parts = list(pool.map(lambda p: run_file(suites, name, p), chosen))
    items = [item for part in parts for item in part]
    return report.Suite(name, exclusions.exclude(items, exclusions.read()), len(chosen), len(every))


def main() -> int:
    ap = argparse.ArgumentParser(prog="python -m peers", description=__doc__)
    ap.add_argument("--suites", type=Path, default=os.environ.get("PEER_SUITES"), help="their folder; or $PEER_SUITES")
    ap.add_argument("--suite", choices=sorted(report.GOALS), action="append", help="all when left out")
    ap.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth file")
    ap.add_argument("--only", default="", help="files whose path holds this")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--json", type=Path, help="write every judged record there")
    a = ap.parse_args()
    if a.suites is None or not (a.suites / "slt.py").exists():
        ap.error("where are the suites? --suites FOLDER or PEER_SUITES; they are no part of the project")
    done = []
    for name in a.suite or list(report.GOALS):
        done.append(run_suite(a.suites.resolve(), name, a.sample, a.jobs, a.only))
        print(report.details(done[-1]), flush=True)
    print(report.table(done))
    if a.json:
        a.json.write_text("".join(json.dumps(i.to_json()) + "\n" for s in done for i in s.items))
    crashed = any(i.outcome is Outcome.CRASH for s in done for i in s.items)
    return 1 if crashed or any(s.too_many_excluded for s in done) else 0


if __name__ == "__main__":
    sys.exit(main())
