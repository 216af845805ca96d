package fn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/types"
)

// formats is format and printf: their pieces are parsed to one form.
var formats = []*Scalar{
	{Name: "format", Category: Text, Summary: "Put values into a text: {} and {:.2f}, {:d}, {:>5}, {:,}, {0}.", Overloads: formatOverloads(parseBraces),
		Examples: []Example{ex("format('{} and {}', 1, 'a')", "1 and a"), ex("format('{:.2f}', 3.14159)", "3.14"), ex("format('{:,}', 1234567)", "1,234,567")}},
	{Name: "printf", Category: Text, Summary: "Put values into a text: %d, %s, %.2f.", Overloads: formatOverloads(parsePercents),
		Examples: []Example{ex("printf('%d-%s', 1, 'a')", "1-a")}},
}

// formatPiece is literal text, or an argument written by a verb of package fmt ("" is the value's own text).
type formatPiece struct {
	text string
	arg  int // -1: literal text
	spec string
	verb byte
	mark byte // between groups of three digits; 0: none
}

func formatOverloads(parse func(string) ([]formatPiece, error)) []Overload {
	return []Overload{{Args: Types{str, types.AnyType}, Variadic: true, Returns: str, Fallible: true, Kernel: func(c *Call) (arrow.Array, error) {
		f := textCol(c, 0)
		var pieces []formatPiece
		var err error
		last, known := "", false
		return texts(c, func(dst []byte, i int) []byte {
			if text := f.at(i); !known || string(text) != last {
				last, known = string(text), true
				pieces, err = parse(last)
			}
			if err != nil {
				c.Fail(i, err)
				return dst
			}
			for _, p := range pieces {
				switch {
				case p.arg < 0:
					dst = append(dst, p.text...)
				case p.arg+1 >= len(c.Args):
					c.failf(i, "the format '%s' asks for more than %d values", last, len(c.Args)-1)
					return dst
				default:
					dst = p.append(dst, valueAt(c, p.arg+1, i), c.Types[p.arg+1])
				}
			}
			return dst
		})
	}}}
}

// append writes a value.
func (p formatPiece) append(dst []byte, v types.Value, t types.Type) []byte {
	if p.mark == 0 || !t.IsNumeric() {
		return p.plain(dst, v, t)
	}
	return appendGrouped(dst, p.plain(nil, v, t), p.mark)
}

// appendGrouped puts a mark between groups of three digits before the point.
func appendGrouped(dst, number []byte, mark byte) []byte {
	from := 0
	for from < len(number) && (number[from] < '0' || number[from] > '9') {
		from++
	}
	to := from
	for to < len(number) && number[to] >= '0' && number[to] <= '9' {
		to++
	}
	dst = append(dst, number[:from]...)
	for i := from; i < to; i++ {
		if i > from && (to-i)%3 == 0 {
			dst = append(dst, mark)
		}
		dst = append(dst, number[i])
	}
	return append(dst, number[to:]...)
}

// plain writes a value. A verb for numbers takes any number; anything else is written as its text.
func (p formatPiece) plain(dst []byte, v types.Value, t types.Type) []byte {
	switch {
	case strings.IndexByte("feEgG", p.verb) >= 0 && p.verb != 0:
		var f float64
		switch x := v.(type) {
		case float64:
			f = x
		case float32:
			f = float64(x)
		case decimal128.Num:
			f = types.WideToFloat(x, int(t.Scale))
		case int64:
			f = float64(x)
		case uint64:
			f = float64(x)
		default:
			return append(dst, types.Format(v, t)...)
		}
		return fmt.Appendf(dst, "%"+p.spec+string(p.verb), f)
	case strings.IndexByte("dxXobc", p.verb) >= 0 && p.verb != 0:
		switch v.(type) {
		case int64, uint64:
			return fmt.Appendf(dst, "%"+p.spec+string(p.verb), v)
		}
	}
	if n, ok := v.(decimal128.Num); ok && t.Kind == types.Decimal {
		v, t = types.WideToFloat(n, int(t.Scale)), types.Float64
	}
	text := types.Format(v, t)
	if strings.HasPrefix(p.spec, "<") { // text stands on the left of its room, numbers on the right
		p.spec = "-" + p.spec[1:]
	} else if p.spec != "" && t.Kind == types.Varchar && p.verb == 0 && p.spec[0] != '>' {
		p.spec = "-" + p.spec
	}
	return fmt.Appendf(dst, "%"+strings.TrimLeft(p.spec, ">0")+"s", text)
}

func badFormat(s string) error {
	return errs.New(errs.Data, "evaluate", "'%s' is no format", s)
}

// parseBraces reads {}, {0}, {:spec}; {{ and }} are braces.
func parseBraces(s string) ([]formatPiece, error) {
	var out []formatPiece
	next := 0
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			return append(out, formatPiece{text: s, arg: -1}), nil
		}
		out = append(out, formatPiece{text: s[:at], arg: -1})
		if at+1 < len(s) && s[at+1] == s[at] {
			out, s = append(out, formatPiece{text: s[at : at+1], arg: -1}), s[at+2:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if s[at] == '}' || end < 0 {
			return nil, badFormat(s)
		}
		index, spec, _ := strings.Cut(s[at+1:end], ":")
		p := formatPiece{arg: next}
		if index == "" {
			next++
		} else if n, err := strconv.Atoi(index); err == nil && n >= 0 {
			p.arg = n
		} else {
			return nil, badFormat(s)
		}
		if err := p.setSpec(spec); err != nil {
			return nil, err
		}
		out, s = append(out, p), s[end+1:]
	}
	return out, nil
}

// parsePercents reads %d, %5.2f, %s; %% is a percent sign.
func parsePercents(s string) ([]formatPiece, error) {
	var out []formatPiece
	next := 0
	for s != "" {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			return append(out, formatPiece{text: s, arg: -1}), nil
		}
		out = append(out, formatPiece{text: s[:at], arg: -1})
		end := at + 1
		for end < len(s) && strings.IndexByte("+- #0123456789.l,", s[end]) >= 0 {
			end++
		}
		if end == len(s) {
			return nil, badFormat(s)
		}
		if s[end] == '%' {
			out, s = append(out, formatPiece{text: "%", arg: -1}), s[end+1:]
			continue
		}
		p := formatPiece{arg: next}
		next++
		if err := p.setSpec(strings.ReplaceAll(s[at+1:end+1], "l", "")); err != nil {
			return nil, err
		}
		out, s = append(out, p), s[end+1:]
	}
	return out, nil
}

// setSpec takes flags, width and precision, and a verb at the end.
func (p *formatPiece) setSpec(s string) error {
	if s != "" && (s[0] == ',' || s[0] == '_') {
		p.mark, s = s[0], s[1:]
	}
	if n := len(s); n > 0 && (s[n-1] < '0' || s[n-1] > '9') {
		p.verb, s = s[n-1], s[:n-1]
	}
	if p.verb == 'i' || p.verb == 'u' {
		p.verb = 'd'
	}
	if p.verb != 0 && strings.IndexByte("dsfeEgGxXobc", p.verb) < 0 || strings.Trim(s, "+- #0123456789.<>") != "" {
		return badFormat(s)
	}
	if p.verb == 's' {
		p.verb = 0
		if strings.Trim(s, "0123456789.") == "" && s != "" {
			s = ">" + s // printf's %5s stands on the right
		}
	}
	p.spec = s
	if p.verb != 0 {
		p.spec = strings.TrimLeft(s, ">")
	}
	return nil
}
