package fn

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// regex is a compiled regular expression that first looks for a text every match holds: searching for bytes is a
// hundred times faster than running the automaton, and most patterns have such a text.
type regex struct {
	*regexp.Regexp
	need   []byte // every match holds it; empty when none is known
	before int    // a match begins at most so many bytes before need; -1: unknown
	inside *regexp.Regexp
	plain  bool   // the pattern is need itself
	steps  *steps // nil: the pattern is none of that form
}

// parsed takes a pattern apart; nil for one that cannot be, of which then nothing more is known.
func parsed(pattern string) *syntax.Regexp {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return tree
}

// newRegex compiles a pattern.
func newRegex(pattern string) (*regex, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	r := &regex{Regexp: re, before: -1}
	tree := parsed(pattern)
	if tree == nil {
		return r, nil
	}
	r.need, r.before = needed(tree)
	r.steps = stepsOf(tree)
	r.plain = tree.Op == syntax.OpLiteral && len(r.need) > 0
	if r.before < 0 || has(tree, syntax.OpBeginLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary) {
		r.before = -1
		return r, nil
	}
	if !has(tree, syntax.OpBeginText) {
		r.inside = re
	} else if r.inside, err = regexp.Compile(neverBegins(tree).String()); err != nil || r.inside.NumSubexp() != re.NumSubexp() {
		r.before = -1
	}
	return r, nil
}

// needed finds a literal that every match holds, and the most bytes that a match has before it. The first literal with
// a bounded distance is taken, else the longest.
func needed(t *syntax.Regexp) (need []byte, before int) {
	at := 0
	before = -1
	var visit func(t *syntax.Regexp)
	visit = func(t *syntax.Regexp) {
		switch {
		case t.Op == syntax.OpCapture:
			visit(t.Sub[0])
			return
		case t.Op == syntax.OpConcat:
			for _, s := range t.Sub {
				visit(s)
			}
			return
		case t.Op == syntax.OpLiteral && t.Flags&syntax.FoldCase == 0 && before < 0 && (at >= 0 || len(t.Rune) > len(need)):
			need, before = []byte(string(t.Rune)), at
		}
		if n := longest(t); n < 0 || at < 0 {
			at = -1
		} else {
			at += n
		}
	}
	visit(t)
	return need, before
}

// longest is the length in bytes of the longest match; -1 is unbounded.
func longest(t *syntax.Regexp) int {
	sum, most := 0, 0
	for _, s := range t.Sub {
		n := longest(s)
		if n < 0 {
			return -1
		}
		sum, most = sum+n, max(most, n)
	}
	switch t.Op {
	case syntax.OpLiteral:
		return utf8.UTFMax * len(t.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpAlternate:
		return most
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpRepeat:
		if t.Max < 0 {
			return -1
		}
		return sum * t.Max
	}
	return sum
}

func has(t *syntax.Regexp, ops ...syntax.Op) bool {
	for _, op := range ops {
		if t.Op == op {
			return true
		}
	}
	for _, s := range t.Sub {
		if has(s, ops...) {
			return true
		}
	}
	return false
}

// neverBegins is the expression where ^ fails: for a text that is cut out of a longer one.
func neverBegins(t *syntax.Regexp) *syntax.Regexp {
	if t.Op == syntax.OpBeginText {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	out := *t
	out.Sub = make([]*syntax.Regexp, len(t.Sub))
	for i, s := range t.Sub {
		out.Sub[i] = neverBegins(s)
	}
	return &out
}

// from narrows a search: the expression to run, and where in s to begin. ok is false when there is no match.
func (r *regex) from(s []byte) (re *regexp.Regexp, at int, ok bool) {
	if len(r.need) == 0 {
		return r.Regexp, 0, true
	}
	hit := bytes.Index(s, r.need)
	if hit < 0 {
		return nil, 0, false
	}
	if r.before < 0 || hit <= r.before {
		return r.Regexp, 0, true
	}
	at = hit - r.before
	for at < hit && !utf8.RuneStart(s[at]) {
		at++
	}
	return r.inside, at, true
}

// matches reports whether the expression matches somewhere in s.
func (r *regex) matches(s []byte) bool {
	if r.plain {
		return bytes.Contains(s, r.need)
	}
	if r.steps != nil {
		var room [8]int
		return r.steps.find(s, room[:0]) != nil
	}
	re, at, ok := r.from(s)
	return ok && re.Match(s[at:])
}

// find is the first match: pairs of positions of the whole and of each group, in dst when there is room; nil when there is none.
func (r *regex) find(s []byte, dst []int) []int {
	if r.steps != nil {
		return r.steps.find(s, dst)
	}
	re, at, ok := r.from(s)
	if !ok {
		return nil
	}
	m := re.FindSubmatchIndex(s[at:])
	for i := range m {
		if at > 0 && m[i] >= 0 {
			m[i] += at
		}
	}
	return m
}

// match is the first match; nil when there is none.
func (r *regex) match(s []byte) []byte {
	if r.steps != nil {
		var room [8]int
		m := r.steps.find(s, room[:0])
		if m == nil {
			return nil
		}
		return s[:m[1]]
	}
	re, at, ok := r.from(s)
	if !ok {
		return nil
	}
	return re.Find(s[at:])
}
