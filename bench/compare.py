"""make bench-compare OLD=a.json NEW=b.json: two results of one case, side by side.

A case's raw answers are nested dictionaries that end in lists of runs; runs of the same path are compared by the median
of each figure, and what moved by more than a tenth is marked.
"""

from __future__ import annotations

import json
import pathlib
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import harness

FIGURES = ("cpu", "wall")


def runs(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, float]]:
    """Every (path, figure, median) below a node."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from runs(value, (*path, key))
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        for figure in FIGURES:
            values = [r[figure] for r in node if figure in r]
            if values:
                yield path, figure, statistics.median(values)


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: make bench-compare OLD=build/bench/a.json NEW=build/bench/b.json", file=sys.stderr)
        return 2
    old, new = (json.loads(pathlib.Path(a).read_text()) for a in argv)
    if old["case"] != new["case"]:
        print(f"bench-compare: {argv[0]} is of {old['case']}, {argv[1]} of {new['case']}", file=sys.stderr)
        return 2
    before = {(p, f): v for p, f, v in runs(old["result"])}
    rows, ratios = [], []
    for path, figure, value in runs(new["result"]):
        if (was := before.get((path, figure))) is None or not was:
            continue
        ratio = value / was
        ratios.append(ratio)
        rows.append(
            ["/".join(path), figure, was, value, ratio, "slower" if ratio > 1.1 else "faster" if ratio < 0.9 else ""]
        )
    print(f"old: {old['machine']}\nnew: {new['machine']}\n")
    print(harness.table(["run", "figure", "old s", "new s", "new/old", ""], rows))
    print(f"\ngeometric mean of new/old: {harness.geomean(ratios):.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
