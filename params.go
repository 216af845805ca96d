package riverbed

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/core/bind"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/expr"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// Params are the values of a text's parameters: by "1", "2", … for $1 and ?, by name for :name and $name. A value is nil,
// a bool, a number, a string, []byte, a time.Time, a time.Duration, a *big.Int, a []any, a map[string]any, or a Param.
type Params map[string]any

// Positional are the values of $1, $2, … or of one ? after the other.
func Positional(values ...any) Params {
	p := Params{}
	for i, v := range values {
		p[strconv.Itoa(i+1)] = v
	}
	return p
}

// Param is a value as its text and the SQL type that the text is cast to; of the type BLOB the text is hexadecimal, and
// without a type it is a number. Instead it may be a list, or the fields of a STRUCT. It is what a host language sends.
type Param struct {
	Type   string       `json:"type"`
	Text   string       `json:"text"`
	List   *[]*Param    `json:"list"`
	Fields []ParamField `json:"fields"`
}

// ParamField is one field of a STRUCT; a nil value is NULL.
type ParamField struct {
	Name  string `json:"name"`
	Value *Param `json:"value"`
}

// paramExpr writes a value as the constant that stands for it.
func paramExpr(v any) (sql.Expr, error) {
	switch v := v.(type) {
	case nil:
		return &sql.Literal{Kind: sql.LitNull, Text: "null"}, nil
	case bool:
		return &sql.Literal{Kind: sql.LitBool, Text: strconv.FormatBool(v)}, nil
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, *big.Int:
		return wholeNumber(fmt.Sprint(v)), nil
	case float32, float64:
		return typedConstant("DOUBLE", fmt.Sprint(v))
	case string:
		return &sql.Literal{Kind: sql.LitString, Text: v}, nil
	case []byte:
		return &sql.Literal{Kind: sql.LitBlob, Text: string(v)}, nil
	case time.Time:
		return typedConstant("TIMESTAMPTZ", v.UTC().Format("2006-01-02 15:04:05.999999+00"))
	case time.Duration:
		return typedConstant("INTERVAL", fmt.Sprintf("%d microseconds", v.Microseconds()))
	case []any:
		list := &sql.List{}
		for _, x := range v {
			item, err := paramExpr(x)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, item)
		}
		return list, nil
	case map[string]any:
		out := &sql.Struct{}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			x, err := paramExpr(v[name])
			if err != nil {
				return nil, err
			}
			out.Fields = append(out.Fields, sql.StructField{Name: sql.Ident{Name: name}, Value: x})
		}
		return out, nil
	case *Param:
		return v.expr()
	case Param:
		return v.expr()
	}
	return nil, errs.New(errs.Usage, "sql", "a parameter cannot be a %T", v)
}

func (p *Param) expr() (sql.Expr, error) {
	switch {
	case p == nil:
		return paramExpr(nil)
	case p.List != nil:
		list := &sql.List{}
		for _, x := range *p.List {
			item, err := x.expr()
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, item)
		}
		return list, nil
	case p.Fields != nil:
		out := &sql.Struct{}
		for _, f := range p.Fields {
			x, err := f.Value.expr()
			if err != nil {
				return nil, err
			}
			out.Fields = append(out.Fields, sql.StructField{Name: sql.Ident{Name: f.Name}, Value: x})
		}
		return out, nil
	case p.Type == "":
		return wholeNumber(p.Text), nil
	case p.Type == "VARCHAR":
		return paramExpr(p.Text)
	case p.Type == "BLOB":
		b, err := hex.DecodeString(p.Text)
		if err != nil {
			return nil, errs.New(errs.Usage, "sql", "a BLOB parameter is not hexadecimal")
		}
		return paramExpr(b)
	}
	return typedConstant(p.Type, p.Text)
}

// wholeNumber is a number of any size, whose sign is an operator.
func wholeNumber(text string) sql.Expr {
	if text == "-2147483648" { // the least INTEGER, which as the negation of a number is a BIGINT
		x, _ := typedConstant("INTEGER", text)
		return x
	}
	digits, negative := strings.CutPrefix(text, "-")
	n := &sql.Literal{Kind: sql.LitInt, Text: digits}
	if negative {
		return &sql.Unary{Op: "-", X: n}
	}
	return n
}

func typedConstant(name, text string) (sql.Expr, error) {
	x, err := sql.ParseExpr("CAST(NULL AS " + name + ")")
	if err != nil {
		return nil, errs.New(errs.Usage, "sql", "%q is not a type", name)
	}
	cast := x.(*sql.Cast)
	cast.X = &sql.Literal{Kind: sql.LitString, Text: text}
	return cast, nil
}

// values evaluates parameters, each once.
func (s *Session) values(given Params) (bind.Params, error) {
	if len(given) == 0 {
		return nil, nil
	}
	out := bind.Params{}
	for key, v := range given {
		x, err := paramExpr(v)
		if err == nil {
			out[strings.ToLower(key)], err = s.value(x)
		}
		if err != nil {
			e := errs.As(err)
			e.Msg = "the parameter " + paramName(key) + ": " + e.Msg
			return nil, e
		}
	}
	return out, nil
}

// value is the constant that an expression without columns stands for.
func (s *Session) value(x sql.Expr) (*expr.Lit, error) {
	e, err := bind.New(s.scope(), bind.Options{}).Expr(x, nil, types.Type{})
	if err != nil {
		return nil, err
	}
	return s.evaluated(e)
}

// evaluated is the constant that a bound expression without columns stands for.
func (s *Session) evaluated(e expr.Expr) (*expr.Lit, error) {
	v, t, err := s.evaluate(e)
	if err != nil {
		return nil, err
	}
	if v == nil && t.Kind == types.Null {
		return &expr.Lit{T: types.NullType}, nil
	}
	return &expr.Lit{V: v, T: t}, nil
}

func paramName(key string) string { return "$" + key }

// checkParams refuses values that no statement asks for, and the mixture of names and numbers.
func checkParams(stmts []sql.Statement, given bind.Params) error {
	used := map[string]bool{}
	for _, st := range stmts {
		if _, ok := st.(*sql.Prepare); ok {
			continue
		}
		if err := oneStyle(st); err != nil {
			return err
		}
		for _, p := range sql.Params(st) {
			used[p.Key()] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !used[key] {
			return errs.New(errs.Usage, "sql", "the text has no parameter %s, and a value is given for it", paramName(key))
		}
	}
	return nil
}

// oneStyle refuses a statement that has named and numbered parameters: which values would a list give?
func oneStyle(st sql.Statement) error {
	named, numbered := false, false
	for _, p := range sql.Params(st) {
		named, numbered = named || p.Name != "", numbered || p.Name == ""
		if named && numbered {
			return errs.E(errs.Schema, "sql", p.Pos, "a statement has either named parameters or numbered ones")
		}
	}
	return nil
}

// QueryWith is Query with values for the parameters of the text.
func (s *Session) QueryWith(ctx context.Context, text string, params Params, locals map[string]flow.Relation) (*Query, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	values, err := s.values(params)
	if err != nil {
		return nil, err
	}
	q, err := s.statements(ctx, text, given{locals, values})
	if err != nil {
		s.abort(s.transactionOf(ctx))
		return nil, errs.As(err).WithSQL(text)
	}
	return q, nil
}

// given is what a caller hands over with a text.
type given struct {
	locals map[string]flow.Relation
	params bind.Params
}

// secretParam is an option whose name says that its value is a secret, given as a parameter.
var secretParam = regexp.MustCompile(`(?i)\b\w*(?:password|secret|token|credential)\w*\s*(?:=>|:=|=)\s*[$:?]`)

// paramText tells the values of a statement's parameters, in the order of their names: the statement with other values is
// another one.
func paramText(text string, params bind.Params) string {
	if len(params) == 0 {
		return ""
	}
	parts := make([]string, 0, len(params))
	for _, key := range slices.Sorted(maps.Keys(params)) {
		v := expr.String(params[key])
		if secretParam.MatchString(text) {
			v = "***"
		}
		parts = append(parts, paramName(key)+" = "+v)
	}
	return " -- " + strings.Join(parts, ", ")
}
