package prop

// lists are functions of lists, structs and JSON over values of a row and of groups.
var lists = append(crossed("SELECT k, {0} FROM t", []string{
	"[v, 1, NULL, 3][v:]", "[1, 2, 3, 4][v:1:-1]", "[v, 2] && [2, 3]", "[1, 2] <@ [v, 1, 2]", "array_pop_back([v, 1])", "array_prepend(v, [v])",
	"struct_update({'a': v, 'b': k}, a := x)", "json_merge_patch(to_json({'a': v, 'b': b}), '{\"a\": null}')", "json_set(to_json([v]), '$[0]', to_json(k))",
}),
	"SELECT k, json_group_array(v ORDER BY v) FROM t GROUP BY k", "SELECT b, json_group_object(k, v ORDER BY k, v) FROM t WHERE k IS NOT NULL GROUP BY b",
	"SELECT k, list_sort(list(v))[2:1:-1] AS l FROM t GROUP BY k", "SELECT count(*), array_to_string([v], '-') AS s FROM t GROUP BY s",
)
