"""The NEXMark questions in Flink's words beside the texts of ../nexmark, and the streams' columns."""

from __future__ import annotations

import pathlib
import re

STREAMS = {
    "person": "id bigint, name string, emailAddress string, creditCard string, city string, state string, "
    "dateTime timestamp, extra string",
    "auction": "id bigint, itemName string, description string, initialBid bigint, reserve bigint, "
    "dateTime timestamp, expires timestamp, seller bigint, category bigint, extra string",
    "bid": "auction bigint, bidder bigint, price bigint, channel string, url string, dateTime timestamp, extra string",
}


def rows(path: pathlib.Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def queries() -> dict[str, str]:
    text = (pathlib.Path(__file__).resolve().parent.parent / "nexmark" / "queries.sql").read_text()
    parts = re.split(r"(?m)^-- name: (\w+)\s*$", text)
    return {n: t.strip().rstrip(";") for n, t in zip(parts[1::2], parts[2::2], strict=True)}


def reads(sql: str) -> list[str]:
    return [s for s in STREAMS if re.search(rf"\b(from|join)\s+{s}\b", sql, re.IGNORECASE)]


DAY = "date_format(`dateTime`, 'yyyy-MM-dd')"
TUMBLE = "table(tumble(table {}, descriptor(`dateTime`), interval '10' second))"
HOP = "table(hop(table bid, descriptor(`dateTime`), interval '2' second, interval '10' second))"
COUNTS = (
    "count(*) filter (where price < 10000) as r1, "
    "count(*) filter (where price >= 10000 and price < 1000000) as r2, count(*) filter (where price >= 1000000) as r3"
)
HOPS = (
    f"select auction, count(*) as num, window_start as ws, window_end as we from {HOP} "
    "group by auction, window_start, window_end"
)
# AVG of whole numbers is a whole number in Flink, hence the casts.
FLINK: dict[str, tuple[str, tuple[str, ...]]] = {
    "q0": ("select auction, bidder, price, `dateTime`, extra from bid", ("bid",)),
    "q1": ("select auction, bidder, 0.908 * price as price, `dateTime`, extra from bid", ("bid",)),
    "q2": ("select auction, price from bid where mod(auction, 123) = 0", ("bid",)),
    "q3": (
        "select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id "
        "where a.category = 10 and p.state in ('OR', 'ID', 'CA')",
        ("auction", "person"),
    ),
    "q4": (
        "select category, avg(cast(final as double)) as av from (select a.id, a.category, max(b.price) as final "
        "from auction a join bid b on a.id = b.auction where b.`dateTime` between a.`dateTime` and a.expires "
        "group by a.id, a.category) t group by category",
        ("auction", "bid"),
    ),
    "q5": (
        f"select x.auction, x.num, x.ws from ({HOPS}) x "
        f"join (select ws, we, max(num) as mx from ({HOPS}) group by ws, we) m "
        "on x.ws = m.ws and x.we = m.we and x.num >= m.mx",
        ("bid",),
    ),
    "q7": (
        "select b.auction, b.price, b.bidder, b.`dateTime`, b.extra from bid b join (select max(price) as mx, "
        f"window_start as ws, window_end as we from {TUMBLE.format('bid')} group by window_start, window_end) m "
        "on b.price = m.mx where b.`dateTime` >= m.ws and b.`dateTime` < m.we",
        ("bid",),
    ),
    "q8": (
        f"select p.id, p.name, p.ws from (select id, name, window_start as ws, window_end as we "
        f"from {TUMBLE.format('person')} group by id, name, window_start, window_end) p "
        f"join (select seller, window_start as ws, window_end as we "
        f"from {TUMBLE.format('auction')} group by seller, window_start, window_end) a "
        "on p.id = a.seller and p.ws = a.ws and p.we = a.we",
        ("person", "auction"),
    ),
    "q9": (
        "select id, itemName, initialBid, seller, category, auction, bidder, price, bts from (select a.id, a.itemName, "
        "a.initialBid, a.seller, a.category, b.auction, b.bidder, b.price, b.`dateTime` as bts, row_number() over "
        "(partition by a.id order by b.price desc, b.`dateTime`, b.bidder) as rn "
        "from auction a join bid b on a.id = b.auction "
        "where b.`dateTime` between a.`dateTime` and a.expires) where rn <= 1",
        ("auction", "bid"),
    ),
    "q15": (
        f"select {DAY} as d, count(*) as total, {COUNTS}, count(distinct bidder) as tb, "
        "count(distinct bidder) filter (where price < 10000) as b1, count(distinct auction) as ta, "
        f"count(distinct auction) filter (where price < 10000) as a1 from bid group by {DAY}",
        ("bid",),
    ),
    "q17": (
        f"select auction, {DAY} as d, count(*) as total, {COUNTS}, min(price) as mn, max(price) as mx, "
        f"avg(cast(price as double)) as av, sum(price) as sm from bid group by auction, {DAY}",
        ("bid",),
    ),
    "q18": (
        "select auction, bidder, price, `dateTime` from (select *, row_number() over (partition by bidder, auction "
        "order by `dateTime` desc) as rn from bid) where rn <= 1",
        ("bid",),
    ),
    "q19": (
        "select auction, bidder, price, rn from (select *, row_number() over (partition by auction "
        "order by price desc) as rn from bid) where rn <= 10",
        ("bid",),
    ),
    "q20": (
        "select b.auction, b.bidder, b.price, b.channel, a.itemName, a.initialBid from bid b join auction a "
        "on b.auction = a.id where a.category = 10",
        ("bid", "auction"),
    ),
    "q22": (
        "select auction, bidder, price, channel, split_index(url, '/', 3) as dir1, split_index(url, '/', 4) as dir2, "
        "split_index(url, '/', 5) as dir3 from bid",
        ("bid",),
    ),
    "tumble": (
        f"select auction, window_start as ws, count(*) as n from {TUMBLE.format('bid')} "
        "group by auction, window_start, window_end",
        ("bid",),
    ),
}
