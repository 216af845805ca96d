package files

import (
	"strings"
	"testing"
	"time"

	"github.com/riverbed/riverbed/core/objstore"
)

// A restart can say which files are others; of many the version names none.
func TestDifferencesNameFiles(t *testing.T) {
	at := func(name string, size int64) Ref {
		return Ref{Store: objstore.Local{}, Info: objstore.Info{Name: name, Size: size, Modified: time.Unix(1700000000, 0)}}
	}
	relation := func(refs ...Ref) *Relation { return &Relation{refs: refs} }
	before := relation(at("a b.csv", 1), at("c.csv", 2), at("d\"e.csv", 3)).Version()
	const day = "of 2023-11-14 22:13:20Z"
	for _, c := range []struct {
		now  *Relation
		want string
	}{
		{relation(at("a b.csv", 1), at("c.csv", 2), at("d\"e.csv", 3)), ""},
		{relation(at("a b.csv", 1), at("c.csv", 4), at("d\"e.csv", 3)), "c.csv had 2 bytes " + day + " and has 4 bytes " + day},
		{relation(at("c.csv", 2), at("f.csv", 2)), "f.csv is new; a b.csv is gone; d\"e.csv is gone"},
		{relation(at("f.csv", 1), at("g.csv", 1), at("h.csv", 1)), "f.csv is new; g.csv is new; h.csv is new; a b.csv is gone; 2 more are others"},
	} {
		if got := c.now.Differences(before); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	var many []Ref
	for i := range namedFiles + 1 {
		many = append(many, at(strings.Repeat("x", i+1), 1))
	}
	if got := relation(at("c.csv", 2)).Differences(relation(many...).Version()); got != "" || len(relation(many...).Version()) > 20 {
		t.Errorf("%q of a version that names no files", got)
	}
}
