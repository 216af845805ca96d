package riverbed

import (
	"math"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/fn"
	"github.com/riverbed/riverbed/core/kernels"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/core/types"
)

// sequence gives numbers, each once. As in DuckDB a number that was given stays given, also when its statement fails.
type sequence struct {
	increment, low, high, start int64
	cycle                       bool

	mu   sync.Mutex
	next int64
	last *int64 // nil before the first
	over bool   // the range is used up
}

func (s *Session) createSequence(st *sql.CreateSequence) error {
	q := &sequence{increment: 1, low: 1, high: math.MaxInt64, cycle: st.Cycle}
	number := func(x sql.Expr, into *int64) error {
		if x == nil {
			return nil
		}
		v, t, err := s.constant(x)
		if err != nil {
			return err
		}
		n, ok := v.(int64)
		if !ok {
			return errs.E(errs.Schema, "create sequence", x.Position(), "expected a whole number, not %s", t)
		}
		*into = n
		return nil
	}
	if err := number(st.Increment, &q.increment); err != nil {
		return err
	}
	if q.increment == 0 {
		return errs.E(errs.Schema, "create sequence", st.Pos, "the increment of a sequence cannot be 0")
	}
	if q.increment < 0 {
		q.low, q.high = math.MinInt64, -1
	}
	for _, n := range []struct {
		x    sql.Expr
		into *int64
	}{{st.Min, &q.low}, {st.Max, &q.high}} {
		if err := number(n.x, n.into); err != nil {
			return err
		}
	}
	q.start = q.low
	if q.increment < 0 {
		q.start = q.high
	}
	if err := number(st.Start, &q.start); err != nil {
		return err
	}
	if q.low >= q.high || q.start < q.low || q.start > q.high {
		return errs.E(errs.Schema, "create sequence", st.Pos, "the sequence must start within its range: MINVALUE %d, START %d, MAXVALUE %d", q.low, q.start, q.high)
	}
	q.next = q.start
	return s.createObject(newObject{kind: sequenceObject, name: st.Name, replace: st.OrReplace, ifNotExists: st.IfNotExists, value: q})
}

// take gives the next number.
func (q *sequence) take(name string) (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return 0, errs.New(errs.Data, "nextval", "the sequence %q has given all of its numbers, %d to %d", name, q.low, q.high).WithHint("CREATE SEQUENCE … CYCLE begins again")
	}
	v := q.next
	q.last = &v
	up := q.increment > 0 && v > q.high-q.increment
	down := q.increment < 0 && v < q.low-q.increment
	switch {
	case !up && !down:
		q.next = v + q.increment
	case !q.cycle:
		q.over = true
	case up:
		q.next = q.low
	default:
		q.next = q.high
	}
	return v, nil
}

func (q *sequence) current(name string) (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil {
		return 0, errs.New(errs.Data, "currval", "the sequence %q has given no number yet", name).WithHint("nextval gives one")
	}
	return *q.last, nil
}

func (s *Session) dropSequence(st *sql.Drop) error {
	_, err := s.dropObject(sequenceObject, st, func(c *catalog, name string, _ any) error {
		for _, e := range c.entries {
			if e.table == nil || st.Cascade {
				continue
			}
			for _, x := range e.table.defaults {
				if x != nil && strings.Contains(strings.ToLower(sql.Print(x)), "val('"+strings.ToLower(name)+"')") {
					return errs.E(errs.Schema, "drop", st.Pos, "a default of table %q takes its numbers from the sequence %q", e.name, name).WithHint("drop the table or its default first, or write CASCADE")
				}
			}
		}
		return nil
	})
	return err
}

// sequenceFunction is nextval or currval as a function of the session. It is volatile, so nothing that runs incrementally
// over rows which may be taken back can hold it.
func (s *Session) sequenceFunction(name string) *fn.Scalar {
	one := (*sequence).take
	switch name {
	case "nextval":
	case "currval":
		one = (*sequence).current
	default:
		return nil
	}
	kernel := func(c *fn.Call) (arrow.Array, error) {
		out := make([]int64, c.N)
		for i := range out {
			row := i
			if c.Args[0].Const {
				row = 0
			}
			text, ok := types.ValueAt(c.Args[0].Array, row, types.String).(string)
			if !ok { // NULL
				continue
			}
			cat := s.cat.Load()
			key, _ := cat.key(strings.Split(text, "."))
			q, is := cat.object(sequenceObject, key).(*sequence)
			if !is {
				return nil, errs.New(errs.Schema, name, "there is no sequence %q", text).WithHint("%s", errs.DidYouMean(text, cat.objectNames(sequenceObject)))
			}
			v, err := one(q, text)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return kernels.NewFixed(arrow.PrimitiveTypes.Int64, out, nil), nil
	}
	return &fn.Scalar{Name: name, Category: fn.Utility, Summary: "A number of a sequence.", Nulls: fn.NullIfAnyNull, Purity: fn.Volatile,
		Overloads: []fn.Overload{{Args: []types.Type{types.String}, Returns: types.Int64, Fallible: true, Kernel: kernel}}}
}
