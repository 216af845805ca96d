-- The rest of the grammar, a few forms to a statement.

-- name: numbers
SELECT 1_000, 0x1F, 0b101, 0o17, 1e5, 1.5E-3, .5, 1., 99999999999999999999999999999999999999, -9223372036854775808;

-- name: strings
SELECT 'it''s', E'a\n\'\x41\u00e9\\', $$dollar 'quoted'$$, $tag$ $$ $tag$, x'00fF', '', '多';

-- name: names
SELECT "a""b", "select", größe, t."order".x, filter, over, "left", "2x" FROM "T" AS "x y", "a b".c.d;

-- name: comments
SELECT 1 -- to the end
 /* nested /* comment */ here */ + 2;

-- name: precedence
SELECT NOT a = b AND c OR d, a + b * c ^ d, (a + b) * c, -2 ^ 2, -x::INT, - -1, +x, ~a || b, a - (b - c), a || b + c,
 a = b IS NULL, NOT a IS NULL, NOT (a AND b), a ->> 'k' = 'v', a / b // c % d ** e, a << 1 | b & c >> 2, (a = b) = c, @x;

-- name: operators
SELECT a == b, a != b, a ~ b, a !~ b, a ~~ b, a !~~ b, a ~~* b, a !~~* b, a ~~~ b, a @> b, a <@ b, a && b, a ^@ b, a -> 'x';

-- name: predicates
SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b, a ISNULL, a NOTNULL, a IS NOT TRUE, a IS FALSE, a IS UNKNOWN,
 a BETWEEN 1 AND 2 AND c, a NOT BETWEEN SYMMETRIC 2 AND 1, a IN (1, 2,), a NOT IN (SELECT 1), a IN [1, 2], a IN l,
 a LIKE 'x' ESCAPE '$', a NOT ILIKE b, a SIMILAR TO 'x', a NOT GLOB 'x*', a = ANY (SELECT 1), a <> ALL ([1, 2]), (a, b) IN (VALUES (1, 2)),
 EXISTS (SELECT 1), NOT EXISTS (FROM t);

-- name: typed_literals
SELECT DATE '2024-01-01', TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP WITH TIME ZONE '2024-01-01', TIME '10:00', TIMESTAMPTZ 'x', UUID 'y', INTEGER '5',
 INTERVAL '1 month 2 days', INTERVAL '1' DAY, INTERVAL 5 SECONDS, INTERVAL (a + 1) HOUR;

-- name: types
SELECT a::DECIMAL(10, 2), a::VARCHAR(5), a::INTEGER[], a::INT[3][], a::STRUCT(a INT, b TEXT[]), a::MAP(VARCHAR, INT), a::TIMESTAMP WITH TIME ZONE,
 a::TIMESTAMP_S, a::DOUBLE PRECISION, a::CHARACTER VARYING(3), a::HUGEINT, a::INT ARRAY, a::ROW(x INT), TRY_CAST(a AS UUID), CAST(a AS INTERVAL), a::"my type";

-- name: special_calls
SELECT position('a' IN b), position(a, b), substring(a FROM 1 FOR 2), substring(a FROM 2), substring(a FOR 3), substring(a, 1, 2), trim(a), trim(BOTH 'x' FROM a),
 trim(LEADING FROM a), trim(TRAILING 'x' FROM a), overlay(a PLACING b FROM 1 FOR 2), extract('hour' FROM a), current_date, current_timestamp, now(),
 a AT TIME ZONE 'UTC', a COLLATE nocase, left(a, 1), right(a, 2), coalesce(a, b), grouping(a);

-- name: calls
SELECT count(), count(*), count(* EXCLUDE (a)), sum(DISTINCT a), f(a := 1, b => 2), string_agg(x, ',' ORDER BY y DESC NULLS LAST), quantile_cont(0.5) WITHIN GROUP (ORDER BY x),
 count(*) FILTER (x > 1), first(x IGNORE NULLS) OVER (), last(x) RESPECT NULLS OVER w, s.f(x), [1, 2].list_sum(), COLUMNS('a.*'), min(COLUMNS(*)), COLUMNS(c -> c LIKE 'a%')
 FROM t WINDOW w AS (PARTITION BY a ORDER BY b), v AS (w ROWS 2 PRECEDING);

-- name: frames
SELECT sum(x) OVER (ORDER BY a ROWS UNBOUNDED PRECEDING), sum(x) OVER (ORDER BY a RANGE BETWEEN INTERVAL 5 DAY PRECEDING AND n FOLLOWING EXCLUDE TIES),
 sum(x) OVER (w GROUPS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW), sum(x) OVER (ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE NO OTHERS) FROM t;

-- name: lambdas
SELECT list_transform(l, lambda x: x + 1), list_reduce(l, (x, y) -> x + y), list_filter(l, lambda x, i: x > i), [x * 2 FOR x IN l IF x > 1], [x FOR x IN l], f(j -> 'a', (j -> 'b') = 'c');

-- name: nested_values
SELECT [], [1, [2],], {'a': {b: 1}, "c d": 2}, MAP {'k': 1, 'l': 2}, MAP {}, ARRAY[1], ARRAY(SELECT 1), ROW(1), (1, 2), row(a, b).x,
 a[1:2:3], a[:2], a[1:], a[:], a[-1], a[1:-:2], (a).b.c, f(x).y[1].z, (SELECT 1).x, {'a': 1}.a, (1).x;

-- name: case
SELECT CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' ELSE 'z' END, CASE WHEN a THEN b END AS end;

-- name: params
SELECT ?, ?, $3, $name;

-- name: stars
SELECT *, t.*, * EXCLUDE a, t.* REPLACE (a + 1 AS a), * RENAME (a AS b, t.c AS d), * EXCLUDE (t.a) REPLACE (1 AS x) RENAME (y AS z), FROM t;

-- name: aliases
SELECT a AS b, a b, a AS "B c", a AS select, a AS 'text', x: a + 1 FROM t u, v AS w(a, b), (SELECT 1) AS s(q);

-- name: set_operations
SELECT 1 UNION SELECT 2 EXCEPT SELECT 3 INTERSECT SELECT 4 UNION ALL BY NAME (SELECT 5 ORDER BY 1 LIMIT 1) ORDER BY 1;
(SELECT 1 UNION SELECT 2) INTERSECT (SELECT 3 UNION SELECT 4);
SELECT 1 UNION (SELECT 2 UNION SELECT 3);
((SELECT 1) LIMIT 1) OFFSET 2;
SELECT ((SELECT 1) UNION (SELECT 2)), ((SELECT 3));

-- name: groupings
SELECT a FROM t GROUP BY a, (b, c), (), ROLLUP (a, (b, c)), CUBE (a, b), GROUPING SETS (a, (a, b), (), ROLLUP (c), GROUPING SETS (d)) HAVING count(*) > 1;

-- name: limits
SELECT 1 LIMIT 10 OFFSET 5;
SELECT 1 OFFSET 5 ROWS FETCH FIRST 10 ROWS ONLY;
SELECT 1 LIMIT 10%;
SELECT 1 LIMIT 10 % 3;
SELECT 1 LIMIT ALL;
SELECT 1 ORDER BY ALL DESC NULLS FIRST LIMIT (SELECT 1);

-- name: with_hints
WITH a AS MATERIALIZED (SELECT 1), b(x, y) AS NOT MATERIALIZED (VALUES (1, 2)) FROM a, b;

-- name: values_and_tables
VALUES (1, 'a'), (2, NULL);
TABLE t;
FROM t;
FROM t WHERE a;
FROM 'x.parquet' AS p SELECT p.a;
SELECT * FROM VALUES (1) AS v(x);
SELECT * FROM ((SELECT 1) UNION (SELECT 2)) t, ((SELECT 3)) u, ((a JOIN b USING (x)) CROSS JOIN c);

-- name: table_functions
SELECT * FROM read_csv('f.csv', header = true, delim := '|'), range(5) r(i), generate_series(1, 10), unnest([1, 2]) WITH ORDINALITY AS u(x, n), LATERAL f(a), s.g(1), TABLE(h(1)) k;

-- name: joins
SELECT * FROM a JOIN b ON a.x = b.x LEFT OUTER JOIN c USING (x, y) RIGHT JOIN d ON true FULL JOIN e ON e.x CROSS JOIN f NATURAL JOIN g NATURAL LEFT JOIN h
 SEMI JOIN i USING (x) ANTI JOIN j ON j.x ASOF LEFT JOIN k ON k.t <= a.t INNER JOIN (l JOIN m USING (x)) ON l.x;
SELECT * FROM a JOIN b JOIN c ON b.x = c.x ON a.x = b.x;
SELECT * FROM a LEFT JOIN LATERAL (SELECT a.x) s ON true;

-- name: versions
SELECT * FROM a LATERAL JOIN r AS OF SYSTEM TIME a.ts ON a.k = r.k;
SELECT * FROM a JOIN r FOR SYSTEM_TIME AS OF a.ts AS v ON a.k = v.k, t AT (VERSION => 3) x, t AT (TIMESTAMP => now()), t AS u FOR VERSION AS OF 7;

-- name: windows_over_tables
SELECT * FROM TABLE(HOP(DATA => TABLE t PARTITION BY (a, b), TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '5' MINUTE)) w;
SELECT * FROM SESSION((SELECT * FROM t), ts, INTERVAL '1 minute') AS s, cumulate(TABLE 'x.csv', DESCRIPTOR(ts), INTERVAL 1 HOUR, INTERVAL 1 DAY), tumble(a.b, ts, INTERVAL 1 HOUR);

-- name: emit
SELECT 1 EMIT IMMEDIATE;
SELECT a emit_time FROM t LIMIT 1 EMIT EVERY INTERVAL 5 SECOND;
INSERT INTO s SELECT * FROM t EMIT ON WATERMARK;

-- name: match_recognize
SELECT * FROM (SELECT 1) x MATCH_RECOGNIZE (PARTITION BY a, b ORDER BY ts DESC MEASURES A.x AS ax, last(B.y) AS y ALL ROWS PER MATCH AFTER MATCH SKIP TO FIRST B
 PATTERN (A (B | C D)* E{2} F{1,3}? G{,4} (H I)+? J{2,}) WITHIN INTERVAL '1' HOUR DEFINE B AS B.x > 1, C AS true);

-- name: create
CREATE OR REPLACE TEMP TABLE IF NOT EXISTS s.t (id BIGINT PRIMARY KEY, a INT NOT NULL DEFAULT 1 + 2, b TEXT UNIQUE CHECK (b <> ''), c INT GENERATED ALWAYS AS (a + 1), d AS (a),
 PRIMARY KEY (id, a), UNIQUE (b), CONSTRAINT k CHECK (a > 0)) WITH (a = 1, 'b.c' = 'x', d.e = word, f = true, g = (1, 'two', three), h = INTERVAL '5 seconds', i = -1);
CREATE TABLE t AS SELECT 1;
CREATE TABLE t (a, b) AS SELECT 1, 2;
CREATE TABLE t WITH (a = 1) AS SELECT 1;
CREATE STREAM s WITH (connector = kafka);
CREATE STREAM IF NOT EXISTS s (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);
CREATE SINK k WITH (connector = 'parquet', path = '/x');
CREATE SINK k (a INT, PRIMARY KEY (a)) WITH (x = 1);
CREATE OR REPLACE VIEW v (a, b) AS SELECT 1, 2;
CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT k FROM t EMIT IMMEDIATE;

-- name: drop
DROP TABLE t; DROP TABLE IF EXISTS s.t CASCADE; DROP VIEW v; DROP MATERIALIZED VIEW v; DROP STREAM s; DROP SINK IF EXISTS k;

-- name: change
INSERT INTO t VALUES (1, DEFAULT), (2, 3);
INSERT INTO t (a, "b c") SELECT 1, 2;
INSERT INTO t BY NAME SELECT 1 AS a RETURNING *, a + 1 AS b;
INSERT INTO t DEFAULT VALUES;
INSERT INTO t (SELECT 1);
INSERT INTO t (a) ((SELECT 1) UNION (SELECT 2));
WITH x AS (SELECT 1) INSERT INTO t FROM x;
UPDATE t SET a = 1, b = DEFAULT;
UPDATE t AS u SET a = v.a + 1 FROM v, w WHERE u.k = v.k RETURNING u.a;
DELETE FROM t;
DELETE FROM t u USING v WHERE u.k = v.k;
TRUNCATE TABLE t;
MERGE INTO t AS x USING (SELECT 1) AS y ON x.k = y.k WHEN MATCHED AND y.d THEN DELETE WHEN MATCHED THEN UPDATE WHEN NOT MATCHED BY SOURCE THEN DO NOTHING WHEN NOT MATCHED THEN INSERT *;
MERGE INTO t USING u USING (k) WHEN NOT MATCHED BY TARGET THEN INSERT VALUES (1, DEFAULT);

-- name: copy
COPY t TO 'x.csv' (FORMAT csv, HEADER, DELIMITER '|', PARTITION_BY (a, b));
COPY t (a, b) TO 'x.parquet';
COPY t (a, b) FROM 'x.csv' WITH (HEADER true);
COPY (FROM t) TO 'x.json';

-- name: explain
EXPLAIN SELECT 1; EXPLAIN (FORMAT json, MODE batch) SELECT 1; EXPLAIN ANALYZE INSERT INTO t SELECT 1; EXPLAIN (SELECT 1);

-- name: settings
SET threads = 4; SET SESSION a.b TO word; SET GLOBAL x = 'y'; SET TimeZone = 'UTC'; SET TIME ZONE 'Europe/Paris'; SET x = on; SET search_path = a, b; SET x = DEFAULT; RESET x; RESET GLOBAL x; SET local = 1;

-- name: describe
DESCRIBE SELECT 1; DESC t; DESCRIBE; SUMMARIZE t; DESCRIBE 'x.parquet'; SUMMARIZE SELECT 1;

-- name: show
SHOW TABLES; SHOW ALL TABLES; SHOW STREAMS; SHOW VIEWS; SHOW MATERIALIZED VIEWS; SHOW SINKS; SHOW FUNCTIONS; SHOW ALL; SHOW threads; SHOW TABLES FROM s; SHOW DATABASES; SHOW SCHEMAS; SHOW VARIABLES; SHOW t;

-- name: transactions
BEGIN; BEGIN TRANSACTION; COMMIT; ROLLBACK;

-- name: found_by_mutation
SELECT f(g(x) IGNORE NULLS), position((a IN b)), overlay(a PLACING b FROM x -> y), f(a := x -> y), (a -> b).f(c), x IN 2.5.f, x IN 1e3[:INTERVAL '1 day':[]];
SELECT 1 GROUP BY (a, b), ROW(a, b), ROLLUP (ROW(ROW(1))), "rollup"(a);
SELECT "interval", "INTERVAL" 'x', "trim"(a), sum(x) OVER ("rows" ROWS unbounded PRECEDING), sum(x) OVER (ORDER BY a ROWS BETWEEN (unbounded) PRECEDING AND current FOLLOWING) FROM t;

-- name: leniences
SELECT * EXCEPT a, t.* EXCEPT (b, c,), * REPLACE a + 1 AS a FROM t EXCEPT SELECT 1 EXCEPT (SELECT 2);
SELECT a FROM t GROUP BY * ORDER BY * DESC;
SELECT rank(ORDER BY a) OVER w, a ~ ANY (['x']), a ~* 'b', a !~* ALL (SELECT 'c'), (a, b) FROM (VALUES (1,), (2), ) v LEFT SEMI JOIN b USING (x,) ASOF ANTI JOIN c ON c.t > b.t;
CREATE TABLE t (a UNION(x INT, y TEXT), b INT,);

-- name: prepared
PREPARE q AS SELECT $1, :name, $other, ? FROM t WHERE a[:b] = :c LIMIT ?; PREPARE q (INT, TEXT) AS INSERT INTO t VALUES (?, ?);
EXECUTE q; EXECUTE q (1, -2, 'x'); EXECUTE q (name := 1 + 1, other => NULL); DEALLOCATE q; DEALLOCATE PREPARE q; DEALLOCATE ALL;

-- name: macros
CREATE MACRO add(a, b := 1) AS a + b; CREATE OR REPLACE TEMP FUNCTION f() AS 1; CREATE MACRO IF NOT EXISTS s.f(a INTEGER, b VARCHAR := 'x') AS (SELECT max(x) FROM t WHERE y = a);
CREATE MACRO f(a) AS a, (a, b) AS a + b; CREATE MACRO t(n) AS TABLE SELECT * FROM range(n); CREATE MACRO t(n) AS TABLE (SELECT n); CREATE MACRO t() AS TABLE (SELECT 1) UNION ALL SELECT 2;
DROP MACRO f; DROP FUNCTION IF EXISTS f; DROP MACRO TABLE t;

-- name: objects
CREATE SCHEMA s; CREATE SCHEMA IF NOT EXISTS s; DROP SCHEMA s CASCADE; USE s; USE memory.main;
CREATE SEQUENCE q; CREATE OR REPLACE TEMP SEQUENCE q INCREMENT BY -2 MINVALUE -10 MAXVALUE 10 START WITH 5 CYCLE; CREATE SEQUENCE IF NOT EXISTS q NO MINVALUE NO CYCLE; DROP SEQUENCE q;
CREATE INDEX i ON t (a); CREATE UNIQUE INDEX IF NOT EXISTS i ON s.t USING art (a, lower(b), (a + 1)); CREATE INDEX ON t (a DESC); DROP INDEX IF EXISTS i;
COMMENT ON TABLE t IS 'x'; COMMENT ON COLUMN t.a IS NULL; COMMENT ON MATERIALIZED VIEW v IS 'y';

-- name: alter
ALTER TABLE t RENAME TO u; ALTER VIEW v RENAME TO w; ALTER TABLE IF EXISTS t RENAME a TO b; ALTER TABLE t RENAME COLUMN a TO b;
ALTER TABLE t ADD COLUMN a INT DEFAULT 1; ALTER TABLE t ADD IF NOT EXISTS a INT NOT NULL; ALTER TABLE t DROP a; ALTER TABLE t DROP COLUMN IF EXISTS a CASCADE;
ALTER TABLE t ALTER a TYPE BIGINT; ALTER TABLE t ALTER COLUMN a SET DATA TYPE INT USING a + 1; ALTER TABLE t ALTER a SET DEFAULT 1; ALTER TABLE t ALTER a DROP DEFAULT;
ALTER TABLE t ALTER a SET NOT NULL; ALTER TABLE t ALTER a DROP NOT NULL; ALTER TABLE t ADD PRIMARY KEY (a); ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1);

-- name: conflicts
INSERT OR REPLACE INTO t VALUES (1); INSERT OR IGNORE INTO t BY NAME SELECT 1 AS a; INSERT INTO t AS x VALUES (1) ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (1, 2) ON CONFLICT (a, b) DO UPDATE SET b = excluded.b, c = DEFAULT WHERE t.b < 3 RETURNING a;
MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN INSERT BY NAME WHEN MATCHED THEN ERROR RETURNING *;
MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN ERROR 'x' || y WHEN MATCHED THEN UPDATE BY NAME;

-- name: pragmas
PRAGMA table_info('t'); PRAGMA enable_verification; PRAGMA threads = 4; SET VARIABLE x = 1 + 1; RESET VARIABLE x; SET VARIABLE x TO [1]; CALL range(3); CALL pragma_version();
ANALYZE; ANALYZE t (a, b); CHECKPOINT; FORCE CHECKPOINT d; VACUUM; VACUUM ANALYZE t; LOAD json; INSTALL 'x.y'; SELECT sum(a ORDER BY b ASC NULLS LAST) FROM t ORDER BY a ASC, b DESC;

-- name: statement_tables
SELECT * FROM (DESCRIBE t) AS d, (SHOW TABLES) WHERE x; FROM (SUMMARIZE SELECT 1); SHOW (SELECT 1); SHOW SELECT 1;

-- name: list_operators
SELECT a && b, a @> b, a <@ b, a <-> b, a <=> b + 1, [1, 2][3:1:-1];
