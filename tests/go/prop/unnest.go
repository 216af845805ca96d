package prop

// unnests makes rows of lists of the columns, in the select list, in GROUP BY and in FROM, of one row and of groups.
var unnests = []string{
	"SELECT k, unnest([v, 1, NULL]) AS i FROM t", "SELECT unnest([v, 2]), unnest([x]), k FROM t", "SELECT unnest([k, NULL, 'a']) AS i, count(*), sum(v) FROM t GROUP BY i",
	"SELECT k, unnest(list(v ORDER BY v, x, b)) FROM t GROUP BY k", "SELECT DISTINCT unnest([v, v + 1]) FROM t", "SELECT unnest([[v], [], NULL, [1, v]], recursive := true), b FROM t",
	"SELECT unnest({'a': k, 'b': {'c': v}}, recursive := true) FROM t", "SELECT k, i FROM t, unnest([v, 1]) AS u(i)", "SELECT k, i, o FROM t LEFT JOIN unnest(CASE WHEN b THEN [v, 3] END) WITH ORDINALITY AS u(i, o) ON true",
	"SELECT k, i FROM t LEFT JOIN unnest([v, 2]) AS u(i) ON i > 1", "SELECT k, r FROM t, range(v % 3, 4) AS g(r)", "SELECT b, count(*), sum(r) FROM t, generate_series(length(k), 3) AS g(r) GROUP BY b",
	"SELECT k, (SELECT sum(i) FROM unnest([t.v, 1, NULL]) AS u(i)) FROM t", "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM unnest([t.k, 'b']) AS u(i) WHERE i > 'a')",
	"SELECT k, i FROM t, unnest([v, try_cast(x AS BIGINT) % 5]) AS u(i) ORDER BY i, k LIMIT 3", "SELECT unnest([v, 5]) AS i, k FROM t ORDER BY i DESC, k LIMIT 2",
	"SELECT (k, v) AS r, count(*) FROM t GROUP BY r", "SELECT max(r) FROM (SELECT row(v, k) AS r FROM t)", "SELECT k FROM t WHERE (v, k) < (2, 'b')",
	"SELECT k, ARRAY(SELECT v FROM u WHERE u.k = t.k ORDER BY v, x, b) FROM t",
}
