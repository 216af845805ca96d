package fn

import (
	"bytes"
	"regexp/syntax"
	"slices"
)

// steps is a regular expression that is bound to the beginning of the text and can be walked through byte by byte, as
// '^https?://(?:www\.)?([^/]+)/.*$': texts, runs of a class of characters, and optional parts, in a row. A run takes all it can
// and never gives back: what may follow it begins with no character of its class. Only an optional part has two ways to go,
// with it first. That is what the automaton would find, at a tenth of its price.
type steps struct {
	list []step
	pair int // positions that a match has
}

type stepKind uint8

const (
	stepText  stepKind = iota // exactly text
	stepOne                   // one byte of class
	stepRun                   // least or more bytes of class
	stepMark                  // a group begins or ends here
	stepEnd                   // the end of the text
	stepMaybe                 // with is walked through or not
)

type step struct {
	kind  stepKind
	text  []byte
	class *[256]bool
	least int
	mark  int
	with  []step
}

const maxMaybe = 3 // optional parts: each doubles the ways

// stepsOf takes an expression apart; nil when it is none of this form.
func stepsOf(t *syntax.Regexp) *steps {
	if t.Op != syntax.OpConcat || len(t.Sub) < 2 || t.Sub[0].Op != syntax.OpBeginText {
		return nil
	}
	s := &steps{pair: 2 * (t.MaxCap() + 1)}
	maybe := 0
	for _, sub := range t.Sub[1:] {
		if !s.add(&s.list, sub, &maybe) {
			return nil
		}
	}
	if maybe > maxMaybe || !possessive(s.list) {
		return nil
	}
	return s
}

func (s *steps) add(to *[]step, t *syntax.Regexp, maybe *int) bool {
	switch t.Op {
	case syntax.OpEmptyMatch:
	case syntax.OpLiteral:
		if t.Flags&syntax.FoldCase != 0 {
			return false
		}
		*to = append(*to, step{kind: stepText, text: []byte(string(t.Rune))})
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		class, whole := bytesOf(t)
		if class == nil || whole { // one character may be several bytes
			return false
		}
		*to = append(*to, step{kind: stepOne, class: class})
	case syntax.OpStar, syntax.OpPlus:
		class, _ := bytesOf(t.Sub[0])
		if class == nil || t.Flags&syntax.NonGreedy != 0 {
			return false
		}
		least := 0
		if t.Op == syntax.OpPlus {
			least = 1
		}
		*to = append(*to, step{kind: stepRun, class: class, least: least})
	case syntax.OpQuest:
		if t.Flags&syntax.NonGreedy != 0 || has(t.Sub[0], syntax.OpCapture, syntax.OpQuest, syntax.OpStar, syntax.OpPlus) {
			return false
		}
		m := step{kind: stepMaybe}
		if !s.add(&m.with, t.Sub[0], maybe) || len(m.with) == 0 {
			return false
		}
		*maybe++
		*to = append(*to, m)
	case syntax.OpConcat:
		for _, sub := range t.Sub {
			if !s.add(to, sub, maybe) {
				return false
			}
		}
	case syntax.OpCapture:
		*to = append(*to, step{kind: stepMark, mark: 2 * t.Cap})
		if !s.add(to, t.Sub[0], maybe) {
			return false
		}
		*to = append(*to, step{kind: stepMark, mark: 2*t.Cap + 1})
	case syntax.OpEndText:
		*to = append(*to, step{kind: stepEnd})
	default:
		return false
	}
	return true
}

// bytesOf is a class of characters as one of bytes: nil unless it holds all characters beyond ASCII, in which case whole is
// true, or none of them.
func bytesOf(t *syntax.Regexp) (class *[256]bool, whole bool) {
	const ascii, last = 0x7F, 0x10FFFF
	class = &[256]bool{}
	ranges := t.Rune
	switch t.Op {
	case syntax.OpAnyChar:
		ranges = []rune{0, last}
	case syntax.OpAnyCharNotNL:
		ranges = []rune{0, '\n' - 1, '\n' + 1, last}
	case syntax.OpCharClass:
	case syntax.OpLiteral:
		if len(t.Rune) != 1 || t.Rune[0] > ascii || t.Flags&syntax.FoldCase != 0 {
			return nil, false
		}
		ranges = []rune{t.Rune[0], t.Rune[0]}
	default:
		return nil, false
	}
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for b := lo; b <= min(hi, ascii); b++ {
			class[b] = true
		}
		if hi <= ascii {
			continue
		}
		if hi != last || lo > ascii+1 {
			return nil, false
		}
		whole = true
		for b := ascii + 1; b < 256; b++ {
			class[b] = true
		}
	}
	return class, whole
}

// possessive reports whether no run needs to give anything back.
func possessive(list []step) bool {
	for i, s := range list {
		if s.kind == stepRun {
			next := begins(list[i+1:])
			for b := range next {
				if next[b] && s.class[b] {
					return false
				}
			}
		}
	}
	return true
}

// begins is the bytes that steps may begin with.
func begins(list []step) (first [256]bool) {
	add := func(other [256]bool) {
		for b, is := range other {
			first[b] = first[b] || is
		}
	}
	for _, s := range list {
		switch s.kind {
		case stepText:
			first[s.text[0]] = true
			return first
		case stepOne:
			add(*s.class)
			return first
		case stepRun:
			if add(*s.class); s.least > 0 {
				return first
			}
		case stepMaybe:
			add(begins(s.with))
		case stepEnd:
			return first
		}
	}
	return first
}

// find is the match as pairs of positions, in dst when there is room; nil when there is none.
func (s *steps) find(text []byte, dst []int) []int {
	m := slices.Grow(dst[:0], s.pair)[:s.pair]
	for i := range m {
		m[i] = -1
	}
	end, ok := walk(s.list, text, 0, m)
	if !ok {
		return nil
	}
	m[0], m[1] = 0, end
	return m
}

func walk(list []step, text []byte, at int, m []int) (end int, ok bool) {
	for i := range list {
		switch s := &list[i]; s.kind {
		case stepText:
			if !bytes.HasPrefix(text[at:], s.text) {
				return 0, false
			}
			at += len(s.text)
		case stepOne:
			if at == len(text) || !s.class[text[at]] {
				return 0, false
			}
			at++
		case stepRun:
			from, class := at, s.class
			for at < len(text) && class[text[at]] {
				at++
			}
			if at-from < s.least {
				return 0, false
			}
		case stepMark:
			m[s.mark] = at
		case stepEnd:
			if at != len(text) {
				return 0, false
			}
		case stepMaybe:
			if to, ok := walk(s.with, text, at, m); ok {
				if end, ok := walk(list[i+1:], text, to, m); ok {
					return end, true
				}
			}
		}
	}
	return at, true
}
