package fn

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

// patterns is LIKE and its relatives, and regular expressions. Both take linear time in the text: LIKE never backtracks
// further than one %, and Go's regexp is RE2.
var patterns = []*Scalar{
	like("like", "Match a text with a pattern: % is any text, _ any character.", false, false, "'hello' LIKE 'h%o'"),
	like("not like", "Whether a text does not match a pattern.", true, false, "'hello' NOT LIKE 'x%'"),
	like("ilike", "LIKE without regard to case.", false, true, "'Hello' ILIKE 'h%'"),
	like("not ilike", "NOT LIKE without regard to case.", true, true, "'Hello' NOT ILIKE 'x%'"),
	{Name: "glob", Category: Text, Operator: true, Summary: "Match a text with a shell pattern: *, ?, [a-z].", Overloads: []Overload{
		regexOverload(types.Bool, 2, globSource, matchKernel)}, Examples: []Example{ex("'hello' GLOB 'h*o'", "true")}},
	{Name: "similar to", Category: Text, Operator: true, Summary: "Match a whole text with a regular expression.", Aliases: []string{"regexp_full_match"}, Overloads: []Overload{
		regexOverload(types.Bool, 2, wholeSource, matchKernel), regexOverload(types.Bool, 3, wholeSource, matchKernel)},
		Examples: []Example{ex("'hello' SIMILAR TO 'h(e|a)llo'", "true"), ex("regexp_full_match('hello', 'h')", "false")}},
	{Name: "regexp_matches", Category: Text, Summary: "Whether a regular expression matches somewhere in a text. Options: i, c, s, m, l.", Overloads: []Overload{
		regexOverload(types.Bool, 2, regexSource, matchKernel), regexOverload(types.Bool, 3, regexSource, matchKernel)},
		Examples: []Example{ex("regexp_matches('hello', 'l+')", "true"), ex("regexp_matches('hello', 'L+', 'i')", "true")}},
	{Name: "regexp_replace", Category: Text, Summary: `Replace the first match, or with option g all; \1 is the first group.`, Overloads: []Overload{
		regexReplace(3), regexReplace(4)},
		Examples: []Example{ex("regexp_replace('hello', 'l', 'x', 'g')", "hexxo"), ex(`regexp_replace('abc', '(b)', '[\1]')`, "a[b]c")}},
	{Name: "regexp_extract", Category: Text, Summary: "The first match, or one of its groups; empty without a match.", Overloads: []Overload{
		regexOverload(str, 2, regexSource, extractKernel), regexExtract()},
		Examples: []Example{ex(`regexp_extract('a1b22', '\d+')`, "1"), ex(`regexp_extract('a1b22', '([a-z])(\d+)', 2)`, "1")}},
	{Name: "regexp_extract_all", Category: Text, Summary: "All matches, as a list.", Overloads: []Overload{
		regexOverload(types.ListOf(str), 2, regexSource, func(c *Call, re func(i int) *regex) (arrow.Array, error) {
			s := textCol(c, 0)
			return values(c, func(i int) types.Value {
				if r := re(i); r != nil {
					return textList(r.FindAllString(s.str(i), -1))
				}
				return nil
			})
		})}, Examples: []Example{ex(`regexp_extract_all('a1b22', '\d+')`, "[1, 22]")}},
	{Name: "regexp_split_to_array", Category: Text, Summary: "The parts of a text cut where a regular expression matches.", Aliases: []string{"string_split_regex", "str_split_regex"}, Overloads: []Overload{
		regexOverload(types.ListOf(str), 2, regexSource, func(c *Call, re func(i int) *regex) (arrow.Array, error) {
			s := textCol(c, 0)
			return values(c, func(i int) types.Value {
				if r := re(i); r != nil {
					return textList(r.Split(s.str(i), -1))
				}
				return nil
			})
		})}, Examples: []Example{ex(`regexp_split_to_array('a1b22c', '\d+')`, "[a, b, c]")}},
	{Name: "regexp_escape", Category: Text, Summary: "Escape what has a meaning in regular expressions.", Overloads: []Overload{strict(Types{str}, str, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return texts(c, func(dst []byte, i int) []byte { return append(dst, regexp.QuoteMeta(s.str(i))...) })
	})}, Examples: []Example{ex("regexp_escape('a.b')", `a\.b`)}},
}

// like takes (text, pattern) or (text, pattern, escape).
func like(name, summary string, negate, fold bool, sql string) *Scalar {
	k := func(c *Call) (arrow.Array, error) { return likeKernel(c, negate, fold) }
	return &Scalar{Name: name, Category: Text, Operator: true, Summary: summary, Examples: []Example{ex(sql, "true")}, Overloads: []Overload{
		strict(Types{str, str}, types.Bool, k), fallible(Types{str, str, str}, types.Bool, k)}}
}

func likeKernel(c *Call, negate, fold bool) (arrow.Array, error) {
	var s kernels.Texts
	s.Offs, s.Data = kernels.Spans(c.Args[0].Array)
	if fold {
		s = foldTexts(s)
	}
	compile := func(i int) *kernels.Pattern {
		p := textCol(c, 1)
		pattern, escape := p.str(i), rune(0)
		if len(c.Args) == 3 {
			e := textCol(c, 2)
			switch t := e.at(i); utf8.RuneCount(t) {
			case 0:
			case 1:
				escape, _ = utf8.DecodeRune(t)
			default:
				c.failf(i, "the escape of LIKE must be one character, not '%s'", t)
				return nil
			}
		}
		if fold {
			pattern = string(lower(nil, []byte(pattern)))
		}
		m, ok := kernels.CompileLike(pattern, escape)
		if !ok {
			c.failf(i, "the pattern '%s' ends with its escape character", pattern)
		}
		return m
	}
	out := make([]byte, kernels.BitBytes(c.N))
	constant := c.Args[1].Const && (len(c.Args) == 2 || c.Args[2].Const)
	switch {
	case c.N == 0:
	case constant:
		if p := compile(0); p != nil {
			kernels.Like(out, s, p, c.N)
		} else {
			for i := 1; i < c.N; i++ {
				compile(i) // every row fails alike
			}
		}
	default:
		alive := live(c)
		m := s.Mask()
		for i := range c.N {
			if alive != nil && !kernels.Bit(alive, i) {
				continue
			}
			if p := compile(i); p != nil && p.Match(s.At(i&m)) {
				kernels.SetBit(out, i)
			}
		}
	}
	if negate {
		kernels.Invert(out, c.N)
	}
	return kernels.NewBools(c.N, out, nil), nil
}

// foldTexts lower-cases a column.
func foldTexts(s kernels.Texts) kernels.Texts {
	out := kernels.Texts{Offs: make([]int32, len(s.Offs))}
	for i := range len(s.Offs) - 1 {
		out.Data = lower(out.Data, s.At(i))
		out.Offs[i+1] = int32(len(out.Data))
	}
	return out
}

// maxPattern bounds the length of a regular expression; its program is larger.
const maxPattern = 10_000

// compileRegex compiles a pattern with DuckDB's options.
func compileRegex(pattern, options string, source func(string) string) (re *regex, global bool, err error) {
	if len(pattern) > maxPattern {
		return nil, false, errs.New(errs.Data, "evaluate", "a regular expression of %d bytes is too long; %d is the most", len(pattern), maxPattern)
	}
	flags := ""
	for _, o := range options {
		switch o {
		case 'i':
			flags += "i"
		case 's':
			flags += "s"
		case 'c', 'e', 'm', 'n', 'p':
		case 'g':
			global = true
		case 'l':
			pattern = regexp.QuoteMeta(pattern)
		default:
			return nil, false, errs.New(errs.Data, "evaluate", "there is no regular expression option '%c'", o).WithHint("the options are c, i, l, m, s and g")
		}
	}
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re, err = newRegex(flags + source(pattern))
	if err != nil {
		return nil, false, errs.New(errs.Data, "evaluate", "'%s' is no regular expression: %s", pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, global, nil
}

func regexSource(p string) string { return p }
func wholeSource(p string) string { return `\A(?:` + p + `)\z` }

func globSource(p string) string {
	var b strings.Builder
	b.WriteString(`\A`)
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		case '\\':
			if i++; i < len(p) {
				b.WriteString(regexp.QuoteMeta(p[i : i+1]))
			}
		case '[':
			end := strings.IndexByte(p[i+1:], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			set := p[i+1 : i+1+end]
			if strings.HasPrefix(set, "!") {
				set = "^" + set[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(set, `\`, `\\`) + "]")
			i += end + 1
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	b.WriteString(`\z`)
	return b.String()
}

// constRegex is a pattern that is the same for all rows, compiled while planning.
type constRegex struct {
	re     *regex
	global bool
	err    error
}

// withRegex compiles the pattern, argument 1, and the options while planning where they are constants.
func withRegex(o Overload, opt int, source func(string) string) Overload {
	args, ret, k := o.Args, o.Returns, o.Kernel
	o.Resolve = func(_ []types.Type, consts []types.Value) (Resolved, error) {
		r := Resolved{Args: args, Returns: ret, Kernel: k}
		pattern, ok := constAt(consts, 1).(string)
		options, ok2 := "", true
		if opt >= 0 {
			options, ok2 = constAt(consts, opt).(string)
		}
		if ok && ok2 {
			re, global, err := compileRegex(pattern, options, source)
			r.Data = &constRegex{re, global, err}
		}
		return r, nil
	}
	return o
}

// regexes gives each row its compiled pattern: argument 1, with options in argument opt (-1: none). A pattern that is the same for all
// rows is compiled once, and one that does not compile makes the row fail.
func regexes(c *Call, opt int, source func(string) string) (re func(i int) *regex, global func(i int) bool) {
	p := textCol(c, 1)
	var options textColumn
	if opt >= 0 {
		options = textCol(c, opt)
	}
	if ready, ok := c.Data.(*constRegex); ok {
		if ready.err == nil {
			return func(int) *regex { return ready.re }, func(int) bool { return ready.global }
		}
		return func(i int) *regex { c.Fail(i, ready.err); return nil }, func(int) bool { return false }
	}
	var last *regex
	var lastGlobal bool
	var lastErr error
	lastPattern, lastOptions, known := "", "", false
	get := func(i int) *regex {
		pattern, o := p.at(i), []byte(nil)
		if opt >= 0 {
			o = options.at(i)
		}
		if !known || string(pattern) != lastPattern || string(o) != lastOptions {
			lastPattern, lastOptions, known = string(pattern), string(o), true
			last, lastGlobal, lastErr = compileRegex(lastPattern, lastOptions, source)
		}
		if lastErr != nil {
			c.Fail(i, lastErr)
			return nil
		}
		return last
	}
	return get, func(int) bool { return lastGlobal }
}

func regexOverload(ret types.Type, args int, source func(string) string, k func(c *Call, re func(i int) *regex) (arrow.Array, error)) Overload {
	opt := -1
	if args == 3 {
		opt = 2
	}
	return withRegex(fallible(same(str, args), ret, func(c *Call) (arrow.Array, error) {
		re, _ := regexes(c, opt, source)
		return k(c, re)
	}), opt, source)
}

func matchKernel(c *Call, re func(i int) *regex) (arrow.Array, error) {
	s := textCol(c, 0)
	return bools(c, func(i int) bool {
		r := re(i)
		return r != nil && r.matches(s.at(i))
	})
}

func extractKernel(c *Call, re func(i int) *regex) (arrow.Array, error) {
	s := textCol(c, 0)
	return texts(c, func(dst []byte, i int) []byte {
		if r := re(i); r != nil {
			dst = append(dst, r.match(s.at(i))...)
		}
		return dst
	})
}

func regexExtract() Overload {
	return withRegex(fallible(Types{str, str, types.Int32}, str, func(c *Call) (arrow.Array, error) {
		re, _ := regexes(c, -1, regexSource)
		s, group := textCol(c, 0), col[int32](c, 2)
		var room [20]int
		return texts(c, func(dst []byte, i int) []byte {
			r := re(i)
			if r == nil {
				return dst
			}
			g := int(group.at(i))
			if g < 0 || g > r.NumSubexp() {
				c.failf(i, "the regular expression has no group %d", g)
				return dst
			}
			text := s.at(i)
			if m := r.find(text, room[:0]); m != nil && m[2*g] >= 0 {
				dst = append(dst, text[m[2*g]:m[2*g+1]]...)
			}
			return dst
		})
	}), -1, regexSource)
}

func regexReplace(args int) Overload {
	opt := -1
	if args == 4 {
		opt = 3
	}
	return withRegex(fallible(same(str, args), str, func(c *Call) (arrow.Array, error) {
		re, global := regexes(c, opt, regexSource)
		s, to := textCol(c, 0), textCol(c, 2)
		var room [20]int
		return texts(c, func(dst []byte, i int) []byte {
			r := re(i)
			if r == nil {
				return dst
			}
			n := 1
			if global(i) {
				n = -1
			}
			text, with, at := s.at(i), to.at(i), 0
			if n == 1 {
				if m := r.find(text, room[:0]); m != nil {
					dst = expand(append(dst, text[:m[0]]...), with, text, m)
					at = m[1]
				}
				return append(dst, text[at:]...)
			}
			for _, m := range r.FindAllSubmatchIndex(text, n) {
				dst = append(dst, text[at:m[0]]...)
				dst = expand(dst, with, text, m)
				at = m[1]
			}
			return append(dst, text[at:]...)
		})
	}), opt, regexSource)
}

// expand writes a replacement; \1 to \9 are groups, \0 the match, \\ a backslash.
func expand(dst, with, text []byte, m []int) []byte {
	for k := 0; k < len(with); k++ {
		if with[k] != '\\' || k+1 == len(with) {
			dst = append(dst, with[k])
			continue
		}
		k++
		g := int(with[k] - '0')
		switch {
		case with[k] >= '0' && with[k] <= '9':
			if 2*g+1 < len(m) && m[2*g] >= 0 {
				dst = append(dst, text[m[2*g]:m[2*g+1]]...)
			}
		default:
			dst = append(dst, with[k])
		}
	}
	return dst
}

// partMatch is the operator ~ between texts.
var partMatch = []Overload{regexOverload(types.Bool, 2, regexSource, matchKernel)}
