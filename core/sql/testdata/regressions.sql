-- Statements behind wrong answers that users of other engines reported.

-- name: 003-day-bucket-across-dst-end_input
CREATE TABLE ev(ts TIMESTAMPTZ);
INSERT INTO ev SELECT TIMESTAMPTZ '2000-10-28 00:00:00+00' + i * INTERVAL '30 minutes' FROM range(0, 144) t(i);

-- name: 003-day-bucket-across-dst-end_query
SELECT count(*) AS bad FROM ev WHERE time_bucket(INTERVAL '10 seconds', ts, 'Europe/London') > ts;

SELECT count(*) AS bad FROM ev WHERE ts - time_bucket(INTERVAL '10 seconds', ts, 'Europe/London') >= INTERVAL '10 seconds';

SELECT count(DISTINCT date_trunc('day', ts)) AS days, max(n) AS longest FROM (SELECT ts, count(*) OVER (PARTITION BY date_trunc('day', ts)) AS n FROM ev);

-- name: 004-month-end-and-interval-overflow_input
CREATE TABLE d(id INT, x DATE);
INSERT INTO d VALUES (1,'1997-10-31'),(2,'1996-02-29'),(3,'2023-01-31'),(4,'2024-01-31');

-- name: 004-month-end-and-interval-overflow_query
SELECT id, CAST(x + INTERVAL '1 month' AS DATE) AS y FROM d ORDER BY id;

SELECT CAST(x + INTERVAL '1 year' AS DATE) AS y FROM d WHERE id = 2;

SELECT CAST((DATE '2024-03-31' - INTERVAL '1 month') + INTERVAL '1 month' AS DATE) AS y;

SELECT CAST(TIMESTAMP '2024-01-30 23:30:00' + INTERVAL '1 month 1 day 45 minutes' AS VARCHAR) AS y;

SELECT TIMESTAMP '294246-12-10 04:00:54' + INTERVAL '1 month 1 day';

-- name: 005-sum-bigint-wraps_input
CREATE TABLE t(c BIGINT);
INSERT INTO t VALUES (2),(9223372036854775807);
CREATE TABLE z(c INT);
INSERT INTO z VALUES (0);

-- name: 005-sum-bigint-wraps_query
SELECT CAST(SUM(c) AS VARCHAR) AS s FROM t;

SELECT CAST(SUM(-1) AS VARCHAR) AS s FROM z;

SELECT CAST(SUM(c) OVER (ORDER BY c ROWS UNBOUNDED PRECEDING) AS VARCHAR) AS s FROM t ORDER BY c;

-- name: 006-sum-int128-overflow-on-merge_query
SELECT sum(v) FROM (SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)) AS v UNION ALL SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)) UNION ALL SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)));

SELECT CAST(sum(v) AS VARCHAR) FROM (VALUES (CAST('50000000000000000000000000000000000000' AS DECIMAL(38,0))),(CAST('-50000000000000000000000000000000000000' AS DECIMAL(38,0)))) t(v);

-- name: 008-round-negative-digits_query
SELECT round(CAST(-9223372036854775804 AS BIGINT), -1) AS a, round(CAST(124 AS TINYINT), -1) AS b, round(CAST(-15 AS INT), -1) AS c;

SELECT round(CAST(127 AS TINYINT), -1);

-- name: 011-nan-null-group-join_input
CREATE TABLE f(w DOUBLE, c INT);
INSERT INTO f VALUES (2.5,10),(NULL,5),('NaN',3),(NULL,2),(2.5,9),('NaN',4),(3.0,3);

-- name: 011-nan-null-group-join_query
SELECT w, sum(c) AS s, count(*) AS n FROM f GROUP BY w ORDER BY w NULLS LAST;

SELECT count(DISTINCT w) AS n, (SELECT count(*) FROM (SELECT DISTINCT w FROM f)) AS m FROM f;

SELECT count(*) AS n FROM f a JOIN f b ON a.w = b.w;

-- name: 015-row-value-not-in_input
CREATE TABLE t_a(i INT, j INT);
INSERT INTO t_a VALUES (1,1),(2,2),(3,NULL),(NULL,4);
CREATE TABLE t_b(i INT, j INT);
INSERT INTO t_b VALUES (1,1),(NULL,4);

-- name: 015-row-value-not-in_query
SELECT count(*) AS n FROM t_a WHERE (i, j) NOT IN (SELECT i, j FROM t_b);

SELECT count(*) AS n FROM t_a WHERE NOT ((i, j) NOT IN (SELECT i, j FROM t_b));

SELECT count(*) AS n FROM t_a WHERE ((i, j) NOT IN (SELECT i, j FROM t_b)) IS NULL;

SELECT (10,100) IN (SELECT NULL::INT, 6000) AS v;

-- name: 018-subquery-name-capture_input
CREATE TABLE tb1(id VARCHAR);
INSERT INTO tb1 VALUES ('1');
CREATE TABLE tb2(id_no VARCHAR);
CREATE TABLE tb3(id VARCHAR);
INSERT INTO tb3 VALUES ('1');

-- name: 018-subquery-name-capture_query
SELECT * FROM tb1 WHERE id NOT IN (SELECT id FROM tb2);

SELECT nope FROM tb1 WHERE id IN (SELECT id_no FROM tb2);

SELECT id FROM tb1, tb3;

SELECT tb1.id AS v, tb3.id AS v FROM tb1, tb3 WHERE id = '1';

-- name: 021-distinct-from-and-on-false_input
CREATE TABLE abc(a INT, b VARCHAR);
INSERT INTO abc VALUES (1,'x'),(1,'x'),(1,'0'),(2,NULL);
CREATE TABLE l(k INT);
INSERT INTO l VALUES (1),(NULL);
CREATE TABLE r(k INT);
INSERT INTO r VALUES (NULL),(3);

-- name: 021-distinct-from-and-on-false_query
SELECT x.b AS xb, y.b AS yb, count(*) AS n FROM abc x JOIN abc y ON x.a = y.a AND x.b IS DISTINCT FROM y.b GROUP BY 1, 2 ORDER BY 1;

SELECT l.k AS lk, r.k AS rk FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k;

SELECT l.k AS lk, r.k AS rk FROM l FULL JOIN r ON false;

SELECT count(*) AS n FROM l FULL JOIN r ON true;

SELECT count(*) AS n FROM l LEFT JOIN r ON NULL;

-- name: 022-left-join-is-null-rewrite_query
SELECT * FROM (VALUES (1),(2),(NULL)) AS a(x) LEFT JOIN (SELECT p.y AS y, q.z AS z FROM (VALUES (2),(3),(NULL)) AS p(y) LEFT JOIN (VALUES (1),(3),(NULL)) AS q(z) ON p.y <> q.z) AS s ON a.x <> s.y WHERE s.z IS NULL;

SELECT count(*) AS n FROM (VALUES (2)) t2(c) LEFT JOIN (VALUES (0.1)) t0(d) ON true WHERE (d < c) IS NULL;

-- name: 023-group-by-alias-vs-column_input
CREATE TABLE t(c1 INT, c2 VARCHAR);
INSERT INTO t VALUES (1,'ab'),(2,'aa'),(3,'b');

-- name: 023-group-by-alias-vs-column_query
SELECT substring(c2, 1, 1) AS c2 FROM t GROUP BY c2 ORDER BY 1;

SELECT substring(c2, 1, 1) AS p, count(*) AS n FROM t GROUP BY p ORDER BY p;

SELECT substring(c2, 1, 1) AS c2, count(*) AS n FROM t GROUP BY 1 ORDER BY 1;

SELECT -c1 AS c1 FROM t ORDER BY c1;

SELECT c1 FROM t GROUP BY 2;

-- name: 024-having-without-group-by_input
CREATE TABLE e(v INT);
CREATE TABLE n(v INT);
INSERT INTO n VALUES (NULL),(NULL);

-- name: 024-having-without-group-by_query
SELECT count(*) AS c, sum(v) AS s, max(v) AS m, avg(v) AS a FROM e HAVING count(*) = 0;

SELECT count(*) AS c FROM e HAVING count(*) > 0;

SELECT v, count(*) AS c FROM e GROUP BY v;

SELECT v, count(*) AS c FROM e GROUP BY ROLLUP (v);

SELECT count(*) AS c, count(v) AS cv, sum(v) AS s, count(DISTINCT v) AS d, bool_and(v > 0) AS b FROM n HAVING sum(v) IS NULL;

SELECT 1 AS one FROM n HAVING true;

-- name: 025-limit-ties-and-offset_input
CREATE TABLE s(id INT, p INT);
INSERT INTO s VALUES (1,10),(2,10),(3,9),(4,9),(5,8),(6,NULL);

-- name: 025-limit-ties-and-offset_query
SELECT id FROM s ORDER BY p DESC NULLS LAST, id LIMIT 3;

SELECT id FROM (SELECT id, rank() OVER (ORDER BY p DESC NULLS LAST) AS r FROM s) WHERE r <= 3 ORDER BY id;

SELECT id FROM (SELECT id, dense_rank() OVER (ORDER BY p DESC NULLS LAST) AS r FROM s) WHERE r <= 2 ORDER BY id;

SELECT p FROM s ORDER BY p DESC NULLS LAST LIMIT 3;

SELECT id FROM s ORDER BY p DESC NULLS FIRST, id LIMIT 1;

SELECT id FROM s ORDER BY id LIMIT 5 OFFSET 10;

SELECT id FROM s LIMIT 0;

-- name: 027-json-keys-and-surrogates_query
SELECT json_extract_string('{"Status / SubStatus": "test"}', '$."Status / SubStatus"') AS v;

SELECT json_extract_string('{"a.b":1,"a":{"b":2}}', '$."a.b"') AS v, json_extract_string('{"a.b":1,"a":{"b":2}}', '$.a.b') AS w;

SELECT json_extract_string('["\ud83d\ude00"]', '$[0]') AS v, length(json_extract_string('["\ud83d\ude00"]', '$[0]')) AS n;

SELECT json_extract_string('["a\ud800b"]', '$[0]');

SELECT "größe", "Größe" IS NOT NULL AS same FROM (SELECT 5 AS "größe") t;

SELECT "a""b" AS v FROM (SELECT 7 AS "a""b") t;

-- name: 028-csv-quote-after-sample_query
SELECT name, qty FROM read_csv('input.csv', header=true, quote='"', escape='"') WHERE name NOT LIKE 'n%' ORDER BY qty;

SELECT count(*) AS n, sum(qty) AS s FROM read_csv('input.csv', header=true, quote='"', escape='"');

SELECT count(*) AS n FROM read_csv('input.csv');

-- name: 033-iceberg-field-ids_query
SELECT id, new_name, value, extra, grade FROM t ORDER BY id;
SELECT * FROM t FOR VERSION AS OF 'snapshot_before_evolution' ORDER BY id;

-- name: 034-iceberg-delete-files-pairing_query
SELECT id, v FROM t ORDER BY id;

-- name: 036-sliced-arrow-offsets_query
SELECT * FROM t;

-- name: 039-deep-expressions-and-long-in_input
CREATE TABLE t AS SELECT i FROM range(0, 100000, 3) r(i);

-- name: 040-redos-patterns_input
CREATE TABLE s(id INT, v VARCHAR);
INSERT INTO s VALUES (1, repeat('a', 50000) || '!'), (2, repeat('a', 30)), (3, repeat('ab', 20000) || 'Y');

-- name: 040-redos-patterns_query
SELECT id, regexp_matches(v, '^(a+)+$') AS m FROM s ORDER BY id;

SELECT id, regexp_matches(v, '^(a|a)*$') AS m FROM s ORDER BY id;

SELECT id FROM s WHERE v LIKE '%_%_%_%_%_%_%_%_%_%_%_%_%_%_Z';

SELECT id FROM s WHERE v LIKE '%a%b%a%b%a%b%a%b%a%b%a%b%Y' ORDER BY id;

SELECT regexp_matches('x', '((((((x{1,30}){1,30}){1,30}){1,30}){1,30}){1,30})');

-- name: 042-left-join-null-keys-retract_input
CREATE TABLE o(id INT, cust INT);
CREATE TABLE c(cust INT, name VARCHAR);

-- name: 042-left-join-null-keys-retract_query
SELECT o.id, c.name FROM o LEFT JOIN c ON o.cust = c.cust EMIT IMMEDIATE;

-- name: 046-not-in-null-arrives-and-leaves_input
CREATE TABLE a(c VARCHAR);
CREATE TABLE b(c VARCHAR);

-- name: 046-not-in-null-arrives-and-leaves_query
SELECT c FROM a WHERE c NOT IN (SELECT c FROM b) EMIT IMMEDIATE;

-- name: 047-topn-retract-fallen-row_input
CREATE TABLE s(cat VARCHAR, item VARCHAR, score INT);

-- name: 047-topn-retract-fallen-row_query
SELECT cat, item, score, rn FROM (SELECT *, row_number() OVER (PARTITION BY cat ORDER BY score DESC, item) AS rn FROM s) WHERE rn <= 2 EMIT IMMEDIATE;

-- name: 049-changing-key-upsert-sink_input
CREATE TABLE t(ts INT);

-- name: 049-changing-key-upsert-sink_query
INSERT INTO sink (key_ts, v) SELECT max(ts), 114514 FROM t EMIT IMMEDIATE;

-- name: 050-session-merge-by-late-bridge_input
CREATE TABLE ev(k VARCHAR, ts TIMESTAMP, v INT);

-- name: 050-session-merge-by-late-bridge_query
SELECT k, SESSION_START(ts, INTERVAL '10 seconds') AS ws, SESSION_END(ts, INTERVAL '10 seconds') AS we, sum(v) AS s, count(*) AS n FROM ev GROUP BY k, SESSION(ts, INTERVAL '10 seconds') EMIT IMMEDIATE;

-- name: 051-late-events-tumble_input
CREATE TABLE ev(ts TIMESTAMP, v INT);

-- name: 051-late-events-tumble_query
SELECT TUMBLE_START(ts, INTERVAL '10 seconds') AS ws, TUMBLE_END(ts, INTERVAL '10 seconds') AS we, sum(v) AS s FROM ev GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK;

-- name: 052-hop-late-row_input
CREATE TABLE ev(ts TIMESTAMP, v INT);

-- name: 052-hop-late-row_query
SELECT HOP_START(ts, INTERVAL '2 seconds', INTERVAL '4 seconds') AS ws, sum(v) AS s FROM ev GROUP BY HOP(ts, INTERVAL '2 seconds', INTERVAL '4 seconds') EMIT ON WATERMARK;

-- name: 053-windows-before-epoch_input
CREATE TABLE ev(id INT, ts TIMESTAMP);

-- name: 053-windows-before-epoch_query
SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS ws, count(*) AS n, min(id) AS lo FROM ev GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT IMMEDIATE;

-- name: 056-kafka-tombstones-and-null-keys_query
SELECT k, v FROM t ORDER BY k;
SELECT v IS NULL AS isnull, count(*) AS n FROM t GROUP BY 1 ORDER BY 1;
SELECT count(*) AS n, count(v) AS nv FROM s;

-- name: 059-kafka-headers-and-duplicates-timestamps_query
SELECT _partition, _offset, _timestamp, json_extract_string(_key, '$.k2') AS g, f, len(_headers) AS nh, _headers[1].key AS h1 FROM s ORDER BY _partition, _offset;

-- name: 060-avro-reader-writer-schema_query
SELECT f2, f1, extra, h FROM s;

-- name: 061-pg-toast-unchanged_query
SELECT id, title, body FROM doc ORDER BY id;

-- name: 065-restore-changed-parallelism_query
SELECT k, TUMBLE_START(ts, INTERVAL '20 seconds') AS ws, sum(v) AS s, count(*) AS n FROM s GROUP BY k, TUMBLE(ts, INTERVAL '20 seconds') EMIT ON WATERMARK;

-- name: 066-restore-timers-and-changed-query_query
SELECT k, sum(v) AS s FROM src GROUP BY k, TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK;
