package bind

import (
	"fmt"
	"sort"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// fail leaves the binder; guard catches it.
func fail(pos errs.Pos, format string, args ...any) {
	panic(errs.E(errs.Schema, "bind", pos, format, args...))
}

func failHint(pos errs.Pos, hint, format string, args ...any) {
	e := errs.E(errs.Schema, "bind", pos, format, args...)
	e.Hint = hint
	panic(e)
}

// failUnsupported refuses a construct that parses. Neither mode has it, so the message says so.
func failUnsupported(pos errs.Pos, what string) {
	panic(errs.E(errs.Unsupported, "bind", pos, "%s is not supported yet, neither in batch nor in incremental mode", what))
}

// raise passes on an error of another package, with a place.
func raise(err error, pos errs.Pos) {
	e := *errs.As(err)
	if !e.Pos.Valid() {
		e.Pos = pos
	}
	if e.Op == "" {
		e.Op = "bind"
	}
	panic(&e)
}

// candidates suggests the nearest name and lists the rest, shortened.
func candidates(label, name string, names []string) string {
	seen := map[string]bool{}
	var list []string
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return ""
	}
	near := errs.DidYouMean(name, list)
	sort.Strings(list)
	more := ""
	const most = 20
	if len(list) > most {
		more = fmt.Sprintf(", … (%d in all)", len(list))
		list = list[:most]
	}
	return strings.TrimSpace(near + " " + label + ": " + strings.Join(list, ", ") + more)
}
