"""TPC-H with the tables as Arrow in the memory of each process: engines without their readers.

    make bench CASE=tpch-mem
    python bench/run.py tpch-mem --sf 0.1 --queries q1,q6

Options, queries and comparison as in tpch. Every engine is given the same pyarrow tables; none has statistics or
dictionaries of its own making, and loading is not timed.
"""

from __future__ import annotations

from tpch.run import main as tpch


def main(argv: list[str]) -> None:
    tpch(argv, name="tpch-mem", form="arrow", engines="riverbed,duckdb,polars")
