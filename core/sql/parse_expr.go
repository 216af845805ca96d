package sql

// Binding powers, loosest first; the levels and their order are DuckDB's.
const (
	precArrow   = iota + 1 // -> is so loose because it also makes lambdas
	precOr                 //
	precAnd                //
	precNot                // prefix
	precIs                 // IS …, IS DISTINCT FROM
	precCompare            // = <> < <= > >=; they do not chain
	precLike               // LIKE IN BETWEEN …
	precOp                 // || & | << >> ~ ->> @> … and prefix ~ @
	precAdd                //
	precMul                //
	precPow                //
	precAt                 // AT TIME ZONE, COLLATE
	precSign               // prefix - +
	precPostfix            // :: [] .
	precPrimary            //
)

type infix struct {
	op   Op
	prec int
}

var infixes = map[string]infix{
	"->": {OpArrow, precArrow}, "OR": {OpOr, precOr}, "AND": {OpAnd, precAnd},
	"=": {OpEq, precCompare}, "==": {OpEq, precCompare}, "<>": {OpNe, precCompare}, "!=": {OpNe, precCompare},
	"<": {OpLt, precCompare}, "<=": {OpLe, precCompare}, ">": {OpGt, precCompare}, ">=": {OpGe, precCompare},
	"||": {OpConcat, precOp}, "&": {OpBitAnd, precOp}, "|": {OpBitOr, precOp}, "<<": {OpShiftLeft, precOp},
	">>": {OpShiftRight, precOp}, "~": {OpMatch, precOp}, "!~": {OpNotMatch, precOp}, "~*": {OpIMatch, precOp}, "!~*": {OpNotIMatch, precOp}, "->>": {OpArrowText, precOp},
	"@>": {OpContains, precOp}, "<@": {OpContained, precOp}, "&&": {OpOverlaps, precOp}, "<->": {OpDistance, precOp}, "<=>": {OpCosine, precOp}, "^@": {OpStartsWith, precOp},
	"+": {OpAdd, precAdd}, "-": {OpSub, precAdd},
	"*": {OpMul, precMul}, "/": {OpDiv, precMul}, "//": {OpIntDiv, precMul}, "%": {OpMod, precMul},
	"^": {OpPow, precPow}, "**": {OpPow, precPow},
}

// likeSymbols are operators that mean LIKE and its relatives.
var likeSymbols = map[string]Match{
	"~~": {Kind: Like}, "~~*": {Kind: ILike}, "~~~": {Kind: Glob},
	"!~~": {Kind: Like, Not: true}, "!~~*": {Kind: ILike, Not: true},
}

// likeWords may follow NOT after an operand.
var likeWords = words("BETWEEN GLOB ILIKE IN LIKE SIMILAR")

func (p *parser) expr() Expr { return p.climb(0) }

// climb reads an expression whose operators bind at least as tightly as min.
// Left operands gather in a loop, so a chain of any length takes no stack.
func (p *parser) climb(min int) Expr {
	p.enter()
	defer p.leave()
	return p.climbFrom(p.prefix(), min)
}

// climbFrom goes on with an expression whose first operand was read.
func (p *parser) climbFrom(left Expr, min int) Expr {
	compared := false
	for {
		t := p.peek()
		in, isInfix := infixes[t.key]
		switch {
		case isInfix && in.prec >= min:
			if in.prec == precCompare && compared {
				p.failHint(t.pos, "write a < b AND b < c, or put parentheses", "comparisons do not chain: expected the end of the expression, found %s", t)
			}
			compared = in.prec == precCompare
			p.next()
			left = p.infix(left, in, At{t.pos})
			continue
		case isInfix:
			return left
		}
		next := p.wordInfix(left, min)
		if next == nil {
			next = p.postfix(left)
		}
		if next == nil {
			return left
		}
		left = next
	}
}

func (p *parser) infix(left Expr, in infix, at At) Expr {
	if (in.prec == precCompare || in.prec == precOp) && p.atAny("ANY", "SOME", "ALL") && p.ahead(1).key == "(" {
		q := &Quantified{At: at, X: left, Op: in.op, All: p.next().key == "ALL"}
		p.expect("(")
		if p.queryAhead() {
			q.Query = p.query()
		} else {
			q.Set = p.expr()
		}
		p.expect(")")
		return q
	}
	return &Binary{At: at, Op: in.op, Left: left, Right: p.climb(in.prec + 1)}
}

// wordInfix reads the operators that are words: IS, LIKE, IN, BETWEEN, AT TIME ZONE, …; nil when none follows.
func (p *parser) wordInfix(left Expr, min int) Expr {
	at := p.here()
	if m, ok := likeSymbols[p.peek().key]; ok && precOp >= min {
		p.next()
		m.At, m.X, m.Pattern = at, left, p.climb(precOp+1)
		return &m
	}
	if precIs >= min {
		switch {
		case p.accept("ISNULL"):
			return &Is{At: at, X: left, What: IsNull}
		case p.accept("NOTNULL"):
			return &Is{At: at, X: left, What: IsNull, Not: true}
		case p.accept("IS"):
			return p.is(left, at)
		}
	}
	if precLike >= min {
		not := p.at("NOT") && likeWords[p.ahead(1).key] && p.accept("NOT")
		switch {
		case p.accept("BETWEEN"):
			b := &Between{At: at, X: left, Not: not}
			b.Symmetric = p.accept("SYMMETRIC")
			p.accept("ASYMMETRIC")
			b.Lo = p.climb(precLike + 1)
			p.expect("AND")
			b.Hi = p.climb(precLike + 1)
			return b
		case p.accept("IN"):
			return p.in(left, not, at)
		case p.accept("SIMILAR"):
			p.expect("TO")
			return p.match(&Match{At: at, Kind: Similar, Not: not, X: left})
		case p.atAny("LIKE", "ILIKE", "GLOB"):
			return p.match(&Match{At: at, Kind: LikeKind(p.next().key), Not: not, X: left})
		}
	}
	if precAt >= min {
		switch {
		case p.accept("AT", "TIME", "ZONE"):
			return call(at, "timezone", p.climb(precAt+1), left)
		case p.accept("COLLATE"):
			return &Collate{At: at, X: left, Name: p.qualified("a collation")}
		}
	}
	return nil
}

func (p *parser) is(left Expr, at At) Expr {
	not := p.accept("NOT")
	switch {
	case p.accept("DISTINCT", "FROM"):
		op := OpDistinct
		if not {
			op = OpNotDistinct
		}
		return &Binary{At: at, Op: op, Left: left, Right: p.climb(precIs + 1)}
	case p.atAny("NULL", "TRUE", "FALSE", "UNKNOWN"):
		return &Is{At: at, X: left, Not: not, What: IsWhat(p.next().key)}
	}
	p.failExpected("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
	return nil
}

func (p *parser) in(left Expr, not bool, at At) Expr {
	in := &In{At: at, X: left, Not: not}
	switch {
	case !p.at("("):
		in.Set = p.climbFrom(p.primary(), precPostfix)
		return in
	case p.queryAfterParen():
		in.Query = p.parenQuery()
		return in
	}
	p.parenList(func() { in.List = append(in.List, p.expr()) })
	return in
}

func (p *parser) match(m *Match) Expr {
	m.Pattern = p.climb(precLike + 1)
	if p.accept("ESCAPE") {
		m.Escape = p.climb(precLike + 1)
	}
	return m
}

// postfix reads ::type, [subscript] or .field; nil when none follows.
func (p *parser) postfix(left Expr) Expr {
	at := p.here()
	switch {
	case p.accept("::"):
		return &Cast{At: at, X: left, Type: p.typeName()}
	case p.accept("["):
		return p.subscript(left, at)
	case p.accept("."):
		name := p.label("a field name")
		if !p.at("(") {
			return &Field{At: name.At, X: left, Name: name}
		}
		f := p.call(Name{name})
		f.Args = append([]Arg{{Value: arrowLambda(left)}}, f.Args...)
		return f
	}
	return nil
}

// subscript reads i], lo:hi] or lo:hi:step], after the bracket. A dash stands for an absent end: [1:-:2].
func (p *parser) subscript(x Expr, at At) Expr {
	part := func() Expr {
		if p.atAny(":", "]") || p.at("-", ":") || p.at("-", "]") {
			p.accept("-")
			return nil
		}
		return p.expr()
	}
	if p.at("]") {
		p.failExpected("a subscript")
	}
	lo := part()
	if lo != nil && p.accept("]") {
		return &Subscript{At: at, X: x, Index: lo}
	}
	s := &Slice{At: at, X: x, Lo: lo}
	p.expect(":")
	s.Hi = part()
	if p.accept(":") {
		s.Step = part()
	}
	p.expect("]")
	return s
}

// prefix reads an operand with its signs and NOTs.
func (p *parser) prefix() Expr {
	at := p.here()
	switch {
	case p.accept("NOT"):
		return &Not{At: at, X: p.climb(precNot)}
	case p.atAny("-", "+"):
		return &Unary{At: at, Op: p.next().key, X: p.climb(precSign)}
	case p.atAny("~", "@"):
		return &Unary{At: at, Op: p.next().key, X: p.climb(precOp + 1)}
	}
	return p.primary()
}

// call makes a plain function call for a form that the parser folds.
func call(at At, name string, args ...Expr) *Function {
	f := &Function{At: at, Name: Name{{at, name}}}
	for _, a := range args {
		f.Args = append(f.Args, Arg{Value: arrowLambda(a)})
	}
	return f
}
