"""JSON lines to columns: how many megabytes a CPU second decodes, beside DuckDB, Polars and pyarrow.

    make bench CASE=json                          half a million messages of 200 bytes, 1 thread
    python bench/run.py json --rows 100000 --queries all

The messages are those of the case kafka, in a file that the page cache holds. All engines are told the columns, so none
looks at the file to infer them. "all" reads every field, "two" only a text and a number, "count" none.
"""

from __future__ import annotations

import pathlib

import batch
import harness

COLUMNS = {
    "symbol": "VARCHAR",
    "price": "DOUBLE",
    "ts": "TIMESTAMP",
    "id": "BIGINT",
    "venue": "VARCHAR",
    "note": "VARCHAR",
}
POLARS = {"VARCHAR": "pl.String", "DOUBLE": "pl.Float64", "TIMESTAMP": "pl.Datetime('us')", "BIGINT": "pl.Int64"}
PYARROW = {
    "VARCHAR": "pa.string()",
    "DOUBLE": "pa.float64()",
    "TIMESTAMP": "pa.timestamp('us')",
    "BIGINT": "pa.int64()",
}


def messages(rows: int) -> pathlib.Path:
    """Give the file; text of every kind that a parser must look at, escapes in one message of sixteen."""
    path = harness.DATA / f"messages-{rows}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half")
        with half.open("w") as out:
            for i in range(rows):
                ms = i * 3
                ts = f"2026-01-{1 + ms // 86_400_000 % 28:02}T{ms // 3_600_000 % 24:02}:{ms // 60_000 % 60:02}:"
                ts += f"{ms // 1000 % 60:02}.{ms % 1000:03}"
                note = "x" * 91 + ('\\"é\\n' if i % 16 == 0 else "xxxx")
                price = round(100 + i * 7919 % 1000 / 37, 4)
                out.write(
                    f'{{"symbol":"sym{i % 50}","price":{price},"ts":"{ts}","id":{i},"venue":"venue-{i % 7}",'
                    f'"note":"{note}"}}\n'
                )
        half.rename(path)
    return path


def schema(types: dict[str, str], columns: list[str]) -> str:
    return "{" + ", ".join(f"{c!r}: {types[COLUMNS[c]]}" for c in columns) + "}"


def reads(path: pathlib.Path, columns: list[str]) -> dict[str, str]:
    """Say in Polars' and pyarrow's own words: read these columns of the file."""
    options = (
        f"json.ParseOptions(explicit_schema=pa.schema({schema(PYARROW, columns)}), unexpected_field_behavior='ignore')"
    )
    names = ", ".join(map(repr, columns))
    return {
        "polars": f"pl.scan_ndjson({str(path)!r}, schema={schema(POLARS, list(COLUMNS))}).select({names})",
        "pyarrow": f"json.read_json({str(path)!r}, parse_options={options})",
    }


def main(argv: list[str]) -> None:
    p = batch.parser("json", engines="riverbed,duckdb,polars,pyarrow")
    p.add_argument("--rows", type=int, default=500_000)
    p.set_defaults(threads=1)
    a = p.parse_args(argv)
    path = messages(a.rows)
    typed = ", ".join(f"{c} {t}" for c, t in COLUMNS.items())
    keyed = ", ".join(f"{c}: '{t}'" for c, t in COLUMNS.items())
    told = f"format='newline_delimited', columns={{{keyed}}}"
    setup = {
        "riverbed": [f"CREATE TABLE messages ({typed}) WITH (connector = 'json', path = '{path}')"],
        "duckdb": [f"CREATE VIEW messages AS SELECT * FROM read_json('{path}', {told})"],
    }
    questions = {
        "all": batch.Question("SELECT * FROM messages", code=reads(path, list(COLUMNS))),
        "two": batch.Question("SELECT symbol, price FROM messages", code=reads(path, ["symbol", "price"])),
        "count": batch.Question(
            "SELECT count(*) AS n FROM messages",
            code={
                "polars": f"pl.scan_ndjson({str(path)!r}, schema={schema(POLARS, list(COLUMNS))}).select(n=pl.len())",
                "pyarrow": f"pa.table({{'n': [{reads(path, ['id'])['pyarrow']}.num_rows]}})",
            },
        ),
    }
    size = path.stat().st_size / 1e6

    def speed(got: batch.Answers) -> str:
        rows = [[q, *(size / harness.median(r, "cpu") for r in runs.values())] for q, runs in got.items()]
        return "\nMB per CPU second\n" + harness.table(["question", *next(iter(got.values()))], rows)

    title = f"json, {a.rows:,} messages, {size:.0f} MB"
    batch.run(batch.Suite("json", title, {}, questions, setup=setup, note=speed), a)
