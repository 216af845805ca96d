-- 004_plus_month: d(id INT, x DATE)
SELECT id, CAST(x + INTERVAL '1 month' AS DATE) AS y FROM d ORDER BY id;

-- 004_plus_year: d(id INT, x DATE)
SELECT CAST(x + INTERVAL '1 year' AS DATE) AS y FROM d WHERE id = 2;

-- 004_minus_then_plus: d(id INT, x DATE)
SELECT CAST((DATE '2024-03-31' - INTERVAL '1 month') + INTERVAL '1 month' AS DATE) AS y;

-- 004_mixed: d(id INT, x DATE)
SELECT CAST(TIMESTAMP '2024-01-30 23:30:00' + INTERVAL '1 month 1 day 45 minutes' AS VARCHAR) AS y;

-- 004_too_far: d(id INT, x DATE)
SELECT TIMESTAMP '294246-12-10 04:00:54' + INTERVAL '1 month 1 day';

-- 005_sum: t(c BIGINT); z(c INT)
SELECT CAST(SUM(c) AS VARCHAR) AS s FROM t;

-- 005_neg_const: t(c BIGINT); z(c INT)
SELECT CAST(SUM(-1) AS VARCHAR) AS s FROM z;

-- 005_window: t(c BIGINT); z(c INT)
SELECT CAST(SUM(c) OVER (ORDER BY c ROWS UNBOUNDED PRECEDING) AS VARCHAR) AS s FROM t ORDER BY c;

-- 006_sum: 
SELECT sum(v) FROM (SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)) AS v UNION ALL SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)) UNION ALL SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0)));

-- 006_cancel: 
SELECT CAST(sum(v) AS VARCHAR) FROM (VALUES (CAST('50000000000000000000000000000000000000' AS DECIMAL(38,0))),(CAST('-50000000000000000000000000000000000000' AS DECIMAL(38,0)))) t(v);

-- 011_group: f(w DOUBLE, c INT)
SELECT w, sum(c) AS s, count(*) AS n FROM f GROUP BY w ORDER BY w NULLS LAST;

-- 011_distinct: f(w DOUBLE, c INT)
SELECT count(DISTINCT w) AS n, (SELECT count(*) FROM (SELECT DISTINCT w FROM f)) AS m FROM f;

-- 011_join: f(w DOUBLE, c INT)
SELECT count(*) AS n FROM f a JOIN f b ON a.w = b.w;

-- 015_is_true: t_a(i INT, j INT); t_b(i INT, j INT)
SELECT count(*) AS n FROM t_a WHERE (i, j) NOT IN (SELECT i, j FROM t_b);

-- 015_is_false: t_a(i INT, j INT); t_b(i INT, j INT)
SELECT count(*) AS n FROM t_a WHERE NOT ((i, j) NOT IN (SELECT i, j FROM t_b));

-- 015_is_null: t_a(i INT, j INT); t_b(i INT, j INT)
SELECT count(*) AS n FROM t_a WHERE ((i, j) NOT IN (SELECT i, j FROM t_b)) IS NULL;

-- 015_rowcmp: t_a(i INT, j INT); t_b(i INT, j INT)
SELECT (10,100) IN (SELECT NULL::INT, 6000) AS v;

-- 018_empty_inner: tb1(id VARCHAR); tb2(id_no VARCHAR); tb3(id VARCHAR)
SELECT * FROM tb1 WHERE id NOT IN (SELECT id FROM tb2);

-- 018_unknown: tb1(id VARCHAR); tb2(id_no VARCHAR); tb3(id VARCHAR)
SELECT nope FROM tb1 WHERE id IN (SELECT id_no FROM tb2);

-- 018_ambiguous: tb1(id VARCHAR); tb2(id_no VARCHAR); tb3(id VARCHAR)
SELECT id FROM tb1, tb3;

-- 018_ambiguous_order: tb1(id VARCHAR); tb2(id_no VARCHAR); tb3(id VARCHAR)
SELECT tb1.id AS v, tb3.id AS v FROM tb1, tb3 WHERE id = '1';

-- 021_distinct: abc(a INT, b VARCHAR); l(k INT); r(k INT)
SELECT x.b AS xb, y.b AS yb, count(*) AS n FROM abc x JOIN abc y ON x.a = y.a AND x.b IS DISTINCT FROM y.b GROUP BY 1, 2 ORDER BY 1;

-- 021_not_distinct: abc(a INT, b VARCHAR); l(k INT); r(k INT)
SELECT l.k AS lk, r.k AS rk FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k;

-- 021_on_false: abc(a INT, b VARCHAR); l(k INT); r(k INT)
SELECT l.k AS lk, r.k AS rk FROM l FULL JOIN r ON false;

-- 021_on_true: abc(a INT, b VARCHAR); l(k INT); r(k INT)
SELECT count(*) AS n FROM l FULL JOIN r ON true;

-- 021_on_null: abc(a INT, b VARCHAR); l(k INT); r(k INT)
SELECT count(*) AS n FROM l LEFT JOIN r ON NULL;

-- 022_nested: 
SELECT * FROM (VALUES (1),(2),(NULL)) AS a(x) LEFT JOIN (SELECT p.y AS y, q.z AS z FROM (VALUES (2),(3),(NULL)) AS p(y) LEFT JOIN (VALUES (1),(3),(NULL)) AS q(z) ON p.y <> q.z) AS s ON a.x <> s.y WHERE s.z IS NULL;

-- 022_expr: 
SELECT count(*) AS n FROM (VALUES (2)) t2(c) LEFT JOIN (VALUES (0.1)) t0(d) ON true WHERE (d < c) IS NULL;

-- 023_column_wins: t(c1 INT, c2 VARCHAR)
SELECT substring(c2, 1, 1) AS c2 FROM t GROUP BY c2 ORDER BY 1;

-- 023_alias_ok: t(c1 INT, c2 VARCHAR)
SELECT substring(c2, 1, 1) AS p, count(*) AS n FROM t GROUP BY p ORDER BY p;

-- 023_ordinal: t(c1 INT, c2 VARCHAR)
SELECT substring(c2, 1, 1) AS c2, count(*) AS n FROM t GROUP BY 1 ORDER BY 1;

-- 023_order_alias: t(c1 INT, c2 VARCHAR)
SELECT -c1 AS c1 FROM t ORDER BY c1;

-- 023_bad_ordinal: t(c1 INT, c2 VARCHAR)
SELECT c1 FROM t GROUP BY 2;

-- 024_empty_true: e(v INT); n(v INT)
SELECT count(*) AS c, sum(v) AS s, max(v) AS m, avg(v) AS a FROM e HAVING count(*) = 0;

-- 024_empty_false: e(v INT); n(v INT)
SELECT count(*) AS c FROM e HAVING count(*) > 0;

-- 024_empty_grouped: e(v INT); n(v INT)
SELECT v, count(*) AS c FROM e GROUP BY v;

-- 024_empty_rollup: e(v INT); n(v INT)
SELECT v, count(*) AS c FROM e GROUP BY ROLLUP (v);

-- 024_all_null: e(v INT); n(v INT)
SELECT count(*) AS c, count(v) AS cv, sum(v) AS s, count(DISTINCT v) AS d, bool_and(v > 0) AS b FROM n HAVING sum(v) IS NULL;

-- 024_const_having: e(v INT); n(v INT)
SELECT 1 AS one FROM n HAVING true;

-- 025_total: s(id INT, p INT)
SELECT id FROM s ORDER BY p DESC NULLS LAST, id LIMIT 3;

-- 025_ties: s(id INT, p INT)
SELECT id FROM (SELECT id, rank() OVER (ORDER BY p DESC NULLS LAST) AS r FROM s) WHERE r <= 3 ORDER BY id;

-- 025_dense: s(id INT, p INT)
SELECT id FROM (SELECT id, dense_rank() OVER (ORDER BY p DESC NULLS LAST) AS r FROM s) WHERE r <= 2 ORDER BY id;

-- 025_cut_values: s(id INT, p INT)
SELECT p FROM s ORDER BY p DESC NULLS LAST LIMIT 3;

-- 025_nulls_first_default: s(id INT, p INT)
SELECT id FROM s ORDER BY p DESC NULLS FIRST, id LIMIT 1;

-- 025_offset_past: s(id INT, p INT)
SELECT id FROM s ORDER BY id LIMIT 5 OFFSET 10;

-- 025_limit0: s(id INT, p INT)
SELECT id FROM s LIMIT 0;

-- 042_query: o(id INT, cust INT); c(cust INT, name VARCHAR)
SELECT o.id, c.name FROM o LEFT JOIN c ON o.cust = c.cust EMIT IMMEDIATE;

-- 046_query: a(c VARCHAR); b(c VARCHAR)
SELECT c FROM a WHERE c NOT IN (SELECT c FROM b) EMIT IMMEDIATE;

-- 047_query: s(cat VARCHAR, item VARCHAR, score INT)
SELECT cat, item, score, rn FROM (SELECT *, row_number() OVER (PARTITION BY cat ORDER BY score DESC, item) AS rn FROM s) WHERE rn <= 2 EMIT IMMEDIATE;

-- 050_query: ev(k VARCHAR, ts TIMESTAMP, v INT)
SELECT k, SESSION_START(ts, INTERVAL '10 seconds') AS ws, SESSION_END(ts, INTERVAL '10 seconds') AS we, sum(v) AS s, count(*) AS n FROM ev GROUP BY k, SESSION(ts, INTERVAL '10 seconds') EMIT IMMEDIATE;

-- 051_query: ev(ts TIMESTAMP, v INT)
SELECT TUMBLE_START(ts, INTERVAL '10 seconds') AS ws, TUMBLE_END(ts, INTERVAL '10 seconds') AS we, sum(v) AS s FROM ev GROUP BY TUMBLE(ts, INTERVAL '10 seconds') EMIT ON WATERMARK;

-- 052_query: ev(ts TIMESTAMP, v INT)
SELECT HOP_START(ts, INTERVAL '2 seconds', INTERVAL '4 seconds') AS ws, sum(v) AS s FROM ev GROUP BY HOP(ts, INTERVAL '2 seconds', INTERVAL '4 seconds') EMIT ON WATERMARK;

-- 053_query: ev(id INT, ts TIMESTAMP)
SELECT TUMBLE_START(ts, INTERVAL '1 minute') AS ws, count(*) AS n, min(id) AS lo FROM ev GROUP BY TUMBLE(ts, INTERVAL '1 minute') EMIT IMMEDIATE;
