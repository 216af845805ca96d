package riverbed

import (
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/sql"
)

// Statements splits a script into the texts of its statements without running them. A comment belongs to the
// statement before it.
func Statements(script string) ([]string, error) {
	parsed, err := sql.Parse(script)
	if err != nil {
		return nil, errs.As(err).WithSQL(script)
	}
	out := make([]string, len(parsed))
	for i, st := range parsed {
		end := len(script)
		if i+1 < len(parsed) {
			end = parsed[i+1].Position().Offset
		}
		out[i] = strings.TrimRight(script[st.Position().Offset:end], "; \t\r\n")
	}
	return out, nil
}
