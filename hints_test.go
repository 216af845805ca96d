package riverbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// A retraction that the user pushed and that has no row is his error, and names the stream.
func TestRetractionOfNothingNamesTheStream(t *testing.T) {
	d := openDB(t, "strict_retractions", "true")
	d.run("CREATE STREAM s (v BIGINT) WITH (connector = 'memory', updating = true)")
	sub := d.follow("SELECT v, count(*) FROM s GROUP BY v", SubscribeOptions{})
	d.pushWeighted("s", "p", []int64{-1}, row{7})
	var err error
	for err == nil {
		_, err = sub.Next(t.Context())
	}
	failsWith(t, "a retraction of nothing", err, errs.Data, `stream "s"`, "has no row", "strict_retractions = false")
}

// Functions that the session registered are suggested as the built-in ones are.
func TestSuggestionsKnowRegisteredFunctions(t *testing.T) {
	d := openDB(t)
	if err := d.RegisterUDF(UDF{Name: "surcharge", Returns: "BIGINT"}); err != nil {
		t.Fatal(err)
	}
	d.fails("SELECT surchage(1)", errs.Schema, `did you mean "surcharge"?`)
}

// What the hint of a CSV error advises can be done.
func TestHintsOfCSVErrors(t *testing.T) {
	d := openDB(t)
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("a,b\n1,2\n3,4\nx,5\n6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.fails(fmt.Sprintf("FROM read_csv('%s', sample_size = 2)", path), errs.Source, "line 4", "all_varchar = true", "sample_size", "ignore_errors = true")
	d.fails(fmt.Sprintf("FROM read_csv('%s', all_varchar = true)", path), errs.Source, "line 5", "check the delim and quote options", "ignore_errors = true")
	d.is(fmt.Sprintf("SELECT try_cast(a AS BIGINT) FROM read_csv('%s', all_varchar = true, ignore_errors = true)", path), "1", "3", "NULL")
}

// The overloads that an error shows are few, of as many arguments, and the nearest first.
func TestOverloadsThatAreShown(t *testing.T) {
	d := openDB(t)
	_, err := d.Query(t.Context(), "SELECT DATE '2024-01-01' + true", nil)
	var e *errs.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	lines := strings.Split(e.Hint, "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[1], "  +(DATE, ") || strings.Contains(e.Hint, "+(TINYINT)") {
		t.Errorf("the hint is\n%s", e.Hint)
	}
}
