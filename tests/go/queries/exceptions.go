package queries

import "regexp"

// exception is a difference from DuckDB that stands, with its reason.
type exception struct {
	query, problem *regexp.Regexp
	why            string
}

var exceptions = []exception{
	{regexp.MustCompile(`( //| %) [^n]`), regexp.MustCompile(`(?i)^DuckDB (fails|does not fail): .*division by zero`),
		"which rows reach a division is for the optimizer to choose: a condition beside it may drop them before or after"},
}

func excused(query, problem string) bool {
	for _, e := range exceptions {
		if e.query.MatchString(query) && e.problem.MatchString(problem) {
			return true
		}
	}
	return false
}
