"""`riverbed savepoint`."""

from __future__ import annotations

import argparse
import sys

from riverbed import _native
from riverbed.cli import common

SUMMARY = "Copy a checkpoint of a pipeline to a folder of its own, which nothing deletes."
EXAMPLES = (
    "riverbed savepoint --pipeline-id trades --checkpoint-dir s3://bucket/checkpoints s3://bucket/saved/trades",
    "riverbed savepoint --pipeline-id trades --epoch 1200 /backup/trades",
    "riverbed run trades.sql --checkpoint-dir s3://bucket/fork --from-savepoint s3://bucket/saved/trades",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("to", metavar="TO", help="a directory or s3:// URL that is empty")
    parser.add_argument("--epoch", type=int, default=0, help="of the checkpoint; the newest when it is left out")
    common.add_checkpoints(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    place = common.place(arguments) | {"epoch": arguments.epoch, "to": arguments.to}
    _native.call("rb_savepoint", *_native.as_json(place))
    print(f"saved to {arguments.to}", file=sys.stderr)
    return 0
