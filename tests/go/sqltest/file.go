package sqltest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// File is one .test file: relations, what happens to them, and what is asked and expected in between.
type File struct {
	Path      string
	Skips     map[string]string // configuration → reason
	Relations []*Relation
	Items     []Item

	lines []string
}

// Relation is a declared stream or table whose rows the file gives.
type Relation struct {
	Name      string
	Table     bool  // in-memory table, otherwise a stream
	Updating  bool  // a stream that carries weights; found out by the rows
	Key       []int // the PRIMARY KEY of a stream whose rows replace each other: positions; nil of others
	Fields    []types.Field
	Watermark string // SQL, may be empty
	EventTime int    // position, when there is a watermark
	Decl      string // as written
}

// Item is a record of a file, in its order. Exactly one of the pointers is set.
type Item struct {
	Line  int // first line, from 1
	Event *Event
	Stmt  *Stmt
	Query *Query
}

// EventKind is what happens to a relation.
type EventKind uint8

// The events.
const (
	Row       EventKind = iota + 1
	Watermark           // set by hand
	Open                // a split is announced
	Idle                // a split falls silent
	End                 // a relation ends
	Clock               // time passes
	Step                // the file's own cut
)

// Event is one thing that happens.
type Event struct {
	Kind   EventKind
	Rel    int // position in Relations
	Split  string
	Values []types.Value
	Weight int64
	At     flow.Watermark // Watermark; for Clock a duration in µs
}

// Stmt is `statement ok` or `statement error`.
type Stmt struct {
	SQL   string
	Error bool
	Want  string // part of the message
}

// Query is `query` or `changelog`. Both see what stands above them.
type Query struct {
	SQL       string
	Types     string // one letter a column: I whole, R fractional, T other
	Sort      bool   // rowsort
	Changelog bool
	Want      []string

	from, to int // expected lines: positions in File.lines
}

// Load reads a file.
func Load(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, string(b))
}

// Parse reads the text of a file.
func Parse(path, text string) (*File, error) {
	p := &parser{f: &File{Path: path, Skips: map[string]string{}, lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}}
	for p.at < len(p.f.lines) {
		line := p.at + 1
		if err := p.record(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, line, err)
		}
	}
	return p.f, nil
}

type parser struct {
	f     *File
	at    int
	rel   int    // the relation that plain rows go to
	split string // their split
}

func (p *parser) add(i Item) { p.f.Items = append(p.f.Items, i) }

func (p *parser) record() error {
	line := strings.TrimSpace(p.f.lines[p.at])
	no := p.at + 1
	p.at++
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "skip":
		config, why, ok := strings.Cut(rest, ":")
		if !ok || strings.TrimSpace(why) == "" {
			return fmt.Errorf("write skip <config>: <reason>")
		}
		p.f.Skips[strings.TrimSpace(config)] = strings.TrimSpace(why)
		return nil
	case "stream", "table":
		return p.declare(line)
	case "into":
		at, err := p.named(rest)
		p.rel, p.split = at, ""
		return err
	case "split":
		p.split = rest
		p.add(Item{Line: no, Event: &Event{Kind: Open, Rel: p.rel, Split: rest}})
		return nil
	case "step":
		p.add(Item{Line: no, Event: &Event{Kind: Step}})
		return nil
	case "clock":
		v, ok := types.ParseInterval(unquote(rest))
		if !ok {
			return fmt.Errorf("clock takes an interval, not %s", rest)
		}
		p.add(Item{Line: no, Event: &Event{Kind: Clock, At: flow.Watermark(v.Micros)}})
		return nil
	case "end", "idle", "watermark":
		return p.tick(no, word, rest)
	case "statement":
		return p.statement(no, rest)
	case "query", "changelog":
		return p.query(no, word, rest)
	}
	if word[0] == '+' || word[0] == '-' {
		return p.row(no, line)
	}
	return fmt.Errorf("what is %q?", word)
}

// named finds a declared relation.
func (p *parser) named(name string) (int, error) {
	for i, r := range p.f.Relations {
		if strings.EqualFold(r.Name, name) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("no relation %q is declared above", name)
}

func (p *parser) declare(line string) error {
	for strings.Count(line, "(") != strings.Count(line, ")") && p.at < len(p.f.lines) {
		line += "\n" + p.f.lines[p.at]
		p.at++
	}
	r, err := Declare(line)
	if err != nil {
		return err
	}
	p.rel, p.split = len(p.f.Relations), ""
	p.f.Relations = append(p.f.Relations, r)
	return nil
}

// Declare reads `stream t (…)`, `table t (…)`. A stream with a PRIMARY KEY is an upsert stream.
func Declare(text string) (*Relation, error) {
	word, rest, _ := strings.Cut(text, " ")
	parsed := "CREATE STREAM " + rest + " WITH (connector = 'test')"
	st, err := sql.ParseOne(parsed)
	if err != nil {
		return nil, err
	}
	cs, ok := st.(*sql.CreateStream)
	if !ok {
		return nil, fmt.Errorf("not a declaration: %s", text)
	}
	r := &Relation{Name: cs.Name.String(), Table: word == "table", Decl: text}
	for _, c := range cs.Columns {
		t, err := bind.Type(c.Type)
		if err != nil {
			return nil, err
		}
		r.Fields = append(r.Fields, types.Field{Name: c.Name.Name, Type: t})
	}
	for _, k := range cs.Constraints {
		if k.Kind != sql.PrimaryKey || r.Table {
			return nil, fmt.Errorf("PRIMARY KEY is of streams, and nothing else is declared here")
		}
		for _, id := range k.Columns {
			at := slices.IndexFunc(r.Fields, func(f types.Field) bool { return strings.EqualFold(f.Name, id.Name) })
			if at < 0 {
				return nil, fmt.Errorf("no column %q", id.Name)
			}
			r.Key, r.Updating = append(r.Key, at), true
		}
	}
	if w := cs.Watermark; w != nil {
		r.Watermark = sql.Print(w.Expr)
		r.EventTime = -1
		for i, f := range r.Fields {
			if strings.EqualFold(f.Name, w.Column.Name) {
				r.EventTime = i
			}
		}
		if r.EventTime < 0 || r.Table {
			return nil, fmt.Errorf("a watermark is for a column of a stream")
		}
	}
	return r, nil
}

// tick reads `end [t]`, `idle t [split]`, `watermark [t] '…'`.
func (p *parser) tick(no int, word, rest string) error {
	toks, err := tokens(rest)
	if err != nil {
		return err
	}
	e := &Event{Rel: p.rel}
	if word == "end" && len(toks) == 0 {
		for i := range p.f.Relations {
			p.add(Item{Line: no, Event: &Event{Kind: End, Rel: i}})
		}
		return nil
	}
	if len(toks) > 0 && !toks[0].quoted {
		if e.Rel, err = p.named(toks[0].text); err != nil {
			return err
		}
		toks = toks[1:]
	}
	switch word {
	case "end":
		e.Kind = End
	case "idle":
		e.Kind = Idle
		if len(toks) > 0 {
			e.Split = toks[0].text
		}
	case "watermark":
		e.Kind = Watermark
		if len(toks) != 1 {
			return fmt.Errorf("write watermark <relation> '<timestamp>'")
		}
		v, err := ParseValue(toks[0].text, types.TsUS)
		if err != nil {
			return err
		}
		e.At = flow.Watermark(v.(int64))
	}
	p.add(Item{Line: no, Event: e})
	return nil
}

// row reads `+ a 1`, `-2 a 1`, to the relation named last. Of an upsert stream `- a` deletes the key.
func (p *parser) row(no int, line string) error {
	if len(p.f.Relations) == 0 {
		return fmt.Errorf("declare a stream or table first")
	}
	rel := p.f.Relations[p.rel]
	head, rest, _ := strings.Cut(line, " ")
	w := int64(1)
	if len(head) > 1 {
		n, err := strconv.ParseInt(head[1:], 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a weight; put a space between the sign and the row", head)
		}
		w = n
	}
	if head[0] == '-' {
		w = -w
		rel.Updating = true
	}
	vals, err := rel.parse(rest, w)
	if err != nil {
		return err
	}
	p.add(Item{Line: no, Event: &Event{Kind: Row, Rel: p.rel, Split: p.split, Values: vals, Weight: w}})
	return nil
}

func (r *Relation) parse(text string, w int64) ([]types.Value, error) {
	switch {
	case r.Key == nil:
		return parseRow(text, r.Fields)
	case w != 1 && w != -1:
		return nil, fmt.Errorf("%s has a PRIMARY KEY: + is the row of a key, - deletes one", r.Name)
	case w == 1:
		return parseRow(text, r.Fields)
	}
	key, err := parseRow(text, r.keyFields())
	if err != nil {
		return nil, err
	}
	vals := make([]types.Value, len(r.Fields))
	for i, at := range r.Key {
		vals[at] = key[i]
	}
	return vals, nil
}

func (r *Relation) keyFields() []types.Field { return at(r.Fields, r.Key) }

func at[T any](list []T, positions []int) []T {
	out := make([]T, len(positions))
	for i, p := range positions {
		out[i] = list[p]
	}
	return out
}

func parseRow(text string, fields []types.Field) ([]types.Value, error) {
	toks, err := tokens(text)
	if err != nil {
		return nil, err
	}
	if len(toks) != len(fields) {
		return nil, fmt.Errorf("%d values for %d columns", len(toks), len(fields))
	}
	vals := make([]types.Value, len(fields))
	for i, t := range toks {
		if !t.quoted && t.text == "NULL" {
			continue
		}
		if vals[i], err = ParseValue(t.text, fields[i].Type); err != nil {
			return nil, err
		}
	}
	return vals, nil
}

// ParseValue reads a value as files write it. A time of day stands for that time on 2024-01-01.
func ParseValue(text string, t types.Type) (types.Value, error) {
	if t.IsTimestamp() && len(text) >= 8 && text[2] == ':' {
		text = "2024-01-01 " + text
	}
	return types.ParseValue(text, t)
}

type token struct {
	text   string
	quoted bool
}

// tokens splits at spaces outside of 'quotes'.
func tokens(s string) ([]token, error) {
	var out []token
	for i := 0; i < len(s); {
		switch {
		case s[i] == ' ' || s[i] == '\t':
			i++
		case s[i] == '\'':
			var b strings.Builder
			for i++; ; i++ {
				if i >= len(s) {
					return nil, fmt.Errorf("a quote is not closed in: %s", s)
				}
				if s[i] == '\'' {
					if i+1 < len(s) && s[i+1] == '\'' {
						i++
					} else {
						break
					}
				}
				b.WriteByte(s[i])
			}
			i++
			out = append(out, token{b.String(), true})
		default:
			j := i
			for j < len(s) && s[j] != ' ' && s[j] != '\t' {
				j++
			}
			out = append(out, token{s[i:j], false})
			i = j
		}
	}
	return out, nil
}

func unquote(s string) string {
	if len(s) >= 2 && s[0] == '\'' {
		return strings.ReplaceAll(s[1:len(s)-1], "''", "'")
	}
	return s
}

// block reads lines to a blank line, or to ---- when stop is set.
func (p *parser) block() []string {
	from := p.at
	for p.at < len(p.f.lines) && strings.TrimSpace(p.f.lines[p.at]) != "" && strings.TrimSpace(p.f.lines[p.at]) != "----" {
		p.at++
	}
	return p.f.lines[from:p.at]
}

func (p *parser) separator() bool {
	if p.at < len(p.f.lines) && strings.TrimSpace(p.f.lines[p.at]) == "----" {
		p.at++
		return true
	}
	return false
}

func (p *parser) statement(no int, rest string) error {
	kind, want, _ := strings.Cut(rest, " ")
	if kind != "ok" && kind != "error" {
		return fmt.Errorf("write statement ok, or statement error [part of the message]")
	}
	s := &Stmt{Error: kind == "error", Want: strings.TrimSpace(want), SQL: strings.Join(p.block(), "\n")}
	if p.separator() {
		s.Want = strings.TrimSpace(strings.Join(p.block(), "\n"))
	}
	if strings.TrimSpace(s.SQL) == "" {
		return fmt.Errorf("a statement without text")
	}
	p.add(Item{Line: no, Stmt: s})
	return nil
}

func (p *parser) query(no int, word, rest string) error {
	q := &Query{Changelog: word == "changelog"}
	for _, w := range strings.Fields(rest) {
		switch w {
		case "rowsort":
			q.Sort = true
		case "nosort":
		default:
			if strings.Trim(w, "TIR") != "" {
				return fmt.Errorf("column types are letters T, I, R; not %q", w)
			}
			q.Types = w
		}
	}
	q.SQL = strings.TrimSuffix(strings.TrimSpace(strings.Join(p.block(), "\n")), ";")
	if q.SQL == "" {
		return fmt.Errorf("a query without text")
	}
	if !p.separator() {
		return fmt.Errorf("---- is missing behind the query")
	}
	q.from = p.at
	q.Want = p.block()
	q.to = p.at
	p.add(Item{Line: no, Query: q})
	return nil
}

// Rewrite returns the file's text with other expected lines.
func (f *File) Rewrite(got map[*Query][]string) string {
	var out []string
	at := 0
	for _, it := range f.Items {
		if rows, ok := got[it.Query]; ok && it.Query != nil {
			out = append(append(out, f.lines[at:it.Query.from]...), rows...)
			at = it.Query.to
		}
	}
	return strings.Join(append(out, f.lines[at:]...), "\n") + "\n"
}

// Events are the events above an item.
func (f *File) Events(above int) []Event {
	var out []Event
	for _, it := range f.Items[:above] {
		if it.Event != nil {
			out = append(out, *it.Event)
		}
	}
	return out
}

// Statements are the statements above an item that succeed.
func (f *File) Statements(above int) []string {
	var out []string
	for _, it := range f.Items[:above] {
		if it.Stmt != nil && !it.Stmt.Error {
			out = append(out, it.Stmt.SQL)
		}
	}
	return out
}
