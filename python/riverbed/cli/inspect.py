"""`riverbed inspect`."""

from __future__ import annotations

import argparse
import datetime
import json
from typing import Any

from riverbed import _native
from riverbed.cli import common

SUMMARY = "Tell what the checkpoints of a pipeline hold: epochs, positions, watermarks, state, commits of its sinks."
EXAMPLES = (
    "riverbed inspect --pipeline-id trades_1m --checkpoint-dir s3://bucket/checkpoints",
    "riverbed inspect --pipeline-id trades_1m --json",
)

# A source with more splits, as a folder of files, is summed up.
_FEW = 16


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
    for line in lines(found, datetime.datetime.now(datetime.UTC)):
        print(line)
    return 0


def lines(found: dict[str, Any], now: datetime.datetime) -> list[str]:
    """Return what is found, for people."""
    out = [
        f"pipeline   {found['pipeline']} in {found['folder']}",
        f"query      {' '.join(found.get('sql', '').split())}",
        f"run by     {_holder(found)}",
    ]
    for epoch in found["epochs"]:
        sizes = f"{_size(epoch['bytes'])}, {_size(epoch['new_bytes'])} of it new"
        fault = f": {epoch['error']}" if epoch.get("error") else ""
        out.append(f"epoch      {epoch['epoch']}, step {epoch['step']}, {epoch['written']}, {sizes}{fault}")
    whole = [epoch for epoch in found["epochs"] if not epoch.get("error")]
    written = _time(whole[-1]["written"]) if whole else None
    if written is not None:
        out.append(f"age        the newest epoch is {_span(now - written)} old")
    for source in found["sources"] or []:
        out += _source(source, written)
    for sink in found["sinks"] or []:
        waiting = ", ".join(str(epoch) for epoch in sink.get("pending") or [])
        out.append(f"sink       {sink['name']}: committed {sink['done']}" + (f", staged {waiting}" if waiting else ""))
    for table in found["tables"] or []:
        name = f"{table['owner']} {table.get('table', '')}".strip()
        out.append(f"state      {name}: {table['stored_rows']} rows stored, {_size(table['bytes'])}")
    return out


def _holder(found: dict[str, Any]) -> str:
    holder = found.get("holder")
    sources = found.get("sources") or []
    if sources and all((source.get("state") or {}).get("ended") for source in sources):
        return "nobody: it has ended, and its windows are closed"
    if not holder:
        return "nobody"
    if holder["released"]:
        return "nobody: it was stopped, and goes on from here when it is started again"
    return f"process {holder['pid']} on {holder['host']}, unless that was killed"


def _source(source: dict[str, Any], written: datetime.datetime | None) -> list[str]:
    state = source.get("state") or {}
    watermark = _instant(state.get("watermark"))
    told = "none" if watermark is None else watermark.isoformat(sep=" ", timespec="milliseconds")
    if state.get("ended"):
        told = "at its end"
    elif watermark is not None and written is not None:
        told += f", {_span(written - watermark)} behind the epoch"
    out = [f"source     {source['name']}: watermark {told}, {state.get('late', 0)} late"]
    splits = source.get("splits") or {}
    past = int(source.get("ended_splits") or 0)  # read to their end, and no longer listed one by one
    ended = sorted(split for split, at in splits.items() if at.get("ended"))
    if len(splits) > _FEW or past:
        reading = {split: at for split, at in splits.items() if not at.get("ended")}
        out.append(f"  {len(splits) + past} splits: {len(ended) + past} read to their end, {len(reading)} being read")
        splits = dict(sorted(reading.items())[:_FEW])
        if len(reading) > _FEW:
            out.append(f"  the first {_FEW} of those being read:")
    for split, at in sorted(splits.items()):
        out.append(
            f"  split {split or '-'} at {at['position'] or 'its beginning'}" + (", ended" if at.get("ended") else "")
        )
    return out


def _size(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _time(text: str) -> datetime.datetime | None:
    try:
        # Go writes up to nanoseconds, and Python reads microseconds.
        head, point, rest = text.replace("Z", "+00:00").partition(".")
        if point:
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            head += "." + digits[:6].ljust(6, "0") + rest[len(digits) :]
        return datetime.datetime.fromisoformat(head)
    except ValueError:
        return None


def _instant(microseconds: int | None) -> datetime.datetime | None:
    if microseconds is None or not -(2**55) < microseconds < 2**55:  # nothing is known, or no more comes
        return None
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=microseconds)


def _span(span: datetime.timedelta) -> str:
    seconds = span.total_seconds()
    sign = "-" if seconds < 0 else ""
    seconds = abs(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{sign}{seconds / size:.3g} {unit}"
    return f"{sign}{seconds:.3g} s"
