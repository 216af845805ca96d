"""NEXMark questions over Parquet streams on Riverbed.

python ours.py FOLDER REPEAT QUESTION…
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import resource
import sys
import tempfile
import threading
import time
from typing import Any

from questions import STREAMS, queries, reads

import riverbed as rb

CHECKPOINTS = os.environ.get("RIVERBED_BENCH_CHECKPOINTS", "0")  # ms between them; 0: none


def cpu() -> float:
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def once(question: str, sql: str, folder: pathlib.Path) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="riverbed-bench-") as url:
        return run(question, sql, folder, url)


def run(question: str, sql: str, folder: pathlib.Path, url: str) -> dict[str, object]:
    import pyarrow.parquet as pq

    config = {"parallelism": "2"}
    if CHECKPOINTS != "0":
        config |= {"checkpoint_url": url, "checkpoint_interval_ms": CHECKPOINTS}
    session = rb.Session(config=config)
    for name in reads(sql):
        columns = re.sub(r" string\b", " varchar", STREAMS[name])
        session.sql(
            f"CREATE STREAM {name} ({columns}, WATERMARK FOR dateTime AS dateTime - INTERVAL '4 seconds') "
            f"WITH (connector = 'parquet', path = '{folder / name}.parquet')"
        )
    rows = sum(pq.read_metadata(folder / f"{name}.parquet").num_rows for name in reads(sql))
    c, t = cpu(), time.perf_counter()
    if CHECKPOINTS != "0":
        # A stop takes a last checkpoint, as the end of a job of Flink's does.
        with session.sql(sql).sink(lambda _: None, pipeline_id="bench").run(blocking=False) as pipeline:
            while (figures := pipeline.metrics())["rows_in"] < rows or figures["queue_rows"]:
                time.sleep(0.005)
            pipeline.stop()
            wall, used = time.perf_counter(), cpu()
            figures = pipeline.metrics()
        return result(question, rows, wall - t, used - c, figures)
    last = [t, c]
    with session.sql(sql).subscribe() as changes:

        def read() -> None:
            with contextlib.suppress(rb.RiverbedUsageError):  # closed below, while this reads
                for _ in changes:
                    last[:] = time.perf_counter(), cpu()

        reader = threading.Thread(target=read)
        reader.start()
        # A stream over files does not end: all rows are in when it has read as many, and all is done when it rests.
        while changes.metrics()["rows_in"] < rows:
            time.sleep(0.005)
        seen = (time.perf_counter(), cpu())
        time.sleep(0.2)
        figures = changes.metrics()
        changes.close()
        reader.join()
    wall, used = (max(a, b) for a, b in zip(last, seen, strict=True))
    return result(question, rows, wall - t, used - c, figures)


def result(question: str, rows: int, wall: float, used: float, figures: dict[str, Any]) -> dict[str, object]:
    return {
        "question": question,
        "events": rows,
        "wall": wall,
        "cpu": used,
        "events_per_s": rows / wall,
        "changes": figures["rows_out"],
        "checkpoints": figures["epoch"],
    }


def main() -> None:
    folder, repeat, *questions = sys.argv[1:]
    texts = queries()
    for q in questions:
        once(q, texts[q], pathlib.Path(folder))  # the first run reads the files into the page cache
        for _ in range(int(repeat)):
            print(json.dumps(once(q, texts[q], pathlib.Path(folder))), flush=True)


main()
