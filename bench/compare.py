"""Compare the engine of a commit with the tree's, or two results of one case that are there already.

    make bench-compare BASE=<commit> CASE=tpch        runs both on this machine, in turn (ROUNDS=3, OPTIONS='--sf 10')
    make bench-compare OLD=build/bench/a.json NEW=build/bench/b.json

A commit's library is built once, in build/base. Cases, questions and data are those of the tree, so that only the
engine differs; runs are without peers, A B B A, and the medians of each figure are compared. What moved by more than a
tenth is marked; a case that the old library cannot run says so.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import harness

ROOT = harness.HERE.parent
FIGURES = ("cpu", "wall", "p50", "p99")
# What each case does unless OPTIONS say: small enough that a comparison takes minutes.
QUICK = {
    "tpch": ["--sf", "1"],
    "tpch-mem": ["--sf", "1"],
    "groupby": ["--rows", "1000000"],
    "join": ["--rows", "1000000"],
    "sort": ["--rows", "1000000"],
    "window": ["--rows", "1000000"],
    "clickbench": ["--rows", "500000"],
    "nexmark": ["--events", "1000000", "--no-check"],
    "delta": ["--sf", "0.1", "--rows", "1000000"],
    "json": ["--rows", "200000"],
    "latency": ["--seconds", "3"],
    "embed": [],
    "scale": ["--rows", "1000000", "--sf", "0.1", "--events", "200000"],
    "kafka": ["--messages", "500000"],
    "flink": ["--events", "200000"],
}
BY_NAME = ("scale", "kafka", "flink")  # what the others show already, or what needs a broker: only when asked for


def runs(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, list[float]]]:
    """Every (path, figure, values) below a node: a case's raw answers are dictionaries that end in lists of runs."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from runs(value, (*path, key))
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        for figure in FIGURES:
            values = [r[figure] for r in node if figure in r]
            if values:
                yield path, figure, values


def gathered(files: list[pathlib.Path]) -> tuple[dict[tuple[tuple[str, ...], str], list[float]], dict[str, Any]]:
    """Add up the runs of one side's results; returns them and the last file."""
    out: dict[tuple[tuple[str, ...], str], list[float]] = {}
    last: dict[str, Any] = {}
    for f in files:
        last = json.loads(f.read_text())
        for path, figure, values in runs(last["result"]):
            out.setdefault((path, figure), []).extend(values)
    return out, last


def show(old: list[pathlib.Path], new: list[pathlib.Path]) -> None:
    before, was_run = gathered(old)
    after, is_run = gathered(new)
    rows: list[list[Any]] = []
    ratios: dict[str, list[float]] = {}
    for (path, figure), values in after.items():
        value, was = statistics.median(values), statistics.median(before.get((path, figure), [0]))
        if not was or path[0] == "load":
            continue
        ratios.setdefault(figure, []).append(value / was)
        mark = "slower" if value / was > 1.1 else "faster" if value / was < 0.9 else ""
        rows.append(["/".join(path), figure, was, value, value / was, mark])
    print(f"\n{is_run['case']}\nold: {was_run['machine']}\nnew: {is_run['machine']}\n")
    print(harness.table(["run", "figure", "old s", "new s", "new/old", ""], rows))
    print()
    for figure, values in ratios.items():
        print(f"geometric mean of new/old, {figure}: {harness.geomean(values):.3f} of {len(values)}")


def build(commit: str) -> pathlib.Path:
    """Give the folder of Python packages of a commit, its library built with the flags that it has itself."""
    folder = ROOT / "build" / "base" / commit
    built = folder / ".built"
    if not built.exists():
        print(f"building {commit}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        tree = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=tree, check=True)
        subprocess.run(["make", "dev"], cwd=folder, check=True)
        built.touch()
    return folder / "python"


def run(case: str, options: list[str], python: pathlib.Path, commit: str, folder: pathlib.Path) -> list[pathlib.Path]:
    """Run a case once with one side's library; returns its results, none when it failed."""
    environment = os.environ | {
        "PYTHONPATH": str(python),
        "RIVERBED_BENCH_COMMIT": commit,
        "RIVERBED_BENCH_RESULTS": str(folder),
    }
    there = set(folder.glob("*.json"))
    command = [sys.executable, str(harness.HERE / "run.py"), case, "--alone", "--repeat", "1", *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{case} with {commit} failed: {(done.stderr or done.stdout).strip().splitlines()[-1]}", file=sys.stderr)
    return sorted(set(folder.glob("*.json")) - there)


def commit_of(name: str) -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", f"{name}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"bench-compare: there is no commit {name}")
    return done.stdout.strip()


def against(base: str, cases: list[str], rounds: int, options: list[str]) -> None:
    """Run cases with a commit's library and with the tree's, in turn."""
    commit = commit_of(base)
    tree = ROOT / "build" / "base" / "tree"  # a copy, so that the tree can be worked on meanwhile
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "python", tree)
    sides = [(commit, build(commit)), ("the tree", tree)]
    for case in cases:
        part = case.partition("/")[0]
        if part not in QUICK:
            raise SystemExit(f"bench-compare knows the cases {', '.join(QUICK)}, not {part}")
        with tempfile.TemporaryDirectory() as tmp:
            files: dict[str, list[pathlib.Path]] = {name: [] for name, _ in sides}
            for round_ in range(rounds):
                for name, python in sides if round_ % 2 == 0 else sides[::-1]:
                    # A case keeps one result a second under its name, so each run gets a folder.
                    folder = pathlib.Path(tmp) / f"{name} {round_}"
                    folder.mkdir()
                    files[name] += run(case, options or QUICK[part], python, name, folder)
            if all(files.values()):
                show(*files.values())
            else:
                print(f"{case}: no comparison")


def main(argv: list[str]) -> int:
    p = argparse.ArgumentParser(
        prog="bench-compare", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    p.add_argument("--base", default="", help="a commit")
    p.add_argument("--case", default="all", help="a case, or several with commas: " + ", ".join(QUICK))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--options", default="", help="of the case, in place of the quick ones")
    p.add_argument("files", nargs="*", type=pathlib.Path, help="two results of one case")
    a = p.parse_args(argv)
    if a.base:
        cases = [c for c in QUICK if c not in BY_NAME] if a.case == "all" else a.case.split(",")
        against(a.base, cases, a.rounds, shlex.split(a.options))
        return 0
    if len(a.files) != 2:
        p.error("give BASE=<commit>, or OLD=build/bench/a.json NEW=build/bench/b.json")
    old, new = (json.loads(f.read_text())["case"] for f in a.files)
    if old != new:
        p.error(f"{a.files[0]} is of {old}, {a.files[1]} of {new}")
    show(a.files[:1], a.files[1:])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
