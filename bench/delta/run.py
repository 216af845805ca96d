"""Materialized views under small changes: what a step costs, beside DuckDB asking again.

    make bench CASE=delta          TPC-H Q1, Q3, Q5, Q6 at SF 0.1 and 1; a grouped sum over 10 million rows
    python bench/run.py delta --sf 0.1 --queries q3

A step is one transaction: some orders go with their lines and as many come, about 1,000 rows (5,000 of the grouped
sum). Views take a transaction when it commits, so COMMIT is the step, beside which stands a COMMIT without any view;
finding the rows and putting them in is paid before it, by both engines, and stands in a column of its own. DuckDB makes
the same changes and then asks the question again. At the end the view is compared with DuckDB's answer. The tables have
the columns that the questions read.

State rows are those of the view's state that a step has looked up, made or dropped, by SHOW MATERIALIZED VIEWS. Their
growth from the small scale factor to the tenfold one is printed beside that of the CPU.

--checkpoints 1000 asks for the questions as durable pipelines with a checkpoint every second, in turn with the same
pipelines without (pipelines.py).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import tempfile
from typing import Any

import equal
import h2o
import harness
from tpch.run import data, queries

COLUMNS = {
    "lineitem": "l_orderkey, l_suppkey, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, "
    "l_shipdate",
    "orders": "o_orderkey, o_custkey, o_orderdate, o_shippriority",
    "customer": "c_custkey, c_nationkey, c_mktsegment",
    "supplier": "s_suppkey, s_nationkey",
    "nation": "n_nationkey, n_name, n_regionkey",
    "region": "r_regionkey, r_name",
}
KEYS = {"lineitem": "l_orderkey", "orders": "o_orderkey"}
TPCH = ("q1", "q3", "q5", "q6")
GROUPED = "SELECT id6, count(*) AS n, sum(v2) AS v2, sum(v3) AS v3 FROM x GROUP BY id6"
# Keys of orders come in groups of 32 with 8 orders and about 32 lines. One group in five is held back to be put in.
GROUP, HELD, GROUPS_A_STEP = 32, 5, 25 / 2


class Changes:
    """The transactions, the same for both engines: each a list of statements between BEGIN and COMMIT."""

    def __init__(self, groups: int) -> None:
        r = random.Random(1)
        kept, held = ([g for g in range(groups) if (g % HELD == HELD - 1) == h] for h in (False, True))
        r.shuffle(kept)
        r.shuffle(held)
        self.kept, self.held, self.owed = kept, held, 0.0

    def __next__(self) -> list[str]:
        self.owed += GROUPS_A_STEP
        n = int(self.owed)
        self.owed -= n
        out = []
        gone, come = [self.kept.pop() for _ in range(n)], [self.held.pop() for _ in range(n)]
        for table, key in KEYS.items():
            out.append(f"DELETE FROM {table} WHERE {key} // {GROUP} IN ({', '.join(map(str, gone))})")
            chosen = f"WHERE {key} // {GROUP} IN ({', '.join(map(str, come))})"
            out.append(f"INSERT INTO {table} SELECT * FROM held_{table} {chosen}")
        return out


class GroupedChanges:
    """2,500 rows of x go, 2,500 come."""

    def __init__(self, rows: int) -> None:
        self.rows, self.step = rows, 0

    def __next__(self) -> list[str]:
        first = self.step * 2_500
        self.step += 1
        return [
            f"DELETE FROM x WHERE id BETWEEN {first} AND {first + 2_499}",
            f"INSERT INTO x SELECT id + {self.rows}, (id6 * 7) % {self.rows // 100} + 1, v2, v3 FROM held_x "
            f"WHERE id BETWEEN {first} AND {first + 2_499}",
        ]


def must(engine: harness.Engine, **request: Any) -> dict[str, Any]:
    answer = engine.ask(**request)
    if "error" in answer:
        raise RuntimeError(f"{engine.name}: {answer['error']}")
    return answer


def load_tpch(e: harness.Engine, sf: float) -> None:
    for table, columns in COLUMNS.items():
        path, key = data(sf) / f"{table}.parquet", KEYS.get(table)
        text = f"SELECT {columns} FROM '{path}'"
        if key:
            held = f"{key} // {GROUP} % {HELD} = {HELD - 1}"
            must(e, op="run", sql=f"CREATE OR REPLACE TABLE held_{table} AS {text} WHERE {held}")
            text += f" WHERE NOT ({held})"
        must(e, op="run", sql=f"CREATE OR REPLACE TABLE {table} AS {text}")


def load_grouped(e: harness.Engine, rows: int) -> None:
    path = h2o.groupby_table(rows)["x"]
    must(e, op="run", sql=f"CREATE OR REPLACE VIEW file_x AS SELECT id6, v2, v3 FROM '{path}'")
    numbered = numbered_file(path)
    must(e, op="run", sql=f"CREATE OR REPLACE TABLE x AS SELECT id, id6, v2, v3 FROM '{numbered}'")
    must(e, op="run", sql="CREATE OR REPLACE TABLE held_x AS SELECT * FROM x WHERE id < 1000000")


def numbered_file(path: pathlib.Path) -> pathlib.Path:
    """Give the rows of x a number, by which a change finds them."""
    import polars as pl

    def make() -> Any:
        return pl.read_parquet(path, columns=["id6", "v2", "v3"]).with_row_index("id").cast({"id": pl.Int64}).to_arrow()

    return h2o.kept(path.parent.name, {"x-numbered": make})["x-numbered"]


def touched(e: harness.Engine) -> int:
    """Count the state rows that the view's steps have touched so far."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/views.arrow"
        must(e, op="sql", sql="SHOW MATERIALIZED VIEWS", save=file)
        return int(pa.ipc.open_file(file).read_all()["state_touched"][0].as_py())


def measure(
    engines: dict[str, harness.Engine], sql: str, changes: Any, a: argparse.Namespace
) -> dict[str, list[dict[str, Any]]]:
    """Run a view's steps, the engines in turn; returns the answers to COMMIT, to the statements before, to asking."""
    ours = engines["riverbed"]
    got: dict[str, list[dict[str, Any]]] = {k: [] for k in ("bare", "commit", "statements", "read")}
    got |= {"duckdb statements": [], "duckdb": []}
    for round_ in range(a.rounds + 1):
        # The first round is without the view.
        if round_ == 1:
            got["view"] = [must(ours, op="run", sql=f"CREATE MATERIALIZED VIEW v AS {sql}")]
            before = touched(ours)
        steps = [next(changes) for _ in range(a.steps)]
        for e in engines.values():
            for statements in steps:
                parts = [must(e, op="run", sql=s) for s in ("BEGIN", *statements)]
                commit = must(e, op="run", sql="COMMIT")
                if e is ours:
                    got["commit" if round_ else "bare"].append(commit)
                spent = {key: sum(p[key] for p in parts) for key in ("cpu", "wall")}
                got["statements" if e is ours else "duckdb statements"].append(spent)
        if round_:
            got["read"].append(must(ours, op="sql", sql="SELECT * FROM v"))
            if "duckdb" in engines:
                got["duckdb"].append(must(engines["duckdb"], op="sql", sql=sql))
    got["touched"] = [{"rows": (touched(ours) - before) / (a.rounds * a.steps)}]
    return got


def verdict(engines: dict[str, harness.Engine], sql: str) -> str:
    """Compare the view with DuckDB's answer over its own tables, after the same changes."""
    if "duckdb" not in engines:
        return "not compared"
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"{name}.arrow" for name in engines]
        must(engines["riverbed"], op="sql", sql="SELECT * FROM v", save=str(files[0]))
        must(engines["duckdb"], op="sql", sql=sql, save=str(files[1]))
        return equal.answers_differ(*files, 0) or "equal"


def main(argv: list[str]) -> None:
    p = argparse.ArgumentParser(prog="bench delta")
    p.add_argument("part", nargs="?", help="one question, such as q1, or grouped")
    p.add_argument("--queries", default="")
    p.add_argument("--sf", default="0.1,1", help="scale factors, the smaller first")
    p.add_argument("--rows", type=int, default=10_000_000, help="of the grouped sum")
    p.add_argument("--steps", type=int, default=5, help="of a round")
    p.add_argument("--repeat", "--rounds", dest="rounds", type=int, help="8; with checkpoints 2 runs of each")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--alone", action="store_true", help="without DuckDB")
    p.add_argument("--checkpoints", type=int, default=0, help="milliseconds between checkpoints of pipelines; 0: views")
    p.add_argument("--seconds", type=float, default=10, help="of steps of a pipeline")
    p.add_argument("--no-check", action="store_true", help="do not compare a pipeline's changes with batch")
    p.add_argument("--dir", default="", help="where checkpoints go")
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--url", default="", help=argparse.SUPPRESS)
    a = p.parse_args(argv)
    chosen = [a.part] if a.part else [q for q in a.queries.split(",") if q] or [*TPCH, "grouped"]
    if a.checkpoints:
        from delta import pipelines

        a.repeat = a.rounds or 2
        if a.child:
            print(json.dumps(pipelines.child(a)))
        else:
            pipelines.main(a, chosen)
        return
    a.rounds = a.rounds or 8
    texts = queries()
    raw: dict[str, dict[str, Any]] = {}
    rows: list[list[Any]] = []
    wrong = False
    sizes = [*((f"SF {sf}", float(sf)) for sf in a.sf.split(",")), (f"{a.rows:,} rows", None)]
    for size, sf in sizes:
        some = [q for q in chosen if (q == "grouped") == (sf is None)]
        if not some:
            continue
        names = ["riverbed"] if a.alone else ["riverbed", "duckdb"]
        engines = {n: harness.Engine(n, threads=a.threads) for n in names}
        for e in engines.values():
            if sf is None:
                load_grouped(e, a.rows)
            else:
                load_tpch(e, sf)
        # Groups that a step took are gone for the next question too.
        changes = GroupedChanges(a.rows) if sf is None else Changes(int(sf * 6_000_000) // GROUP)
        for q in some:
            sql = GROUPED if q == "grouped" else texts[q]
            got = measure(engines, sql, changes, a)
            fault = verdict(engines, sql)
            wrong |= fault not in ("equal", "not compared")
            raw.setdefault(q, {})[size] = got
            step, again = (harness.median(got[k], "cpu") * 1e3 for k in ("commit", "duckdb"))
            per_step = sum(s["cpu"] for s in got["commit"]) / len(got["commit"]) * 1e3
            rows.append(
                [
                    q,
                    size,
                    step,
                    per_step,
                    harness.median(got["bare"], "cpu") * 1e3,
                    harness.median(got["commit"], "wall") * 1e3,
                    again,
                    again / step,
                    harness.median(got["statements"], "cpu") * 1e3,
                    harness.median(got["duckdb statements"], "cpu") * 1e3,
                    got["touched"][0]["rows"],
                    max(x.get("rss_mb", 0) for x in (*got["view"], *got["commit"])),
                    fault,
                ]
            )
            print(
                f"  {q} {size}: {step:.2f} ms a step, {again / step:.0f} times less than asking again, {fault}",
                flush=True,
            )
            must(engines["riverbed"], op="run", sql="DROP MATERIALIZED VIEW v")
        for e in engines.values():
            e.close()
    head = ["view", "size", "step, CPU ms", "mean", "without view", "wall ms", "DuckDB again, CPU ms", "again / step"]
    head += ["our statements, CPU ms", "DuckDB's", "state rows a step", "peak RSS MB", "view against DuckDB"]
    print(
        f"\ndelta, about 1,000 changed rows a step (grouped: 5,000), {a.rounds * a.steps} steps, medians, "
        f"{a.threads} threads; {harness.machine()}\n" + harness.table(head, rows)
    )
    for q in TPCH:
        steps = [(r[2], r[10]) for r in rows if r[0] == q]
        if len(steps) == 2:
            cpu, state = (large / max(small, 1e-9) for small, large in zip(*steps, strict=True))
            print(f"{q}: a step costs {cpu:.2f} times as much at the larger size, state rows {state:.2f} times")
    print("raw answers: " + str(harness.save("delta", raw)))
    if wrong:
        raise SystemExit(1)
