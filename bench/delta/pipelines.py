"""The same questions as durable pipelines: what checkpoints add to a step.

Views of a session have no checkpoints, so here orders and lineitem (or the rows of the grouped sum) are streams whose
rows carry weights, the other tables are tables, and the question is a pipeline whose sink is a callable. A step is what
the transaction of the views is: as many orders with their lines go as come, in one push a stream, and the next is
pushed when the run has taken it. Groups of orders that went come again later. A run is a process; those without and
with checkpoints take turns. In the end what the sink got is added up and compared with our batch answer over the rows
that are left.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import equal
import h2o
import harness
from checkpoint.run import Epochs, middle, pauses, quantile
from delta.run import COLUMNS, GROUP, GROUPED, GROUPS_A_STEP, HELD, KEYS, numbered_file
from tpch.run import data, queries

RUN = pathlib.Path(__file__).resolve().parent.parent / "run.py"
WEIGHT = "__weight"
ROWS_A_STEP = 2_500  # of the grouped sum, that go and that come
LOAD = 100_000  # rows of a push before the steps


def plain_text(rows: Any) -> Any:
    """Make texts those that pyarrow can sort and gather: views it only reads."""
    import pyarrow as pa

    fields = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


def weighed(rows: Any, weight: int) -> Any:
    import pyarrow as pa

    return rows.append_column(WEIGHT, pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))


class Orders:
    """Orders and their lines in groups of keys, of which one in five is away."""

    def __init__(self, sf: float, sql: str) -> None:
        import numpy as np
        import pyarrow.parquet as pq

        named = {t: c.split(", ") for t, c in COLUMNS.items() if re.search(rf"\b{t}\b", sql)}
        read = {t: pq.read_table(data(sf) / f"{t}.parquet", columns=columns) for t, columns in named.items()}
        self.streams = {t: plain_text(read[t]).sort_by(key).combine_chunks() for t, key in KEYS.items() if t in read}
        self.tables = {t: rows for t, rows in read.items() if t not in KEYS}
        groups = int(sf * 6_000_000) // GROUP
        self.bounds = {
            t: np.searchsorted(rows.column(KEYS[t]).to_numpy() // GROUP, np.arange(groups + 1))
            for t, rows in self.streams.items()
        }
        order = [int(g) for g in np.random.default_rng(1).permutation(groups)]
        self.here = collections.deque(g for g in order if g % HELD != HELD - 1)
        self.away = collections.deque(g for g in order if g % HELD == HELD - 1)
        self.owed = 0.0

    def of(self, table: str, groups: list[int]) -> Any:
        import pyarrow as pa

        at, rows = self.bounds[table], self.streams[table]
        return pa.concat_tables([rows.slice(at[g], at[g + 1] - at[g]) for g in groups])

    def now(self, table: str) -> Any:
        return self.of(table, sorted(self.here))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        import pyarrow as pa

        while True:
            self.owed += GROUPS_A_STEP
            n = int(self.owed)
            self.owed -= n
            gone, come = ([groups.popleft() for _ in range(n)] for groups in (self.here, self.away))
            self.away.extend(gone)
            self.here.extend(come)
            yield {
                t: pa.concat_tables([weighed(self.of(t, gone), -1), weighed(self.of(t, come), 1)]) for t in self.streams
            }


class Grouped:
    """Rows of the grouped sum; those that go come again in another group."""

    def __init__(self, rows: int) -> None:
        import pyarrow.parquet as pq

        read = pq.read_table(numbered_file(h2o.groupby_table(rows)["x"]), columns=["id6", "v2", "v3"])
        self.rows = {name: read.column(name).to_numpy(zero_copy_only=False).copy() for name in read.column_names}
        self.streams, self.tables, self.count = {"x": read.slice(0, 0)}, dict[str, Any](), rows

    def part(self, which: slice) -> Any:
        import pyarrow as pa

        rows = pa.table({name: values[which].copy() for name, values in self.rows.items()})
        return rows.cast(self.streams["x"].schema)

    def now(self, _: str) -> Any:
        return self.part(slice(None))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        import pyarrow as pa

        at = 0
        while True:
            which = slice(at, at + ROWS_A_STEP)
            gone, id6 = self.part(which), self.rows["id6"]
            id6[which] = (id6[which].astype("int64") * 7) % (self.count // 100) + 1
            yield {"x": pa.concat_tables([weighed(gone, -1), weighed(self.part(which), 1)])}
            at = (at + ROWS_A_STEP) % (self.count - ROWS_A_STEP)


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def child(a: argparse.Namespace) -> dict[str, Any]:
    """Run one pipeline and return its figures."""
    import riverbed as rb

    question = a.part
    sql = GROUPED if question == "grouped" else queries()[question]
    of = Grouped(a.rows) if question == "grouped" else Orders(float(a.sf), sql)
    config = {"parallelism": str(a.threads)}
    if a.url:
        config |= {"checkpoint_url": a.url, "checkpoint_interval_ms": str(a.checkpoints)}
    got: list[Any] = []
    with rb.Session(config) as session:
        for name, table in of.tables.items():
            session.create_table(name, table)
        streams = {name: rb.MemoryStream(updating=True) for name in of.streams}
        for name, stream in streams.items():
            types = rb.Session()
            types.create_table("t", of.streams[name].slice(0, 1))
            session.create_stream(name, source=stream, schema=dict(types.sql("SELECT * FROM t").schema))
        with session.sql(sql).sink(got.append, pipeline_id="bench").run(blocking=False) as run:
            pushed = sum(rows.num_rows for rows in of.tables.values())

            def push(changes: dict[str, Any], size: int) -> int:
                for name, rows in changes.items():
                    for batch in rows.combine_chunks().to_batches(max_chunksize=size):
                        streams[name].push(batch)
                return sum(rows.num_rows for rows in changes.values())

            def taken(rest: float) -> None:
                while (m := run.metrics())["rows_in"] < pushed or m["queue_rows"]:
                    if m["state"] == "failed":
                        run.wait()
                    time.sleep(rest)

            pushed += push({name: weighed(of.now(name), 1) for name in streams}, LOAD)
            taken(0.05)
            steps = iter(of)
            epoch = run.metrics()["epoch"]
            while a.url and run.metrics()["epoch"] < epoch + 2:  # the load is durable, and what came behind it
                pushed += push(next(steps), LOAD)
                time.sleep(0.1)
            for _ in range(20):
                pushed += push(next(steps), LOAD)
                taken(0.001)
            before, walls, used = run.metrics(), 0.0, 0.0
            count, rows, until = 0, 0, time.perf_counter() + a.seconds
            with Epochs(run) as epochs:
                while time.perf_counter() < until:
                    changes = next(steps)
                    c, t = cpu(), time.perf_counter()
                    rows += (changed := push(changes, LOAD))
                    pushed += changed
                    taken(0.001)
                    used += cpu() - c
                    walls += time.perf_counter() - t
                    count += 1
            m = run.metrics()
            run.stop(drain=True)
    if a.no_check:
        fault = "not compared"
    else:
        with rb.Session() as once:
            for name in (*of.tables, *streams):
                once.create_table(name, of.tables[name] if name in of.tables else of.now(name))
            fault = equal.changes_differ(got, once.sql(sql).to_arrow()) or "equal"
    return {
        "cpu": used / count * 1e3,
        "wall": walls / count * 1e3,
        "steps": count,
        "rows": rows / count,
        "loop_steps": (m["steps"] - before["steps"]) / count,
        "pauses_ms": epochs.pauses,
        "bytes": epochs.sizes,
        "took_ms": epochs.took,
        "state_bytes": m["state_bytes"],
        "state_touched": (m["state_touched"] - before["state_touched"]) / count,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "against_batch": fault,
    }


def process(a: argparse.Namespace, question: str, sf: float | None, url: str) -> dict[str, Any]:
    command = [sys.executable, str(RUN), "delta", question, "--child", "--url", url, "--sf", str(sf or 0)]
    for name in ("rows", "seconds", "threads", "checkpoints"):
        command += [f"--{name}", str(getattr(a, name))]
    command += ["--no-check"] if a.no_check else []
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def main(a: argparse.Namespace, chosen: list[str]) -> None:
    raw: dict[str, dict[str, Any]] = {}
    table: list[list[Any]] = []
    wrong = False
    sizes = [*((f"SF {sf}", float(sf)) for sf in a.sf.split(",")), (f"{a.rows:,} rows", None)]
    for size, sf in sizes:
        for q in [q for q in chosen if (q == "grouped") == (sf is None)]:
            plain: list[dict[str, Any]] = []
            durable: list[dict[str, Any]] = []
            with tempfile.TemporaryDirectory(prefix="riverbed-bench-", dir=a.dir or None) as folder:
                for n in range(a.repeat):
                    plain.append(process(a, q, sf, ""))
                    durable.append(process(a, q, sf, f"{folder}/{n}"))
            raw.setdefault(q, {})[size] = {"without": plain, "with": durable}
            verdicts = {r["against_batch"] for r in (*plain, *durable)}
            wrong |= not verdicts <= {"equal", "not compared"}
            figures = [harness.median(runs, k) for k in ("cpu", "wall") for runs in (plain, durable)]
            of = [x for r in durable for x in r["pauses_ms"]]
            table.append(
                [
                    q,
                    size,
                    *(figures[0], figures[1], figures[1] / figures[0]),
                    *(figures[2], figures[3], figures[3] / figures[2]),
                    *(harness.median(durable, "steps"), len(of) / a.repeat),
                    *(quantile(of, 0.5), max(of, default=float("nan"))),
                    *(middle(durable, "bytes") / 1e6, durable[0]["state_bytes"] / 1e6),
                    "; ".join(sorted(verdicts)),
                ]
            )
            print(f"  {q} {size}: CPU {table[-1][4]:.2f}, wall {table[-1][7]:.2f}; {pauses(durable)}", flush=True)
    head = ["pipeline", "size", "CPU ms a step", "with checkpoints", "ratio", "wall ms", "with", "ratio", "steps"]
    head += ["checkpoints", "pause p50 ms", "longest", "MB an epoch", "state MB", "against batch"]
    print(
        f"\ndelta as pipelines, about 1,000 changed rows a step (grouped: 5,000), {a.seconds:.0f} s, a checkpoint "
        f"every {a.checkpoints} ms, {a.threads} threads, medians of {a.repeat}; {harness.machine()}\n"
        + harness.table(head, table)
    )
    for k, name in ((4, "CPU"), (7, "wall")):
        print(f"{name} with checkpoints over without: geometric mean {harness.geomean(r[k] for r in table):.3f}")
    print("raw answers: " + str(harness.save("delta-checkpoints", raw)))
    if wrong:
        raise SystemExit(1)
