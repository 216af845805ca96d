"""`riverbed inspect`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from riverbed import _native
from riverbed.cli import common

SUMMARY = "Tell what the checkpoints of a pipeline hold: epochs, positions, watermarks, state, commits of its sinks."
EXAMPLES = (
    "riverbed inspect --pipeline-id trades_1m --checkpoint-dir s3://bucket/checkpoints",
    "riverbed inspect --pipeline-id trades_1m --json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    common.add_checkpoints(parser)
    parser.add_argument("--json", action="store_true", help="print all of it as a JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    found = json.loads(_native.call_text("rb_inspect", *_native.as_json(common.place(arguments))))
    if arguments.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    for line in _lines(found):
        print(line)
    return 0


def _lines(found: dict[str, Any]) -> list[str]:
    holder = found.get("holder")
    running = f"process {holder['pid']} on {holder['host']}" if holder and not holder["released"] else "nobody"
    out = [
        f"pipeline   {found['pipeline']} in {found['folder']}",
        f"query      {' '.join(found.get('sql', '').split())}",
        f"run by     {running}",
    ]
    for epoch in found["epochs"]:
        sizes = f"{_size(epoch['bytes'])}, {_size(epoch['new_bytes'])} of it new"
        fault = f": {epoch['error']}" if epoch.get("error") else ""
        out.append(f"epoch      {epoch['epoch']}, step {epoch['step']}, {epoch['written']}, {sizes}{fault}")
    for source in found["sources"] or []:
        state = source.get("state") or {}
        watermark = _watermark(state.get("watermark"))
        out.append(f"source     {source['name']}: watermark {watermark}, {state.get('late', 0)} late")
        for split, at in sorted((source.get("splits") or {}).items()):
            ended = ", ended" if at.get("ended") else ""
            out.append(f"  split {split or '-'} at {at['position'] or 'its beginning'}{ended}")
    for sink in found["sinks"] or []:
        waiting = ", ".join(str(epoch) for epoch in sink.get("pending") or [])
        out.append(f"sink       {sink['name']}: committed {sink['done']}" + (f", staged {waiting}" if waiting else ""))
    for table in found["tables"] or []:
        name = f"{table['owner']} {table.get('table', '')}".strip()
        out.append(f"state      {name}: {table['stored_rows']} rows stored, {_size(table['bytes'])}")
    return out


def _size(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _watermark(microseconds: int | None) -> str:
    if microseconds is None or microseconds <= -(2**63):
        return "none"
    if microseconds >= 2**63 - 1:
        return "at the end"
    return f"{microseconds} µs"
