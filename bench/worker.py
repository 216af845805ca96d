"""One batch engine in one process: reads JSON requests, answers with wall and CPU seconds. Started by harness.py.

requests: {"op": "table", "name", "path"}, {"op": "sql", "sql", "digest"?, "save"?}
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any

NAME, THREADS = sys.argv[1], int(sys.argv[2])
os.environ["POLARS_MAX_THREADS"] = str(THREADS)


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


class Riverbed:
    def __init__(self) -> None:
        import riverbed

        self.version = riverbed.version()
        self.session = riverbed.Session(config={"parallelism": THREADS})

    def table(self, name: str, path: str) -> None:
        self.session.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")

    def sql(self, text: str) -> Any:
        return self.session.sql(text).to_arrow()


class DuckDB:
    def __init__(self) -> None:
        import duckdb

        self.version = duckdb.__version__
        self.con = duckdb.connect(config={"threads": THREADS})

    def table(self, name: str, path: str) -> None:
        self.con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")

    def sql(self, text: str) -> Any:
        return self.con.sql(text).to_arrow_table()


class Polars:
    def __init__(self) -> None:
        import polars

        self.polars, self.version = polars, polars.__version__
        self.ctx = polars.SQLContext()

    def table(self, name: str, path: str) -> None:
        self.ctx.register(name, self.polars.scan_parquet(path))

    def sql(self, text: str) -> Any:
        return self.ctx.execute(text, eager=False).collect(engine="streaming").to_arrow()


class DataFusion:
    def __init__(self) -> None:
        import datafusion

        self.version = datafusion.__version__
        self.ctx = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(THREADS))

    def table(self, name: str, path: str) -> None:
        self.ctx.register_parquet(name, path)

    def sql(self, text: str) -> Any:
        return self.ctx.sql(text).to_arrow_table()


ENGINES = {"riverbed": Riverbed, "duckdb": DuckDB, "polars": Polars, "datafusion": DataFusion}


def digest(t: Any) -> list[Any]:
    """Row count and the sum of each numeric column: enough to see two engines disagree."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sums = []
    for c in t.columns:
        if pa.types.is_integer(c.type) or pa.types.is_floating(c.type) or pa.types.is_decimal(c.type):
            sums.append(round(float(pc.sum(c.cast(pa.float64())).as_py() or 0), 2))
    return [t.num_rows, sums]


def main() -> None:
    engine = ENGINES[NAME]()
    out = os.fdopen(os.dup(1), "w", buffering=1)  # an engine that prints must not spoil the protocol
    os.dup2(2, 1)
    print(json.dumps({"version": engine.version}), file=out)
    for line in sys.stdin:
        m = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            c, t = cpu(), time.perf_counter()
            if m["op"] == "table":
                engine.table(m["name"], m["path"])
                result = None
            else:
                result = engine.sql(m["sql"])
            answer = {"wall": time.perf_counter() - t, "cpu": cpu() - c}
            if result is not None:
                answer["rows"] = result.num_rows
                if m.get("digest"):
                    answer["digest"] = digest(result)
                if m.get("save"):
                    import pyarrow.parquet as pq

                    pq.write_table(result, m["save"])
        except BaseException as e:
            answer = {"error": f"{type(e).__name__}: {e}"[:400]}
        answer["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(answer), file=out)


main()
