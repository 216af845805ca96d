"""`riverbed replay`."""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import sys
from typing import Any

from riverbed.cli import common
from riverbed.errors import RiverbedUsageError
from riverbed.query import Query

SUMMARY = "Feed bad rows of a pipeline, repaired or as they are, back to where their stream reads: each row once."
EXAMPLES = (
    "riverbed replay --pipeline-id minutes --checkpoint-dir s3://bucket/checkpoints --export bad.jsonl",
    "riverbed replay trades.sql --pipeline-id minutes --checkpoint-dir s3://bucket/checkpoints --repaired bad.jsonl",
    "riverbed replay trades.sql --pipeline-id minutes --checkpoint-dir s3://bucket/checkpoints --into repaired_trades",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("file", nargs="?", help="the script of the pipeline: its CREATE statements say where rows go")
    common.add_checkpoints(parser)
    parser.add_argument(
        "--export", metavar="FILE", help="write the bad rows to a file of JSON lines, to repair them; feed nothing back"
    )
    parser.add_argument(
        "--repaired",
        metavar="FILE",
        help="JSON lines or Parquet with the columns number and raw (or raw_base64): feed back these rows",
    )
    parser.add_argument("--source", default="", metavar="STREAM", help="only rows of this stream")
    parser.add_argument(
        "--into", default="", metavar="SINK", help="a sink of the script for the column raw, instead of the stream"
    )
    common.add_session(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    place = common.place(arguments)
    arguments.set += [f"checkpoint_url={place['url']}", "checkpoint_interval_ms=100"]
    with common.session(arguments) as session:
        if arguments.export:
            rows = session.sql(
                "SELECT number, source, split, position, error, time, key, raw "
                f"FROM state({_quoted(place['pipeline'])}, '__bad') WHERE raw IS NOT NULL"
                + (f" AND lower(source) = lower({_quoted(arguments.source)})" if arguments.source else "")
                + " ORDER BY number"
            )
            _export(rows, arguments.export)
            print(f"written to {arguments.export}", file=sys.stderr)
            return 0
        if not arguments.file:
            raise RiverbedUsageError("name the script of the pipeline, which says where the rows go back to")
        text = common.read(arguments.file)
        for statement in session.statements(text):
            if re.match(r"(?is)\s*(--[^\n]*\n\s*)*(CREATE|SET)\b", statement):
                session.sql(statement)
        found = session.replay(
            place["pipeline"], repaired=arguments.repaired, source=arguments.source, into=arguments.into
        )
    if arguments.json:
        print(json.dumps(found))
    else:
        print(
            f"{found['replayed']} rows went back, {found['already']} had gone before"
            + (f", {found['no_bytes']} have no bytes (an expression failed on them)" if found["no_bytes"] else "")
        )
    return 0


def _export(rows: Query, path: str) -> None:
    """Write rows as JSON lines. The file is there when it is whole."""
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            for batch in rows.batches():
                for row in batch:
                    file.write(common.line(_texts(row)) + "\n")
        os.replace(part, path)
    except OSError as error:
        raise RiverbedUsageError(f"cannot write {path}: {error.strerror}") from error


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its bytes as text, or where they are none in base 64 in a column of their own."""
    for name in ("key", "raw"):
        value = row[name]
        if value is None:
            continue
        try:
            row[name] = value.decode()
        except UnicodeDecodeError:
            row[name] = None
            row[name + "_base64"] = base64.b64encode(value).decode()
    return row


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
