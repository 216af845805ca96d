"""Print the test coverage of packages from a Go profile of all tests over all packages.

python tools/coverage.py coverage.out [--least 80 incremental checkpoint]

Packages that are named have to reach --least percent of their statements. A statement counts once, whichever tests run
it.
"""

from __future__ import annotations

import argparse
import collections
import pathlib


def coverage(profile: str) -> dict[str, tuple[int, int]]:
    """Give the statements of each package: how many are run, how many there are."""
    blocks: dict[str, tuple[int, bool]] = {}
    for line in profile.splitlines()[1:]:
        block, statements, count = line.rsplit(" ", 2)
        seen = blocks.get(block, (0, False))[1]
        blocks[block] = (int(statements), seen or int(count) > 0)
    out: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    for block, (statements, run) in blocks.items():
        package = block.rsplit("/", 1)[0].split("riverbed/riverbed", 1)[-1].strip("/") or "."
        out[package][0] += statements * run
        out[package][1] += statements
    return {package: (run, all_) for package, (run, all_) in out.items()}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("profile", type=pathlib.Path)
    p.add_argument("packages", nargs="*")
    p.add_argument("--least", type=float, default=0)
    a = p.parse_args()
    found = coverage(a.profile.read_text())
    low = []
    for package in sorted(found):
        run, statements = found[package]
        percent = 100 * run / max(1, statements)
        print(f"{percent:6.1f} %  {package}")
        if package in a.packages and percent < a.least:
            low.append(f"{package} {percent:.1f} %")
    low += [f"{package} has none" for package in a.packages if package not in found]
    if low:
        raise SystemExit(f"coverage: below {a.least:.0f} %: " + ", ".join(low))


if __name__ == "__main__":
    main()
