package queries

import "regexp"

// exception is a difference from DuckDB that stands, with its reason.
type exception struct {
	query, problem *regexp.Regexp
	why            string
}

var exceptions = []exception{}

func excused(query, problem string) bool {
	for _, e := range exceptions {
		if e.query.MatchString(query) && e.problem.MatchString(problem) {
			return true
		}
	}
	return false
}
