package incremental_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/incremental/optest"
)

// bugCase is a folder of testdata/bugs: a bug that similar systems had, as an input in steps and what each must show.
type bugCase struct {
	ddl, query string
	lines      []bugLine
	want       bugWant
}

type bugLine struct {
	Step      int    `json:"step"`
	Op        string `json:"op"`
	Table     string `json:"table"`
	Row       []any  `json:"row"`
	Late      bool   `json:"late"`
	Watermark string `json:"watermark"`
}

type bugWant struct {
	Snapshots []struct {
		Step int     `json:"step"`
		Rows [][]any `json:"rows"`
	} `json:"snapshots"`
	Changelog []struct {
		Step  int     `json:"step"`
		Minus [][]any `json:"minus"`
		Plus  [][]any `json:"plus"`
	} `json:"changelog"`
	Final [][]any `json:"final"`
}

func readBugCase(t *testing.T, dir string) bugCase {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	c := bugCase{ddl: read("input.sql"), query: strings.TrimSuffix(strings.TrimSpace(read("query.sql")), ";")}
	lines := bufio.NewScanner(strings.NewReader(read("input.jsonl")))
	timed := false
	for lines.Scan() {
		var l bugLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		timed = timed || l.Watermark != ""
		c.lines = append(c.lines, l)
	}
	if err := json.Unmarshal([]byte(read("expected.json")), &c.want); err != nil {
		t.Fatal(err)
	}
	if timed { // what has a watermark is a stream, and its watermark is set by hand
		c.ddl = strings.Replace(strings.Replace(c.ddl, "CREATE TABLE", "CREATE STREAM", 1), ")", ", WATERMARK FOR ts AS ts)", 1)
	}
	return c
}

func values(row []any) string {
	out := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case nil:
			out[i] = "NULL"
		case string:
			out[i] = "'" + v + "'"
		default:
			out[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(out, " ")
}

// play runs the lines in the given steps and calls after each.
func (c *bugCase) play(op *optest.Run, steps [][]bugLine, after func(step int)) {
	many := len(op.Graph().Sources()) > 1
	for i, step := range steps {
		for _, l := range step {
			if l.Watermark != "" {
				op.Watermark("", l.Watermark)
				continue
			}
			row := map[string]string{"insert": "+1 ", "delete": "-1 "}[l.Op] + values(l.Row)
			if many {
				row = l.Table + " " + row
			}
			op.Push(row)
		}
		op.Step()
		after(i)
	}
}

func TestBugsOfOthers(t *testing.T) {
	dirs, err := filepath.Glob("testdata/bugs/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no cases: ", err)
	}
	for _, dir := range dirs {
		c := readBugCase(t, dir)
		var asWritten, oneRow [][]bugLine
		for _, l := range c.lines {
			if n := len(asWritten); n == 0 || asWritten[n-1][0].Step != l.Step {
				asWritten = append(asWritten, nil)
			}
			last := len(asWritten) - 1
			asWritten[last] = append(asWritten[last], l)
			oneRow = append(oneRow, []bugLine{l})
		}
		all := func(op *optest.Run, rows [][]any, sign string) []string {
			var out []string
			for _, r := range rows {
				out = append(out, sign+op.Canon(values(r)))
			}
			slices.Sort(out)
			return out
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			op := optest.New(t, c.ddl, c.query)
			c.play(op, asWritten, func(step int) {
				op.Holds(all(op, c.want.Snapshots[step].Rows, "")...)
				op.Emits(append(all(op, c.want.Changelog[step].Minus, "-1 "), all(op, c.want.Changelog[step].Plus, "+1 ")...)...)
				op.RestartWith(1 + step%3)
			})
			late := 0
			for _, l := range c.lines {
				if l.Late {
					late++
				}
			}
			if n := op.LateRows(); n != late {
				t.Fatalf("%d rows are late, not %d", n, late)
			}
		})
		for name, steps := range map[string][][]bugLine{"one row a step": oneRow, "all in one step": {c.lines}} {
			t.Run(filepath.Base(dir)+"/"+name, func(t *testing.T) {
				op := optest.New(t, c.ddl, c.query, optest.Parallel(2))
				c.play(op, steps, func(int) {})
				op.Holds(all(op, c.want.Final, "")...)
			})
		}
	}
}
