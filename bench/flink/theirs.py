"""NEXMark questions over Parquet files as streams on Flink SQL's mini-cluster.

python theirs.py FOLDER REPEAT QUESTION…

Runs in an environment with PyFlink. CPU is that of the JVM, which is this process's child.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import threading
import time

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment
from questions import FLINK, STREAMS, rows

CHECKPOINTS = int(os.environ.get("RIVERBED_BENCH_CHECKPOINTS", "0")) or 10_000  # ms between them

# No idle timeout: a source that needs longer than that for its first rows lets the watermark pass to the end, and all
# rows are late.
CONFIG = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "taskmanager.memory.process.size": "6g",
    "pipeline.object-reuse": "true",
    "table.exec.sink.not-null-enforcer": "DROP",
}


def cpu() -> float:
    """CPU seconds of this process and its children, the JVM among them."""
    ticks = 0
    me = os.getpid()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(entry.name) == me or int(fields[1]) == me:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Checkpoints:
    """Counts the checkpoints that a run completes, by the file that completes one. The job removes them in the end."""

    def __init__(self, folder: str) -> None:
        self.folder, self.seen = pathlib.Path(folder), set[pathlib.Path]()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def __enter__(self) -> Checkpoints:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def watch(self) -> None:
        while not self.done.wait(0.05):
            self.seen |= set(self.folder.glob("*/chk-*/_metadata"))


def durable(state: str, folder: str) -> dict[str, str]:
    """Give the settings of a state backend: RocksDB with checkpoints, the heap without."""
    if state == "hashmap":
        return {"state.backend.type": state}
    return {
        "state.backend.type": state,
        "taskmanager.memory.managed.size": "1500m",
        "execution.checkpointing.interval": f"{CHECKPOINTS} ms",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.dir": f"file://{folder}",
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="flink-checkpoints-") as checkpoints:
        run(checkpoints, *sys.argv[1:])


def run(checkpoints: str, folder: str, repeat: str, *questions: str) -> None:
    config = Configuration()
    jars = sorted(pathlib.Path(os.environ["RIVERBED_FLINK_JARS"]).glob("*.jar"))
    libraries = {"pipeline.jars": ";".join(f"file://{j}" for j in jars)}
    for key, value in (CONFIG | durable(os.environ["RIVERBED_FLINK_STATE"], checkpoints) | libraries).items():
        config.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(config).build()
    env = TableEnvironment.create(settings)
    for name, columns in STREAMS.items():
        columns = columns.replace("dateTime", "`dateTime`").replace("timestamp", "timestamp(3)")
        env.execute_sql(
            f"create table {name} ({columns}, watermark for `dateTime` as `dateTime` - interval '4' second) with "
            f"('connector' = 'filesystem', 'path' = 'file://{folder}/{name}.parquet', 'format' = 'parquet', "
            "'parquet.utc-timezone' = 'true')"
        )
    for q in questions:
        sql, reads = FLINK[q]
        schema = env.sql_query(sql).get_schema()
        names = schema.get_field_names()
        columns = ", ".join(
            f"`{n}` {schema.get_field_data_type(n)}".replace(" *ROWTIME*", "").replace(" NOT NULL", "") for n in names
        )
        env.execute_sql(f"create table sink_{q} ({columns}) with ('connector' = 'blackhole')")
        events = sum(rows(pathlib.Path(folder) / f"{n}.parquet") for n in reads)
        for turn in range(int(repeat) + 1):
            c, t = cpu(), time.perf_counter()
            with Checkpoints(checkpoints) as taken:
                env.execute_sql(f"insert into sink_{q} {sql}").wait()
            wall, used = time.perf_counter() - t, cpu() - c
            if turn:  # the first run warms the JVM
                figures = {"question": q, "events": events, "wall": wall, "cpu": used, "events_per_s": events / wall}
                print(json.dumps(figures | {"checkpoints": len(taken.seen)}), flush=True)


main()
