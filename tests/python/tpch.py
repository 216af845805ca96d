"""The tables of TPC-H in small: schemas and keys of the benchmark, values drawn so that each query finds rows."""

from __future__ import annotations

import datetime
import pathlib
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MONEY = pa.decimal128(15, 2)
SCHEMAS = {
    "region": "r_regionkey:int64 r_name r_comment",
    "nation": "n_nationkey:int64 n_name n_regionkey:int64 n_comment",
    "supplier": "s_suppkey:int64 s_name s_address s_nationkey:int64 s_phone s_acctbal:money s_comment",
    "customer": "c_custkey:int64 c_name c_address c_nationkey:int64 c_phone c_acctbal:money c_mktsegment c_comment",
    "part": "p_partkey:int64 p_name p_mfgr p_brand p_type p_size:int32 p_container p_retailprice:money p_comment",
    "partsupp": "ps_partkey:int64 ps_suppkey:int64 ps_availqty:int32 ps_supplycost:money ps_comment",
    "orders": "o_orderkey:int64 o_custkey:int64 o_orderstatus o_totalprice:money o_orderdate:date o_orderpriority "
    "o_clerk o_shippriority:int32 o_comment",
    "lineitem": "l_orderkey:int64 l_partkey:int64 l_suppkey:int64 l_linenumber:int32 l_quantity:money "
    "l_extendedprice:money l_discount:money l_tax:money l_returnflag l_linestatus l_shipdate:date l_commitdate:date "
    "l_receiptdate:date l_shipinstruct l_shipmode l_comment",
}
TYPES = {"": pa.string(), "int64": pa.int64(), "int32": pa.int32(), "money": MONEY, "date": pa.date32()}
NATIONS = [  # name, region
    *[("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3)],
    *[
        ("GERMANY", 3),
        ("INDIA", 2),
        ("INDONESIA", 2),
        ("IRAN", 4),
        ("IRAQ", 4),
        ("JAPAN", 2),
        ("JORDAN", 4),
        ("KENYA", 0),
    ],
    *[
        ("MOROCCO", 0),
        ("MOZAMBIQUE", 0),
        ("PERU", 1),
        ("CHINA", 2),
        ("ROMANIA", 3),
        ("SAUDI ARABIA", 4),
        ("VIETNAM", 2),
    ],
    *[("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1)],
]
BRANDS = ["Brand#12", "Brand#23", "Brand#34", "Brand#45"]
CONTAINERS = ["SM CASE", "SM BOX", "MED BOX", "MED BAG", "LG CASE", "LG PKG", "JUMBO JAR"]
KINDS = ["ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "MEDIUM POLISHED TIN", "SMALL PLATED BRASS"]
COMMENTS = [
    "quick foxes",
    "special pending requests",
    "Customer slow Complaints",
    "even deposits",
    "the pâté über all",
    "",
]
SUPPLIERS, CUSTOMERS, PARTS, ORDERS = 60, 150, 200, 1500


def rows(seed: int) -> dict[str, list[tuple[Any, ...]]]:
    r = random.Random(seed)

    def money(low: int, high: int) -> Decimal:
        return Decimal(r.randint(low, high)).scaleb(-2)

    def day(first: datetime.date, last: datetime.date) -> datetime.date:
        return first + datetime.timedelta(r.randint(0, (last - first).days))

    def address() -> tuple[str, int, str]:
        nation = r.randrange(25)
        return (
            f"{r.randint(1, 99)} road {r.randint(1, 9)}",
            nation,
            f"{nation + 10}-{r.randint(100, 999)}-{r.randint(1000, 9999)}",
        )

    names = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
    out: dict[str, list[tuple[Any, ...]]] = {
        "region": [(i, n, r.choice(COMMENTS)) for i, n in enumerate(names)],
        "nation": [(i, n, region, r.choice(COMMENTS)) for i, (n, region) in enumerate(NATIONS)],
        "supplier": [
            (i, f"Supplier#{i:09}", *address(), money(-99999, 999999), r.choice(COMMENTS))
            for i in range(1, SUPPLIERS + 1)
        ],
        "customer": [
            (
                i,
                f"Customer#{i:09}",
                *address(),
                money(-99999, 999999),
                r.choice(["BUILDING", "MACHINERY"]),
                r.choice(COMMENTS),
            )
            for i in range(1, CUSTOMERS + 1)
        ],
        "part": [],
        "partsupp": [],
        "orders": [],
        "lineitem": [],
    }
    for i in range(1, PARTS + 1):
        name = " ".join(r.sample(["forest", "green", "lemon", "navy", "rose"], 3))
        size = r.choice([1, 3, 5, 9, 10, 14, 15, 15, 15, 49])
        brand, kind, container = r.choice(BRANDS), r.choice(KINDS), r.choice(CONTAINERS)
        out["part"].append(
            (i, name, f"Manufacturer#{i % 5 + 1}", brand, kind, size, container, money(90000, 200000), "part")
        )
        for s in r.sample(range(1, SUPPLIERS + 1), 4):
            out["partsupp"].append((i, s, r.randint(1, 300), money(100, 100000), r.choice(COMMENTS)))
    offers = out["partsupp"]
    for key in range(1, ORDERS + 1):
        ordered, total, flags = day(datetime.date(1992, 1, 1), datetime.date(1998, 8, 2)), Decimal(0), []
        for line in range(1, r.randint(1, 9) + 1):
            part, supplier = r.choice(offers)[:2]
            quantity = Decimal(r.randint(1, 50)).quantize(Decimal("1.00"))
            price = money(90000, 200000) * int(quantity)
            shipped = ordered + datetime.timedelta(r.randint(1, 121))
            committed = ordered + datetime.timedelta(r.randint(60, 150))
            received = shipped + datetime.timedelta(r.randint(1, 30))
            flag = r.choice("RA") if received <= datetime.date(1995, 6, 17) else "N"
            status = "F" if shipped <= datetime.date(1995, 6, 17) else "O"
            amounts = (quantity, price, money(0, 10), money(0, 8))
            how = (r.choice(["DELIVER IN PERSON", "COLLECT COD"]), r.choice(["AIR", "AIR REG", "MAIL", "SHIP", "RAIL"]))
            row = (
                key,
                part,
                supplier,
                line,
                *amounts,
                flag,
                status,
                shipped,
                committed,
                received,
                *how,
                r.choice(COMMENTS),
            )
            out["lineitem"].append(row)
            total, flags = total + price, [*flags, status]
        customer = r.choice([c for c in range(1, CUSTOMERS + 1) if c % 3])  # a third never orders
        status = flags[0] if len(set(flags)) == 1 else "P"
        priority = r.choice(["1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"])
        out["orders"].append(
            (key, customer, status, total, ordered, priority, f"Clerk#{key % 7}", 0, r.choice(COMMENTS))
        )
    return out


def write(folder: pathlib.Path, seed: int = 1) -> dict[str, pathlib.Path]:
    """Write the tables as Parquet files of several row groups; gives their paths."""
    paths = {}
    for name, data in rows(seed).items():
        fields = [f.partition(":") for f in SCHEMAS[name].split()]
        schema = pa.schema([pa.field(column, TYPES[kind], nullable=False) for column, _, kind in fields])
        columns = [pa.array(values, field.type) for values, field in zip(zip(*data, strict=True), schema, strict=True)]
        paths[name] = folder / f"{name}.parquet"
        pq.write_table(pa.Table.from_arrays(columns, schema=schema), paths[name], row_group_size=1000)
    return paths
