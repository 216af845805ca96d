-- One statement for each construct of the dialect.

-- name: cte
WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a) SELECT x FROM b;

-- name: recursive_cte
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM t WHERE n < 5) SELECT * FROM t;

-- name: window_rows
SELECT sum(x) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t;

-- name: window_range_interval
SELECT sum(x) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '5 seconds' PRECEDING AND CURRENT ROW) FROM t;

-- name: filter_clause
SELECT count(*) FILTER (WHERE x > 1) FROM t;

-- name: cast_colons
SELECT x::bigint, '1'::int FROM t;

-- name: interval_str
SELECT ts + INTERVAL '5 seconds' FROM t;

-- name: interval_unit
SELECT ts + INTERVAL 5 SECOND FROM t;

-- name: full_join
SELECT * FROM a FULL JOIN b ON a.k = b.k;

-- name: full_join_using
SELECT * FROM a FULL OUTER JOIN b USING (k);

-- name: lateral
SELECT * FROM a, LATERAL (SELECT * FROM b WHERE b.k = a.k) s;

-- name: grouping_sets
SELECT a, b, sum(c) FROM t GROUP BY GROUPING SETS ((a,b),(a),());

-- name: qualify
SELECT * FROM t QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts) = 1;

-- name: create_table_with
CREATE TABLE t (id bigint, ts timestamp) WITH (connector='kafka', topic='x');

-- name: create_table_with_quoted
CREATE TABLE t (id bigint) WITH ('connector'='kafka', 'topic'='x');

-- name: subquery_in_exists
SELECT * FROM t WHERE x IN (SELECT y FROM u) AND EXISTS (SELECT 1 FROM v WHERE v.k=t.k);

-- name: extract
SELECT EXTRACT(year FROM ts) FROM t;

-- name: ilike
SELECT * FROM t WHERE a LIKE 'x%' OR b ILIKE '%y';

-- name: array_access
SELECT a[1], a[1:2] FROM t;

-- name: array_literal_brackets
SELECT [1,2,3];

-- name: struct_literal
SELECT {'a': 1, 'b': 2};

-- name: struct_access
SELECT (s).a, s.a.b FROM t;

-- name: star_exclude
SELECT * EXCLUDE (a, b) FROM t;

-- name: star_replace
SELECT * REPLACE (a+1 AS a) FROM t;

-- name: lambda_arrow
SELECT list_transform(l, x -> x + 1) FROM t;

-- name: group_by_all
SELECT a, sum(b) FROM t GROUP BY ALL;

-- name: asof_join
SELECT * FROM a ASOF JOIN b ON a.k=b.k AND a.ts >= b.ts;

-- name: distinct_on
SELECT DISTINCT ON (k) * FROM t ORDER BY k, ts DESC;

-- name: values
SELECT * FROM (VALUES (1,'a'),(2,'b')) v(x,y);

-- name: from_first
FROM t SELECT a;

-- name: from_s3
SELECT * FROM 's3://bucket/*.parquet';

-- name: create_stream
CREATE STREAM s (id bigint, ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') WITH (connector='kafka');

-- name: create_mv
CREATE MATERIALIZED VIEW v AS SELECT k, count(*) FROM t GROUP BY k;

-- name: tumble_groupby
SELECT k, count(*) FROM t GROUP BY k, TUMBLE(ts, INTERVAL '1 minute');

-- name: tumble_tvf
SELECT * FROM TUMBLE(t, ts, INTERVAL '1 minute');

-- name: tumble_tvf_std
SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1 minute'));

-- name: emit_watermark
SELECT k, count(*) FROM t GROUP BY k EMIT ON WATERMARK;

-- name: emit_every
SELECT k, count(*) FROM t GROUP BY k EMIT EVERY '5 seconds';

-- name: match_recognize
SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.x AS ax ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+ C?) DEFINE B AS B.x > A.x) m;

-- name: as_of_system_time
SELECT * FROM t AS OF SYSTEM TIME '2024-01-01';

-- name: for_system_time
SELECT * FROM o JOIN r FOR SYSTEM_TIME AS OF o.ts ON o.k=r.k;

-- name: insert_select
INSERT INTO s SELECT * FROM t;

-- name: merge
MERGE INTO t USING u ON t.k=u.k WHEN MATCHED THEN UPDATE SET v=u.v WHEN NOT MATCHED THEN INSERT (k,v) VALUES (u.k,u.v);

-- name: copy
COPY (SELECT 1) TO 's3://b/x.parquet' (FORMAT parquet);

-- name: dollar_param
SELECT $1 + 1;

-- name: quoted_ident
SELECT "a b" FROM "T";

-- name: explain
EXPLAIN ANALYZE SELECT 1;

-- name: count_distinct
SELECT count(DISTINCT x), string_agg(x, ',' ORDER BY y) FROM t;
