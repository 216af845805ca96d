package prop

// lambdas applies lambdas to lists made of the columns, of one row and of groups, with captured columns.
var lambdas = append(crossed("SELECT k, {0} FROM t", []string{
	"list_transform([v, 1, NULL], lambda x: x + v)", "list_transform([v, v + 1], lambda x, i: x * i + length(k))", "list_filter([v, 1, NULL, 3], lambda x: x > 0 OR b)",
	"list_reduce([v, 2, 5], lambda a, x: a + coalesce(x, 0), length(k))", "[y * 2 FOR y IN [v, 1, 2] IF y > v OR v IS NULL]",
	"list_transform([[v], [], NULL, [1, v]], lambda x: list_transform(x, lambda y: y + len(x) + v))",
}),
	"SELECT list_transform(list_sort(list(v)), lambda x: x % 2) AS l, k FROM t GROUP BY k",
	"SELECT k FROM t WHERE len(list_filter([v, 0, 1], lambda x: x >= v)) > 1",
	"SELECT list_filter([v, 1], lambda x: x > 0) AS l, count(*) FROM t GROUP BY ALL",
	"SELECT k, list_transform([1, 2], lambda x: x + s) FROM (SELECT k, sum(v) AS s FROM t GROUP BY k)",
	"SELECT k, sum(list_sum(list_transform([v, 2], lambda x: x * 3))) FROM t GROUP BY k HAVING list_reduce([count(*), 1], lambda a, x: a + x) > 2",
)
