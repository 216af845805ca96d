"""Alerts of a sky survey, filtered, joined to a catalogue by sky cell, ranked in every ten minutes of the night.

    python examples/astronomy_alert_filter.py
    python examples/astronomy_alert_filter.py --packets folder/of/*.avro --notices folder/of/*.json

Packets are Avro with the schema inside, as the Zwicky Transient Facility sends them; notices are JSON of as many shapes
as there are missions, as NASA's GCN sends them. By default both are made here, with three outbursts of known stars
among them, and those have to come out on top. It brings an embedded broker; KAFKA_BROKERS=host:port takes yours.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from services import broker

import riverbed as rb

# A cell of the sky is a tenth of a degree wide: what two lists say of the same cell may be of the same object.
CELL = "(floor(({ra}) * 10) * 10000 + floor(({dec}) * 10))::BIGINT"

# Of a packet: real (a score of its classifier), brighter than before, and bright enough; with the time that its Julian
# date means.
FILTER = f"""
SELECT objectId AS object, candidate.ra AS ra, candidate.dec AS dec, candidate.magpsf AS mag, candidate.rb AS score,
       {CELL.format(ra="candidate.ra", dec="candidate.dec")} AS cell,
       make_timestamp(((candidate.jd - 2440587.5) * 86400000000.0)::BIGINT) AS ts
FROM packets
WHERE candidate.rb > 0.65 AND candidate.isdiffpos IN ('t', '1') AND candidate.magpsf < 19
"""

# The five best candidates of every ten minutes: how much brighter they are than the star of the catalogue in their
# cell.
RANK = """
SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY outburst DESC, object) AS place
    FROM (
        SELECT TUMBLE_START(a.ts, INTERVAL '10 minutes') AS window_start, a.object, c.name AS star,
               max(c.mag - a.mag) AS outburst, count(*) AS alerts
        FROM alerts a JOIN '{catalogue}' c ON c.cell = a.cell
        GROUP BY TUMBLE(a.ts, INTERVAL '10 minutes'), a.object, c.name))
WHERE place <= 5
"""

# Where a notice says that something is, in the places where missions put it; those that give no place are passed over.
NOTICES = f"""
SELECT mission, {CELL.format(ra="ra", dec="dec")} AS cell, ra, dec
FROM (
    SELECT coalesce(notice ->> '$.mission', notice ->> '$.instrument', notice ->> '$.type', 'unknown') AS mission,
           coalesce(notice ->> '$.ra', notice ->> '$.data.targets[0].ra',
                    notice ->> '$.coincident_events[0].localization.ra')::DOUBLE AS ra,
           coalesce(notice ->> '$.dec', notice ->> '$.data.targets[0].dec',
                    notice ->> '$.coincident_events[0].localization.dec')::DOUBLE AS dec
    FROM notices)
WHERE ra IS NOT NULL AND dec IS NOT NULL
"""

STARS = 400
OUTBURSTS = (17, 170, 303)  # stars of the catalogue that brighten

SCHEMA = {
    "type": "record",
    "name": "alert",
    "namespace": "ztf",
    "fields": [
        {"name": "objectId", "type": "string"},
        {"name": "candid", "type": "long"},
        {
            "name": "candidate",
            "type": {
                "type": "record",
                "name": "candidate",
                "fields": [
                    {"name": "jd", "type": "double"},
                    {"name": "ra", "type": "double"},
                    {"name": "dec", "type": "double"},
                    {"name": "magpsf", "type": "float"},
                    {"name": "isdiffpos", "type": "string"},
                    {"name": "rb", "type": ["null", "float"]},
                ],
            },
        },
    ],
}


def number(n: int) -> bytes:
    """Write a whole number as Avro does: zigzag, seven bits a byte."""
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def text(data: bytes) -> bytes:
    """Write bytes as Avro does, behind their length."""
    return number(len(data)) + data


def packet(name: str, candid: int, jd: float, ra: float, dec: float, mag: float, score: float) -> bytes:
    """Write one alert as an Avro object container: header with the schema, one block of one record."""
    sync = b"riverbed example"
    body = (
        text(name.encode())
        + number(candid)
        + struct.pack("<dddf", jd, ra, dec, mag)
        + text(b"t")
        + number(1)
        + struct.pack("<f", score)
    )
    header = (
        number(2)
        + text(b"avro.schema")
        + text(json.dumps(SCHEMA).encode())
        + text(b"avro.codec")
        + text(b"null")
        + number(0)
    )
    return b"Obj\x01" + header + sync + number(1) + text(body) + sync


def sky(chance: random.Random) -> list[tuple[int, str, float, float, float]]:
    """Make the catalogue: stars with their places and their usual magnitudes."""
    return [(n, f"V{n:04}", 10 + n * 0.7, -20 + n % 60 * 0.7, chance.uniform(16, 20)) for n in range(STARS)]


def night(stars: list[tuple[int, str, float, float, float]], chance: random.Random) -> list[bytes]:
    """Make the alerts of an hour: stars that vary a little, artefacts, places where no star is, and three outbursts."""
    out = []
    begin = 2460676.5  # 2025-01-01
    for n in range(6000):
        jd = begin + n * 0.6 / 86400
        star, name, ra, dec, mag = stars[chance.randrange(STARS)]
        score = chance.random()
        if star in OUTBURSTS and jd > begin + 25 / 1440:
            mag, score = mag - 4, 0.9
        else:
            mag += chance.uniform(-0.3, 0.3)
        if chance.random() < 0.2:
            ra, name = ra + 0.35, f"N{n:04}"
        out.append(packet(f"ZTF25{name}", n, jd, ra + 0.01, dec + 0.01, mag, score))
    return out


def shapes(stars: list[tuple[int, str, float, float, float]]) -> list[str]:
    """Make notices as different missions write them; the last one says no place at all."""
    places = [{"ra": stars[n][2] + 0.02, "dec": stars[n][3] + 0.02} for n in (*OUTBURSTS, 5)]
    return [
        json.dumps({"mission": "Einstein Probe", "instrument": "WXT", "id": ["01"], **places[0]}),
        json.dumps({"mission": "Boom", "data": {"targets": [{"event_name": "x", **places[1]}]}}),
        json.dumps({"type": "IceCube search", "coincident_events": [{"localization": places[2]}]}),
        json.dumps({"mission": "Fermi", **places[3], "trigger_type": "rate"}),
        json.dumps({"mission": "Swift", "alert_type": "retraction", "id": "7"}),
    ]


def send(rows: Sequence[tuple[bytes | str]], column: str, topic: rb.Kafka) -> None:
    """Write messages to a topic as they are."""
    session = rb.Session()
    stream = rb.MemoryStream()
    session.create_stream("messages", source=stream, schema={"message": column})
    with session.sql("SELECT message FROM messages").sink(topic).run(blocking=False) as running:
        for at in range(0, len(rows), 1000):
            stream.push(rows[at : at + 1000])
        stream.end()
        running.wait()


def main() -> int:
    """Run the example."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--packets", help="files of real packets instead of made ones, as a pattern")
    parser.add_argument("--notices", help="files of real notices instead of made ones, as a pattern")
    a = parser.parse_args()
    chance = random.Random(7)
    stars = sky(chance)
    packets, notices = night(stars, chance), shapes(stars)
    if a.packets:
        packets = [pathlib.Path(file).read_bytes() for file in sorted(glob.glob(a.packets))]
    if a.notices:
        notices = [pathlib.Path(file).read_text() for file in sorted(glob.glob(a.notices))]

    with tempfile.TemporaryDirectory() as folder, broker() as brokers:
        name = f"{os.getpid()}-{int(time.time())}"
        config = {"checkpoint_url": f"{folder}/checkpoints", "checkpoint_interval_ms": 200}

        def topic(of: str, **options: Any) -> rb.Kafka:
            return rb.Kafka(f"{of}-{name}", brokers=brokers, **options)

        print(f"{len(packets)} packets and {len(notices)} notices")
        send([(p,) for p in packets], "BLOB", topic("packets", format="raw", partitions=1))
        send([(n,) for n in notices], "VARCHAR", topic("notices", format="raw", partitions=1))

        # First pipeline: packets become rows, the schema is the one inside of them, and what passes the filter goes to
        # a topic.
        first = rb.Session(config)
        first.create_stream("packets", source=topic("packets", format="avro"))
        passed = topic("alerts", partitions=1)
        first.sql(FILTER).sink(passed, pipeline_id="filter", exactly_once=True).run(until="latest")

        # Second pipeline: the alerts that passed, joined to the catalogue by cell, in windows of event time; each
        # window's ranking is written once it has closed.
        second = rb.Session(config)
        catalogue = f"{folder}/catalogue.parquet"
        values = ", ".join(
            f"({CELL.format(ra=ra + 0.01, dec=dec + 0.01)}, '{star}', {mag})" for _, star, ra, dec, mag in stars
        )
        second.sql(f"COPY (SELECT * FROM (VALUES {values}) AS v(cell, name, mag)) TO '{catalogue}'")
        schema = dict.fromkeys(("ra", "dec", "mag", "score"), "DOUBLE")
        schema |= {"object": "VARCHAR", "cell": "BIGINT", "ts": "TIMESTAMP"}
        second.create_stream("alerts", source=topic("alerts", watermark="ts - INTERVAL '1 minute'"), schema=schema)
        # An Iceberg table, or files, where the library of Iceberg metadata was not built.
        iceberg = pathlib.Path(rb.__file__).with_name("libriverbed_iceberg.so").exists()
        lake = f"sqlite:///{folder}/lake.db"
        target = rb.Iceberg(lake, "sky.ranked") if iceberg else rb.Parquet(f"{folder}/ranked")
        ranked = second.sql(RANK.format(catalogue=catalogue) + " EMIT ON WATERMARK").sink(
            target, pipeline_id="rank", exactly_once=True
        )
        ranked.run(until="latest")

        # What anybody reads of the ranking, and what the notices say of the same cells.
        reader = rb.Session()
        best: list[dict[str, Any]] = []
        if iceberg or glob.glob(f"{folder}/ranked/*.parquet"):
            table = f"iceberg_scan('sky.ranked', catalog = '{lake}')" if iceberg else f"'{folder}/ranked/*.parquet'"
            best = reader.sql(f"SELECT * FROM {table} ORDER BY window_start, place").to_pylist()
        for row in best:
            print(
                f"  {row['window_start']:%H:%M}  {row['place']}  {row['object']:<12} {row['star']:<6} "
                f"{row['outburst']:+.2f} mag, {row['alerts']} alerts"
            )
        reader.create_stream("notices", source=topic("notices", format="raw"), schema={"notice": "VARCHAR"})
        placed = []
        with reader.sql(NOTICES).subscribe(until="latest") as changes:
            for batch in changes:
                placed.extend(batch)
        cells = {row["cell"] for row in placed}
        print(f"{len(placed)} of {len(notices)} notices give a place")
        if a.packets or a.notices:
            return 0
        found = {row["star"] for row in best if row["place"] <= len(OUTBURSTS) and row["outburst"] > 3}
        wanted = {f"V{n:04}" for n in OUTBURSTS}
        listed = ", ".join(str(cell) for cell in cells)
        confirmed = second.sql(f"SELECT name FROM '{catalogue}' WHERE cell IN ({listed})").to_pylist()
        also = wanted & {row["name"] for row in confirmed}
        print(f"on top: {', '.join(sorted(found))}; notices are of the same cells as {len(also)} of them")
        same = found == wanted and also == wanted
        print("the three outbursts are on top, and missions saw them too" if same else "THE OUTBURSTS WERE NOT FOUND")
        return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
