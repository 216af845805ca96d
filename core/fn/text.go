package fn

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/types"
)

var str = types.String

// textFn is a function from one text to another.
func textFn(name, summary string, f func(dst, s []byte) []byte, examples ...Example) *Scalar {
	return &Scalar{Name: name, Category: Text, Summary: summary, Examples: examples,
		Overloads: []Overload{strict(Types{str}, str, func(c *Call) (arrow.Array, error) {
			s := textCol(c, 0)
			return texts(c, func(dst []byte, i int) []byte { return f(dst, s.at(i)) })
		})}}
}

// textTest is a test of two texts.
func textTest(name, summary string, f func(a, b []byte) bool, aliases []string, examples ...Example) *Scalar {
	return &Scalar{Name: name, Category: Text, Summary: summary, Aliases: aliases, Examples: examples,
		Overloads: []Overload{strict(Types{str, str}, types.Bool, func(c *Call) (arrow.Array, error) {
			a, b := textCol(c, 0), textCol(c, 1)
			return bools(c, func(i int) bool { return f(a.at(i), b.at(i)) })
		})}}
}

func textNumber[R any](args Types, ret types.Type, f func(s []byte) R) Overload {
	return strict(args, ret, func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		return fixed(c, func(i int) R { return f(s.at(i)) })
	})
}

func textPair[R any](ret types.Type, f func(a, b []byte) R) []Overload {
	return []Overload{strict(Types{str, str}, ret, func(c *Call) (arrow.Array, error) {
		a, b := textCol(c, 0), textCol(c, 1)
		return fixed(c, func(i int) R { return f(a.at(i), b.at(i)) })
	})}
}

var textFunctions = []*Scalar{
	{Name: "||", Category: Text, Operator: true, Summary: "Join texts, blobs or lists; NULL if either is NULL.", Overloads: []Overload{
		{Args: Types{types.AnyType, types.AnyType}, Resolve: resolveJoin}},
		Examples: []Example{ex("'a' || 'b'", "ab"), ex("'a' || 1", "a1"), ex("[1, 2] || [3]", "[1, 2, 3]")}},
	{Name: "concat", Category: Text, Nulls: NullAware, Summary: "Join the texts of all arguments, leaving out NULLs; lists give a list.", Overloads: []Overload{
		{Args: Types{types.AnyType, types.AnyType}, Variadic: true, Resolve: resolveConcat}},
		Examples: []Example{ex("concat('a', NULL, 1)", "a1")}},
	{Name: "concat_ws", Category: Text, Nulls: NullAware, Summary: "Join the texts of the arguments that are not NULL with a separator between.", Overloads: []Overload{
		{Args: Types{str, types.AnyType}, Variadic: true, Resolve: func(args []types.Type, _ []types.Value) (Resolved, error) {
			return Resolved{Args: same(str, len(args)), Returns: str, Kernel: concatWS}, nil
		}}},
		Examples: []Example{ex("concat_ws(',', 'a', NULL, 'b')", "a,b")}},
	{Name: "lower", Category: Text, Summary: "Lower-case a text.", Aliases: []string{"lcase"}, Overloads: []Overload{strict(Types{str}, str, changeCase(lower, kernels.LowerASCII))}, Examples: []Example{ex("lower('ABC')", "abc")}},
	{Name: "upper", Category: Text, Summary: "Upper-case a text.", Aliases: []string{"ucase"}, Overloads: []Overload{strict(Types{str}, str, changeCase(upper, kernels.UpperASCII))}, Examples: []Example{ex("upper('abc')", "ABC"), ex("upper(NULL)", "NULL")}},
	textFn("initcap", "Upper-case the first letter of each word, lower-case the others.", initcap, ex("initcap('hello wORLD')", "Hello World")).differs("DuckDB has no such function; this is PostgreSQL's."),
	textFn("reverse", "The characters in reverse order.", reverse, ex("reverse('abc')", "cba")),
	{Name: "length", Category: Text, Summary: "The number of characters of a text, or of elements of a list.", Aliases: []string{"len", "char_length", "character_length", "array_length"},
		Overloads: []Overload{strict(Types{str}, types.Int64, lengths), listOverload(Types{anyList}, func(types.Type) types.Type { return types.Int64 }, listLength)},
		Examples:  []Example{ex("length('héllo')", "5"), ex("length([1, 2])", "2")}},
	{Name: "strlen", Category: Text, Summary: "The number of bytes of a text.", Overloads: []Overload{textNumber(Types{str}, types.Int64, func(s []byte) int64 { return int64(len(s)) })},
		Examples: []Example{ex("strlen('héllo')", "6")}},
	{Name: "octet_length", Category: Text, Summary: "The number of bytes of a blob.", Overloads: []Overload{textNumber(Types{types.Binary}, types.Int64, func(s []byte) int64 { return int64(len(s)) })},
		Examples: []Example{ex("octet_length('abc'::BLOB)", "3")}},
	{Name: "bit_length", Category: Text, Summary: "The number of bits of a text.", Overloads: []Overload{textNumber(Types{str}, types.Int64, func(s []byte) int64 { return 8 * int64(len(s)) })},
		Examples: []Example{ex("bit_length('abc')", "24")}},
	{Name: "substring", Category: Text, Summary: "A part of a text: from a position (1 is the first character, -1 the last), of a length.", Aliases: []string{"substr"},
		Overloads: []Overload{strict(Types{str, types.Int64}, str, substring), strict(Types{str, types.Int64, types.Int64}, str, substring)},
		Examples:  []Example{ex("substring('hello', 2, 3)", "ell"), ex("substring('hello', -3, 2)", "ll")}},
	{Name: "left", Category: Text, Summary: "The first n characters; a negative n leaves out the last.", Overloads: []Overload{strict(Types{str, types.Int64}, str, edge(func(s []byte, n int64) []byte {
		if n < 0 {
			n = max(0, int64(kernels.Chars(s))+n)
		}
		return s[:kernels.SkipChars(s, clampInt(n))]
	}))}, Examples: []Example{ex("left('hello', 2)", "he")}},
	{Name: "right", Category: Text, Summary: "The last n characters; a negative n leaves out the first.", Overloads: []Overload{strict(Types{str, types.Int64}, str, edge(func(s []byte, n int64) []byte {
		skip := -n
		if n >= 0 {
			skip = max(0, int64(kernels.Chars(s))-n)
		}
		return s[kernels.SkipChars(s, clampInt(skip)):]
	}))}, Examples: []Example{ex("right('hello', 2)", "lo")}},
	{Name: "lpad", Category: Text, Summary: "Fill up on the left to a length, or cut to it.", Overloads: []Overload{fallible(Types{str, types.Int32, str}, str, pad(true))}, Examples: []Example{ex("lpad('a', 3, 'xy')", "xya")}},
	{Name: "rpad", Category: Text, Summary: "Fill up on the right to a length, or cut to it.", Overloads: []Overload{fallible(Types{str, types.Int32, str}, str, pad(false))}, Examples: []Example{ex("rpad('a', 3, 'xy')", "axy")}},
	trimFn("trim", "Cut spaces, or the characters given, off both ends.", true, true, "trim('  a ')", "a"),
	trimFn("ltrim", "Cut spaces, or the characters given, off the left end.", true, false, "ltrim('xxax', 'x')", "ax"),
	trimFn("rtrim", "Cut spaces, or the characters given, off the right end.", false, true, "rtrim('xaxx', 'x')", "xa"),
	{Name: "replace", Category: Text, Summary: "Replace every occurrence of one text by another.", Overloads: []Overload{strict(Types{str, str, str}, str, func(c *Call) (arrow.Array, error) {
		s, from, to := textCol(c, 0), textCol(c, 1), textCol(c, 2)
		if c.N > 0 && from.mask == 0 && to.mask == 0 && s.mask != 0 && len(from.at(0)) > 0 && len(to.at(0)) <= len(from.at(0)) {
			offs, data := kernels.Replace(kernels.Texts{Offs: s.offs, Data: s.data}, c.N, from.at(0), to.at(0))
			return kernels.NewBytes(c.Ret.Arrow(), offs, data, nil), nil
		}
		return texts(c, func(dst []byte, i int) []byte { return replace(dst, s.at(i), from.at(i), to.at(i)) })
	})}, Examples: []Example{ex("replace('banana', 'a', 'o')", "bonono")}},
	{Name: "repeat", Category: Text, Summary: "The text n times.", Overloads: []Overload{fallible(Types{str, types.Int64}, str, func(c *Call) (arrow.Array, error) {
		s, n := textCol(c, 0), col[int64](c, 1)
		return texts(c, func(dst []byte, i int) []byte {
			t := s.at(i)
			if k := n.at(i); k > 0 && len(t) > 0 {
				if k > maxText/int64(len(t)) {
					c.failf(i, "repeat(…, %d) is longer than 2 GiB", k)
					return dst
				}
				for range k {
					dst = append(dst, t...)
				}
			}
			return dst
		})
	})}, Examples: []Example{ex("repeat('ab', 3)", "ababab")}},
	{Name: "strpos", Category: Text, Summary: "Where a text occurs first in another, counting characters from 1; 0 if nowhere.", Aliases: []string{"position", "instr"},
		Overloads: textPair(types.Int64, func(s, part []byte) int64 {
			at := bytes.Index(s, part)
			if at < 0 {
				return 0
			}
			return int64(kernels.Chars(s[:at])) + 1
		}), Examples: []Example{ex("strpos('hello', 'l')", "3")}},
	{Name: "contains", Category: Text, Summary: "Whether a text holds another, a list an element, or a map a key.",
		Overloads: append([]Overload{strict(Types{str, str}, types.Bool, func(c *Call) (arrow.Array, error) {
			a, b := textCol(c, 0), textCol(c, 1)
			return bools(c, func(i int) bool { return bytes.Contains(a.at(i), b.at(i)) })
		})}, listContains...), Examples: []Example{ex("contains('hello', 'ell')", "true")}},
	textTest("starts_with", "Whether a text begins with another.", bytes.HasPrefix, []string{"prefix", "^@"}, ex("starts_with('hello', 'he')", "true")),
	textTest("ends_with", "Whether a text ends with another.", bytes.HasSuffix, []string{"suffix"}, ex("ends_with('hello', 'lo')", "true")),
	{Name: "split_part", Category: Text, Summary: "The n-th part of a text cut at a separator; a negative n counts from the end.", Overloads: []Overload{strict(Types{str, str, types.Int64}, str, splitPart)},
		Examples: []Example{ex("split_part('a,b,c', ',', 2)", "b"), ex("split_part('a,b,c', ',', -1)", "c")}},
	{Name: "string_split", Category: Text, Summary: "The parts of a text cut at a separator, as a list.", Aliases: []string{"split", "str_split", "string_to_array"}, Overloads: []Overload{
		strict(Types{str, str}, types.ListOf(str), func(c *Call) (arrow.Array, error) {
			s, sep := textCol(c, 0), textCol(c, 1)
			return values(c, func(i int) types.Value { return textList(strings.Split(s.str(i), sep.str(i))) })
		})}, Examples: []Example{ex("string_split('a,b', ',')", "[a, b]")}},
	{Name: "ascii", Category: Text, Summary: "The code point of the first character; 0 for an empty text.", Overloads: []Overload{textNumber(Types{str}, types.Int32, func(s []byte) int32 {
		if len(s) == 0 {
			return 0
		}
		r, _ := utf8.DecodeRune(s)
		return r
	})}, Examples: []Example{ex("ascii('a')", "97")}},
	{Name: "unicode", Category: Text, Summary: "The code point of the first character; -1 for an empty text.", Aliases: []string{"ord"}, Overloads: []Overload{textNumber(Types{str}, types.Int32, func(s []byte) int32 {
		if len(s) == 0 {
			return -1
		}
		r, _ := utf8.DecodeRune(s)
		return r
	})}, Examples: []Example{ex("unicode('é')", "233")}},
	{Name: "chr", Category: Text, Summary: "The character of a code point.", Overloads: []Overload{fallible(Types{types.Int32}, str, func(c *Call) (arrow.Array, error) {
		n := col[int32](c, 0)
		return texts(c, func(dst []byte, i int) []byte {
			if !utf8.ValidRune(n.at(i)) {
				c.failf(i, "there is no character %d", n.at(i))
				return dst
			}
			return utf8.AppendRune(dst, n.at(i))
		})
	})}, Examples: []Example{ex("chr(233)", "é")}},
	{Name: "translate", Category: Text, Summary: "Replace characters one by one; those without a partner are dropped.", Overloads: []Overload{strict(Types{str, str, str}, str, func(c *Call) (arrow.Array, error) {
		s, from, to := textCol(c, 0), textCol(c, 1), textCol(c, 2)
		return texts(c, func(dst []byte, i int) []byte {
			f, t := []rune(from.str(i)), []rune(to.str(i))
		next:
			for _, r := range s.str(i) {
				for k, x := range f {
					if x == r {
						if k < len(t) {
							dst = utf8.AppendRune(dst, t[k])
						}
						continue next
					}
				}
				dst = utf8.AppendRune(dst, r)
			}
			return dst
		})
	})}, Examples: []Example{ex("translate('hello', 'el', 'ip')", "hippo")}},
	{Name: "levenshtein", Category: Text, Summary: "How many characters must be inserted, deleted or replaced to turn one text into another.", Aliases: []string{"editdist3"},
		Overloads: textPair(types.Int64, levenshtein), Examples: []Example{ex("levenshtein('kitten', 'sitting')", "3")}},
	{Name: "hamming", Category: Text, Summary: "In how many places two texts of one length differ.", Aliases: []string{"mismatches"}, Overloads: []Overload{fallible(Types{str, str}, types.Int64, func(c *Call) (arrow.Array, error) {
		a, b := textCol(c, 0), textCol(c, 1)
		return fixed(c, func(i int) int64 {
			x, y := a.at(i), b.at(i)
			if len(x) != len(y) {
				c.failf(i, "hamming() needs texts of the same length")
				return 0
			}
			n := int64(0)
			for k := range x {
				if x[k] != y[k] {
					n++
				}
			}
			return n
		})
	})}, Examples: []Example{ex("hamming('abc', 'abd')", "1")}},
}

func (f *Scalar) differs(how string) *Scalar {
	f.Differs = how
	return f
}

func clampInt(n int64) int { return int(min(n, math.MaxInt32)) }

// resolveJoin is ||: lists join lists, blobs blobs, everything else is text.
func resolveJoin(args []types.Type, consts []types.Value) (Resolved, error) {
	a, b := args[0], args[1]
	switch {
	case a.Kind == types.List || b.Kind == types.List:
		t, ok := types.Common(a, b)
		if !ok {
			return Resolved{}, errs.New(errs.Schema, "bind", "cannot join %s and %s", a, b)
		}
		return Resolved{Args: Types{t, t}, Returns: t, Kernel: concatLists}, nil
	case a.Kind == types.Blob && (b.Kind == types.Blob || b.Kind == types.Null), b.Kind == types.Blob && a.Kind == types.Null:
		return Resolved{Args: Types{types.Binary, types.Binary}, Returns: types.Binary, Kernel: joinTexts}, nil
	}
	return Resolved{Args: Types{str, str}, Returns: str, Kernel: joinTexts}, nil
}

func joinTexts(c *Call) (arrow.Array, error) {
	a, b := textCol(c, 0), textCol(c, 1)
	return texts(c, func(dst []byte, i int) []byte { return append(append(dst, a.at(i)...), b.at(i)...) })
}

func resolveConcat(args []types.Type, consts []types.Value) (Resolved, error) {
	for _, t := range args {
		if t.Kind == types.List {
			t, err := commonOf(args, consts)
			return Resolved{Args: same(t, len(args)), Returns: t, Kernel: concatLists}, err
		}
	}
	return Resolved{Args: same(str, len(args)), Returns: str, Kernel: func(c *Call) (arrow.Array, error) {
		return aware(c, func(dst []byte, i int, at func(a int) ([]byte, bool)) ([]byte, bool) {
			for a := range c.Args {
				if s, ok := at(a); ok {
					dst = append(dst, s...)
				}
			}
			return dst, true
		})
	}}, nil
}

func concatWS(c *Call) (arrow.Array, error) {
	return aware(c, func(dst []byte, i int, at func(a int) ([]byte, bool)) ([]byte, bool) {
		sep, ok := at(0)
		if !ok {
			return dst, false
		}
		first := true
		for a := 1; a < len(c.Args); a++ {
			s, ok := at(a)
			if !ok {
				continue
			}
			if !first {
				dst = append(dst, sep...)
			}
			first = false
			dst = append(dst, s...)
		}
		return dst, true
	})
}

// aware makes texts of texts, some of which may be NULL.
func aware(c *Call, f func(dst []byte, i int, at func(a int) ([]byte, bool)) ([]byte, bool)) (arrow.Array, error) {
	cols := make([]textColumn, len(c.Args))
	valid := make([][]byte, len(c.Args))
	for a := range c.Args {
		cols[a], valid[a] = textCol(c, a), kernels.Valid(c.Args[a].Array)
	}
	offs := make([]int32, c.N+1)
	var data []byte
	ok := kernels.Ones(c.N)
	for i := range c.N {
		next, keep := f(data, i, func(a int) ([]byte, bool) {
			return cols[a].at(i), valid[a] == nil || kernels.Bit(valid[a], i&cols[a].mask)
		})
		if keep {
			data = next
		} else {
			kernels.ClearBit(ok, i)
		}
		offs[i+1] = int32(len(data))
	}
	return kernels.NewBytes(c.Ret.Arrow(), offs, data, ok), nil
}

// changeCase works on the bytes of the whole column at once while they are ASCII, and text by text otherwise.
func changeCase(one func(dst, s []byte) []byte, ascii func([]byte)) Kernel {
	return func(c *Call) (arrow.Array, error) {
		s := textCol(c, 0)
		if n := len(s.offs) - 1; n == c.N {
			if all := s.data[s.offs[0]:s.offs[n]]; kernels.ASCII(all) {
				data := slices.Clone(all)
				ascii(data)
				offs := make([]int32, n+1)
				for i, o := range s.offs {
					offs[i] = o - s.offs[0]
				}
				return kernels.NewBytes(c.Ret.Arrow(), offs, data, nil), nil
			}
		}
		return texts(c, func(dst []byte, i int) []byte { return one(dst, s.at(i)) })
	}
}

func lower(dst, s []byte) []byte {
	if !kernels.ASCII(s) {
		for _, r := range string(s) {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
		return dst
	}
	at := len(dst)
	dst = append(dst, s...)
	kernels.LowerASCII(dst[at:])
	return dst
}

func upper(dst, s []byte) []byte {
	if !kernels.ASCII(s) {
		for _, r := range string(s) {
			if r == 'ß' {
				r = 'ẞ'
			}
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
		}
		return dst
	}
	at := len(dst)
	dst = append(dst, s...)
	kernels.UpperASCII(dst[at:])
	return dst
}

func initcap(dst, s []byte) []byte {
	inside := false
	for _, r := range string(s) {
		if inside {
			r = unicode.ToLower(r)
		} else {
			r = unicode.ToUpper(r)
		}
		inside = unicode.IsLetter(r) || unicode.IsDigit(r)
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// reverse keeps combining marks behind their letters.
func reverse(dst, s []byte) []byte {
	end := len(s)
	for end > 0 {
		at := end
		for at > 0 {
			r, w := utf8.DecodeLastRune(s[:at])
			at -= w
			if !unicode.Is(unicode.Mn, r) {
				break
			}
		}
		dst = append(dst, s[at:end]...)
		end = at
	}
	return dst
}

func substring(c *Call) (arrow.Array, error) {
	s, from := textCol(c, 0), col[int64](c, 1)
	if len(c.Args) == 2 {
		return texts(c, func(dst []byte, i int) []byte {
			return append(dst, kernels.Substring(s.at(i), from.at(i), math.MaxInt32)...)
		})
	}
	n := col[int64](c, 2)
	return texts(c, func(dst []byte, i int) []byte {
		return append(dst, kernels.Substring(s.at(i), clamp(from.at(i)), clamp(n.at(i)))...)
	})
}

func clamp(n int64) int64 { return max(min(n, math.MaxInt32), math.MinInt32) }

func edge(f func(s []byte, n int64) []byte) Kernel {
	return func(c *Call) (arrow.Array, error) {
		s, n := textCol(c, 0), col[int64](c, 1)
		return texts(c, func(dst []byte, i int) []byte { return append(dst, f(s.at(i), n.at(i))...) })
	}
}

func pad(left bool) Kernel {
	return func(c *Call) (arrow.Array, error) {
		s, n, fill := textCol(c, 0), col[int32](c, 1), textCol(c, 2)
		return texts(c, func(dst []byte, i int) []byte {
			t, want := s.at(i), int(n.at(i))
			have := kernels.Chars(t)
			if want <= have {
				return append(dst, t[:kernels.SkipChars(t, max(want, 0))]...)
			}
			f := fill.at(i)
			if len(f) == 0 {
				c.failf(i, "cannot pad to %d characters with nothing", want)
				return dst
			}
			if !left {
				dst = append(dst, t...)
			}
			chars := kernels.Chars(f)
			for missing := want - have; missing > 0; missing -= chars {
				dst = append(dst, f[:kernels.SkipChars(f, min(missing, chars))]...)
			}
			if left {
				dst = append(dst, t...)
			}
			return dst
		})
	}
}

func trimFn(name, summary string, left, right bool, sql, want string) *Scalar {
	cut := func(s []byte, set string) []byte {
		if left {
			s = bytes.TrimLeft(s, set)
		}
		if right {
			s = bytes.TrimRight(s, set)
		}
		return s
	}
	return &Scalar{Name: name, Category: Text, Summary: summary, Examples: []Example{ex(sql, want)}, Overloads: []Overload{
		strict(Types{str}, str, func(c *Call) (arrow.Array, error) {
			s := textCol(c, 0)
			return texts(c, func(dst []byte, i int) []byte { return append(dst, cut(s.at(i), " ")...) })
		}),
		strict(Types{str, str}, str, func(c *Call) (arrow.Array, error) {
			s, set := textCol(c, 0), textCol(c, 1)
			return texts(c, func(dst []byte, i int) []byte { return append(dst, cut(s.at(i), set.str(i))...) })
		}),
	}}
}

func replace(dst, s, from, to []byte) []byte {
	if len(from) == 0 {
		return append(dst, s...)
	}
	for {
		at := bytes.Index(s, from)
		if at < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:at]...), to...)
		s = s[at+len(from):]
	}
}

func splitPart(c *Call) (arrow.Array, error) {
	s, sep, n := textCol(c, 0), textCol(c, 1), col[int64](c, 2)
	return texts(c, func(dst []byte, i int) []byte { return append(dst, partOf(s.at(i), sep.at(i), n.at(i))...) })
}

func partOf(s, sep []byte, n int64) []byte {
	switch {
	case n == 0:
		return nil
	case len(sep) == 0:
		chars := int64(kernels.Chars(s))
		if n < 0 {
			n += chars + 1
		}
		if n < 1 || n > chars {
			return nil
		}
		return kernels.Substring(s, n, 1)
	case n < 0:
		for {
			at := bytes.LastIndex(s, sep)
			n++
			switch {
			case n == 0 && at < 0:
				return s
			case n == 0:
				return s[at+len(sep):]
			case at < 0:
				return nil
			}
			s = s[:at]
		}
	}
	for ; n > 1; n-- {
		at := bytes.Index(s, sep)
		if at < 0 {
			return nil
		}
		s = s[at+len(sep):]
	}
	if at := bytes.Index(s, sep); at >= 0 {
		return s[:at]
	}
	return s
}

func textList(parts []string) types.Value {
	out := make([]types.Value, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}

func levenshtein(a, b []byte) int64 {
	x, y := []rune(string(a)), []rune(string(b))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i, r := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j, q := range y {
			cost := diagonal
			if r != q {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, cost)
		}
	}
	return int64(row[len(y)])
}

func lengths(c *Call) (arrow.Array, error) {
	s := textCol(c, 0)
	if s.mask == 0 {
		return fixed(c, func(i int) int64 { return int64(kernels.Chars(s.at(i))) })
	}
	out := make([]int64, c.N)
	kernels.Lengths(out, kernels.Texts{Offs: s.offs, Data: s.data})
	return kernels.NewFixed(c.Ret.Arrow(), out, nil), nil
}

func listLength(c *Call) (arrow.Array, error) {
	offs := listOffsets(c.Args[0].Array)
	mask := maskOf(c.Args[0])
	return fixed(c, func(i int) int64 { i &= mask; return int64(offs[i+1] - offs[i]) })
}
