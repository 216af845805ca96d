"""Runs one file of a suite: `python -m peers.worker SUITES SUITE FILE OUT`; OUT gets a line of JSON a record."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from peers import arroyo, feldera, flink, records
from peers.causes import Item
from peers.engines import Alarm


def items(suites: Path, suite: str, path: Path) -> Iterator[Item]:
    if suite == "feldera":
        return feldera.File(suites, path).run()
    if suite == "flink":
        return flink.File(suites, path).run()
    if suite == "arroyo":
        return arroyo.File(suites, path).run()
    return records.File(suites, suite, path).run()


def main() -> None:
    warnings.simplefilter("ignore")
    suites, suite, path, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    with out.open("w") as file:
        try:
            for item in items(suites, suite, path):
                file.write(json.dumps(item.to_json()) + "\n")
                file.flush()
        except Alarm:
            raise SystemExit("a call's time ended outside of it") from None
    os._exit(0)  # timers of the runners still hold DuckDB, which ends the process badly when it is taken down


if __name__ == "__main__":
    main()
