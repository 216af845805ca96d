"""Flags and output that commands share."""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import os
import pathlib
import sys
import uuid
from typing import Any

from riverbed import Session
from riverbed.errors import RiverbedUsageError


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a session."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting, such as parallelism=4; may be given several times",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")


def session(arguments: argparse.Namespace) -> Session:
    """Open the session that the flags describe."""
    config = {}
    for pair in arguments.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise RiverbedUsageError(f"--set takes KEY=VALUE, not {pair!r}")
        config[key] = value
    return Session(config)


def add_checkpoints(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the checkpoints of a pipeline."""
    parser.add_argument("--pipeline-id", metavar="ID", required=True, help="of INSERT INTO it is the name of the sink")
    parser.add_argument(
        "--checkpoint-dir",
        metavar="URL",
        default=os.environ.get("RIVERBED_CHECKPOINT_URL"),
        help="where the checkpoints are; RIVERBED_CHECKPOINT_URL when it is left out",
    )


def place(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the checkpoints that the flags name."""
    if not arguments.checkpoint_dir:
        raise RiverbedUsageError("name the place of the checkpoints with --checkpoint-dir or RIVERBED_CHECKPOINT_URL")
    return {"url": arguments.checkpoint_dir, "pipeline": arguments.pipeline_id}


def text(argument: str) -> str:
    """Return the SQL of an argument: itself, a file's with a leading @, or standard input's for -."""
    if argument == "-":
        return sys.stdin.read()
    return read(argument[1:]) if argument.startswith("@") else argument


def read(path: str) -> str:
    """Return a file's text."""
    try:
        return pathlib.Path(path).read_text()
    except OSError as error:
        raise RiverbedUsageError(f"cannot read {path}: {error.strerror}") from error


def line(value: Any) -> str:
    """Return a value as one line of JSON; what JSON has no form for is text."""
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(type(value).__name__)
