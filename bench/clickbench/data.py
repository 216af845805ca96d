"""A table of page views in the shape of the ClickBench one: the columns that its questions touch, from a fixed seed.

Cardinalities and skew follow the public data set in proportion: one visitor in four hits many pages, most search
phrases are empty, a few counters have most of the hits, URLs repeat by a power law.
"""

from __future__ import annotations

import pathlib
import re
from typing import Any

import h2o

DAYS = 31
BUSY_COUNTER = 62
HOSTS = ["google", "yandex", "mail", "example", "avito", "youtube", "wikipedia", "shop", "kino", "forum"]
WORDS = re.findall(
    r"\w+",
    "auto cheap weather news Google photo lyrics watch online free recipes map phone video games rent buy house "
    "ticket cinema music school job garden laptop",
)
MODELS = ["", "iPad", "iPhone", "Galaxy", "Nokia", "Lumia", "Desire", "Xperia", "Nexus", "Optimus"]


def hits(rows: int) -> dict[str, pathlib.Path]:
    return h2o.kept(f"hits-{rows}", {"hits": lambda: make(rows)})


def make(rows: int) -> Any:
    import numpy as np
    import pyarrow as pa

    r = np.random.default_rng(43)

    def skewed(values: int, power: float = 3.0) -> Any:
        """Draw from 0 … values-1, the small ones far more often."""
        return (r.random(rows) ** power * values).astype(np.int64)

    def scatter(a: Any) -> Any:
        """Give each small number a large one of its own."""
        return ((a.astype(np.uint64) + 1) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(1)).astype(np.int64)

    def texts(levels: list[str], at: Any) -> Any:
        return pa.array(levels).take(pa.array(at))

    def some(share: float, values: Any) -> Any:
        """Keep a share of the values and make the others 0."""
        return np.where(r.random(rows) < share, values, 0)

    urls = max(rows // 5, 10)
    paths = [
        f"http://{HOSTS[i % 7 if i % 3 else i % 10]}{'.google' if i % 97 == 0 else ''}.{'ru' if i % 4 else 'com'}"
        f"/{WORDS[i * 7 % len(WORDS)].lower()}/{WORDS[i * 11 % len(WORDS)].lower()}-{i}"
        + (f"?q={WORDS[i % len(WORDS)]}&page={i % 50}" if i % 2 else "")
        for i in range(urls)
    ]
    titles = [
        f"{WORDS[i % len(WORDS)]} {WORDS[i * 5 % len(WORDS)]} {WORDS[i * 13 % len(WORDS)]} {i}"
        for i in range(urls // 2)
    ]
    phrases = [""] + [
        f"{WORDS[i % len(WORDS)]} {WORDS[i * 3 % len(WORDS)]} {i // 3}".lower() for i in range(max(rows // 16, 10))
    ]
    referers = [
        "",
        *(f"{'https' if i % 3 else 'http'}://{'www.' if i % 2 else ''}{p[7:]}" for i, p in enumerate(paths)),
    ]
    url, referer = skewed(urls, 4), some(0.8, 1 + skewed(urls, 4))
    phrase = some(0.13, 1 + skewed(len(phrases) - 1, 2))
    engine = np.where(phrase > 0, 1 + skewed(30, 5), 0)
    seconds = np.sort(r.integers(0, DAYS * 86_400, rows))
    model = some(0.06, 1 + skewed(len(MODELS) - 1, 2))
    start = np.datetime64("2013-07-01", "s")
    small, whole = np.int16, np.int32
    return pa.table(
        {
            "watch_id": scatter(r.permutation(rows)),
            "title": texts(titles, skewed(len(titles), 4)),
            "event_time": pa.array((start + seconds).astype("datetime64[us]")),
            "event_date": pa.array((start + seconds).astype("datetime64[D]")),
            "counter_id": np.where(r.random(rows) < 0.08, BUSY_COUNTER, skewed(6_000, 5) + 1).astype(whole),
            "client_ip": (scatter(skewed(max(rows // 6, 10), 2)) % 2**31).astype(whole),
            "region_id": skewed(5_000, 5).astype(whole),
            "user_id": scatter(skewed(max(rows // 6, 10), 2)),
            "url": texts(paths, url),
            "referer": texts(referers, referer),
            "is_refresh": (r.random(rows) < 0.1).astype(small),
            "resolution_width": r.choice(np.array([0, 1024, 1280, 1366, 1440, 1600, 1920, 2560]), rows).astype(small),
            "mobile_phone": model.astype(small),
            "mobile_phone_model": texts(MODELS, model),
            "traffic_source_id": r.choice(np.array([-1, 0, 1, 2, 3, 6]), rows).astype(small),
            "search_engine_id": engine.astype(small),
            "search_phrase": texts(phrases, phrase),
            "adv_engine_id": some(0.006, 1 + skewed(18, 3)).astype(small),
            "window_width": r.integers(300, 2_000, rows).astype(small),
            "window_height": r.integers(200, 1_200, rows).astype(small),
            "is_link": (r.random(rows) < 0.05).astype(small),
            "is_download": (r.random(rows) < 0.01).astype(small),
            "dont_count_hits": (r.random(rows) < 0.1).astype(small),
            "referer_hash": scatter(referer),
            "url_hash": scatter(url),
        }
    )


def frequent(path: pathlib.Path) -> dict[str, int]:
    """Give the constants of the questions: a visitor of few hits, and the hash of the most frequent address."""
    import polars as pl

    hits = pl.scan_parquet(path)
    user = hits.select(pl.col("user_id").gather([7])).collect().item()
    address = hits.filter(pl.col("counter_id") == BUSY_COUNTER).select(pl.col("url_hash").mode().min()).collect().item()
    return {"user": user, "hash": address}
