"""One batch engine in one process: reads JSON requests, answers with wall and CPU seconds. Started by harness.py.

requests: {"op": "table", "name", "path", "form"}, {"op": "sql", "sql", "code"?, "save"?}, {"op": "run", "sql"},
{"op": "warm"}

"run" is for statements, of which nothing is read; "warm" asks for nothing, so that what follows is no first answer.

A table's form says where its rows are when the clock starts: "file" (Parquet), "arrow" (an Arrow table in the memory
of the process, for all engines the same) or "own" (each engine's own table in memory). What an engine
cannot say in SQL may come as an expression of its API in "code".
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from typing import Any

NAME, THREADS, MEMORY_LIMIT = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.environ["POLARS_MAX_THREADS"] = str(THREADS)
LIMIT = {"memory_limit": MEMORY_LIMIT} if MEMORY_LIMIT else {}


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def forget_peak() -> None:
    """Let the peak of resident memory begin here, where Linux can."""
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def peak_rss_mb() -> float:
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024


def read_arrow(path: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path)


class Engine:
    def sql(self, text: str) -> Any:
        """Answer a question as an Arrow table."""
        raise NotImplementedError

    def warm(self) -> Any:
        """Load what the first answer loads, such as pyarrow."""
        return self.sql("SELECT 1 AS one")


class Riverbed(Engine):
    def __init__(self) -> None:
        import riverbed

        self.version = riverbed.version()
        self.session = riverbed.Session(config={"parallelism": THREADS, **LIMIT})

    def table(self, name: str, path: str, form: str) -> None:
        if form == "file":
            self.session.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        elif form == "own":
            self.session.sql(f"CREATE TABLE {name} AS SELECT * FROM '{path}'")
        else:
            self.session.create_table(name, source=read_arrow(path))

    def sql(self, text: str) -> Any:
        return self.session.sql(text).to_arrow()

    def run(self, text: str) -> None:
        self.session.sql(text)


class DuckDB(Engine):
    def __init__(self) -> None:
        import duckdb

        self.version = duckdb.__version__
        self.con = duckdb.connect(config={"threads": THREADS, **LIMIT})

    def table(self, name: str, path: str, form: str) -> None:
        if form == "file":
            self.con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{path}')")
        elif form == "own":
            self.con.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{path}')")
        else:
            self.con.register(name, read_arrow(path))

    def sql(self, text: str) -> Any:
        return self.con.sql(text).to_arrow_table()

    def run(self, text: str) -> None:
        self.con.execute(text)


class Polars(Engine):
    def __init__(self) -> None:
        import polars

        self.polars, self.version = polars, polars.__version__
        self.ctx = polars.SQLContext()
        self.frames: dict[str, Any] = {}

    def table(self, name: str, path: str, form: str) -> None:
        if form == "file":
            frame = self.polars.scan_parquet(path)
        elif form == "own":
            frame = self.polars.read_parquet(path).lazy()
        else:
            frame = self.polars.from_arrow(read_arrow(path)).lazy()
        self.frames[name] = frame
        self.ctx.register(name, frame)

    def sql(self, text: str) -> Any:
        return self.collect(self.ctx.execute(text, eager=False))

    def code(self, text: str) -> Any:
        return self.collect(eval(text, {"pl": self.polars, **self.frames}))

    def collect(self, frame: Any) -> Any:
        return frame.collect(engine="streaming").to_arrow()


class DataFusion(Engine):
    def __init__(self) -> None:
        import datafusion

        self.version = datafusion.__version__
        self.ctx = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(THREADS))

    def table(self, name: str, path: str, form: str) -> None:
        if form == "file":
            self.ctx.register_parquet(name, path)
        else:
            self.ctx.register_record_batches(name, [read_arrow(path).to_batches()])

    def sql(self, text: str) -> Any:
        return self.ctx.sql(text).to_arrow_table()


class PyArrow(Engine):
    """A library of readers: it is asked in code alone."""

    def __init__(self) -> None:
        import pyarrow
        import pyarrow.json

        self.pyarrow, self.version = pyarrow, pyarrow.__version__
        pyarrow.set_cpu_count(THREADS)

    def code(self, text: str) -> Any:
        return eval(text, {"pa": self.pyarrow, "json": self.pyarrow.json})

    def warm(self) -> Any:
        return None


ENGINES = {"riverbed": Riverbed, "duckdb": DuckDB, "polars": Polars, "datafusion": DataFusion, "pyarrow": PyArrow}


def save(t: Any, path: str) -> None:
    import pyarrow as pa

    with pa.OSFile(path, "wb") as f, pa.ipc.new_file(f, t.schema) as w:
        w.write_table(t)


def main() -> None:
    engine = ENGINES[NAME]()
    out = os.fdopen(os.dup(1), "w", buffering=1)  # an engine that prints must not spoil the protocol
    os.dup2(2, 1)
    print(json.dumps({"version": engine.version}), file=out)
    for line in sys.stdin:
        m = json.loads(line)
        answer: dict[str, Any] = {}
        result = None
        try:
            forget_peak()
            c, t = cpu(), time.perf_counter()
            if m["op"] == "warm":
                result = engine.warm()
            elif m["op"] == "table":
                engine.table(m["name"], m["path"], m["form"])
            elif m["op"] == "run":
                engine.run(m["sql"])
            elif "code" in m:
                result = engine.code(m["code"])
            else:
                result = engine.sql(m["sql"])
            answer = {"wall": time.perf_counter() - t, "cpu": cpu() - c, "rss_mb": peak_rss_mb()}
            if result is not None:
                answer["rows"] = result.num_rows
                if m.get("save"):
                    save(result, m["save"])
        except BaseException as e:
            answer = {"error": f"{type(e).__name__}: {e}"[:400]}
        del result
        print(json.dumps(answer), file=out)


main()
