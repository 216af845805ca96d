package sql

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
)

// fixture is one `-- name:` block of a file in testdata.
type fixture struct{ name, text string }

func fixtures(t testing.TB) []fixture {
	t.Helper()
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	var list []fixture
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(data), "-- name: ")[1:] {
			name, text, _ := strings.Cut(block, "\n")
			list = append(list, fixture{strings.TrimSuffix(filepath.Base(file), ".sql") + "/" + name, text})
		}
	}
	return list
}

// forgetPlaces sets every errs.Pos below v to zero, so that trees can be compared.
func forgetPlaces(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			forgetPlaces(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[errs.Pos]() {
			v.SetZero()
			return
		}
		for i := range v.NumField() {
			forgetPlaces(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			forgetPlaces(v.Index(i))
		}
	}
}

// roundTrip checks parse(print(x)) == x and print(parse(print(x))) == print(x).
func roundTrip(t testing.TB, s Statement) {
	t.Helper()
	text := Print(s)
	again, err := ParseOne(text)
	if err != nil {
		t.Fatalf("the printed text does not parse: %v\n%s", err, text)
	}
	if second := Print(again); second != text {
		t.Fatalf("printing is not stable:\n%s\n%s", text, second)
	}
	forgetPlaces(reflect.ValueOf(s))
	forgetPlaces(reflect.ValueOf(again))
	if !reflect.DeepEqual(s, again) {
		t.Fatalf("the printed text parses to another tree:\n%s", text)
	}
}

func TestFixturesParseAndRoundTrip(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			list, err := Parse(f.text)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				t.Fatal("no statement")
			}
			for _, s := range list {
				roundTrip(t, s)
			}
		})
	}
}
