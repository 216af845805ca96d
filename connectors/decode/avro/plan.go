package avro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/riverbed/riverbed/connectors/decode"
	"github.com/riverbed/riverbed/core/types"
)

// op reads one value, into a column or nowhere. On an error the column may hold a part of it.
type op func(in *input) error

// column is a column of any type with the columns below it.
type column struct {
	decode.Column
	t     types.Type
	leaf  decode.Builder // without parts
	lists *decode.Lists
	maps  *decode.Maps
	recs  *decode.Structs
	parts []*column // elem; key and value; fields
}

func newColumn(t types.Type) (*column, error) {
	c := &column{t: t}
	part := func(t types.Type) (*column, error) {
		p, err := newColumn(t)
		c.parts = append(c.parts, p)
		return p, err
	}
	switch t.Kind {
	case types.List:
		elem, err := part(*t.Elem)
		if err != nil {
			return nil, err
		}
		c.lists = decode.NewLists(t, elem)
		c.Column = c.lists
	case types.Map:
		key, err := part(*t.Key)
		if err != nil {
			return nil, err
		}
		value, err := part(*t.Elem)
		if err != nil {
			return nil, err
		}
		c.maps = decode.NewMaps(t, key, value)
		c.Column = c.maps
	case types.Struct:
		var cols []decode.Column
		for _, f := range t.Fields {
			p, err := part(f.Type)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", f.Name, err)
			}
			cols = append(cols, p)
		}
		c.recs = decode.NewStructs(t, cols)
		c.Column = c.recs
	default:
		b, err := decode.NewBuilder(t)
		if err != nil {
			return nil, err
		}
		c.leaf, c.Column = b, b
	}
	return c, nil
}

// planner makes ops that read data of a writer's schema into columns.
type planner struct {
	skips map[*Schema]op
	// missing is told of columns that the writer's record lacks.
	missing func()
	unknown func()
}

// value reads w into c. r is what the reader's schema says of the column, nil when it says nothing.
func (p *planner) value(w, r *Schema, c *column) (op, error) {
	if w.kind == kUnion {
		return p.union(w, r, c)
	}
	if r != nil && r.kind == kUnion {
		r = matching(r, w)
	}
	if c.t.Kind == types.Null {
		skip := p.skip(w)
		return func(in *input) error {
			c.AppendNull()
			return skip(in)
		}, nil
	}
	switch w.kind {
	case kNull:
		return func(*input) error { c.AppendNull(); return nil }, nil
	case kRecord:
		if c.recs == nil {
			return nil, wrong(w, c)
		}
		read, err := p.record(w, r, c.t.Fields, c.parts)
		if err != nil {
			return nil, err
		}
		return func(in *input) error {
			if err := read(in); err != nil {
				return err
			}
			c.recs.Close()
			return nil
		}, nil
	case kArray:
		if c.lists == nil {
			return nil, wrong(w, c)
		}
		elem, err := p.value(w.items, itemsOf(r), c.parts[0])
		if err != nil {
			return nil, err
		}
		return func(in *input) error {
			if err := in.blocks(func() error { return elem(in) }); err != nil {
				return err
			}
			c.lists.Close()
			return nil
		}, nil
	case kMap:
		if c.maps == nil {
			return nil, wrong(w, c)
		}
		return p.mapOf(w, r, c)
	}
	if c.leaf == nil {
		return nil, wrong(w, c)
	}
	return leaf(w, c)
}

func itemsOf(r *Schema) *Schema {
	if r == nil {
		return nil
	}
	return r.items
}

// matching is the branch of a reader's union that a value of w is read as.
func matching(r, w *Schema) *Schema {
	for _, b := range r.branches {
		if b.kind == w.kind && (b.name == w.name || b.kind == kRecord) {
			return b
		}
	}
	return nil
}

func wrong(w *Schema, c *column) error {
	what := string(w.kind)
	if w.logical != "" {
		what += " (" + w.logical + ")"
	}
	return fmt.Errorf("it is %s, the column is %s", what, c.t)
}

func (p *planner) mapOf(w, r *Schema, c *column) (op, error) {
	key := c.parts[0]
	if key.leaf == nil {
		return nil, fmt.Errorf("the keys of an Avro map are text, which is not read as %s", key.t)
	}
	value, err := p.value(w.items, itemsOf(r), c.parts[1])
	if err != nil {
		return nil, err
	}
	return func(in *input) error {
		seen := map[string]bool{}
		err := in.blocks(func() error {
			k, err := in.bytes()
			if err != nil {
				return err
			}
			if !utf8.Valid(k) {
				return errText
			}
			if seen[string(k)] {
				return fmt.Errorf("the key %q comes twice", decode.Clip(string(k)))
			}
			seen[string(k)] = true
			if err := key.leaf.AppendText(k); err != nil {
				return err
			}
			return value(in)
		})
		if err != nil {
			return err
		}
		c.maps.Close()
		return nil
	}, nil
}

// union reads the branch that the value names.
func (p *planner) union(w, r *Schema, c *column) (op, error) {
	ops := make([]op, len(w.branches))
	apart := c.recs != nil && len(w.notNull()) > 1 // a member for each branch
	for i, b := range w.branches {
		var err error
		switch {
		case b.kind == kNull:
			ops[i] = func(*input) error { c.AppendNull(); return nil }
		case apart:
			ops[i], err = p.branch(b, r, c)
		default:
			ops[i], err = p.value(b, r, c)
		}
		if err != nil {
			return nil, err
		}
	}
	return func(in *input) error {
		n, err := in.long()
		if err != nil {
			return err
		}
		if n < 0 || n >= int64(len(ops)) {
			return fmt.Errorf("a union has %d branches, and the value is of number %d", len(ops), n)
		}
		return ops[n](in)
	}, nil
}

func (p *planner) branch(b, r *Schema, c *column) (op, error) {
	at := slices.IndexFunc(c.t.Fields, func(f types.Field) bool { return f.Name == b.branchName() })
	if at < 0 {
		return nil, fmt.Errorf("the column %s has no member for the branch %q of the union", c.t, b.branchName())
	}
	read, err := p.value(b, r, c.parts[at])
	if err != nil {
		return nil, err
	}
	return func(in *input) error {
		if err := read(in); err != nil {
			return err
		}
		for i, part := range c.parts {
			if i != at {
				part.AppendNull()
			}
		}
		c.recs.Close()
		return nil
	}, nil
}

// record reads the fields of w into columns by their names. A column that w lacks has the default of the reader's schema;
// where there is no such schema it is NULL.
func (p *planner) record(w, r *Schema, fields []types.Field, cols []*column) (op, error) {
	type step struct {
		name string
		read op
	}
	var steps []step
	filled := make([]bool, len(cols))
	for _, wf := range w.fields {
		at, rf := columnOf(wf, r, fields)
		if at < 0 || filled[at] {
			skip := p.skip(wf.schema)
			steps = append(steps, step{wf.name, func(in *input) error { p.unknown(); return skip(in) }})
			continue
		}
		filled[at] = true
		read, err := p.value(wf.schema, rf, cols[at])
		if err != nil {
			return nil, &FieldError{wf.name, err}
		}
		steps = append(steps, step{wf.name, read})
	}
	for i, f := range fields {
		if filled[i] {
			continue
		}
		col := cols[i]
		add := func(*input) error { p.missing(); col.AppendNull(); return nil }
		if rf := fieldOf(r, f.Name); rf != nil {
			if rf.fallback == nil {
				return nil, &FieldError{f.Name, errors.New("the writer's schema has no such field, and the reader's no default for it")}
			}
			data, err := appendDefault(nil, rf.schema, rf.fallback)
			if err != nil {
				return nil, &FieldError{f.Name, fmt.Errorf("its default: %w", err)}
			}
			read, err := p.value(rf.schema, rf.schema, col)
			if err != nil {
				return nil, &FieldError{f.Name, fmt.Errorf("its default: %w", err)}
			}
			add = func(*input) error { return read(&input{data: data}) }
		}
		steps = append(steps, step{f.Name, add})
	}
	return func(in *input) error {
		for i := range steps {
			if err := steps[i].read(in); err != nil {
				return &FieldError{steps[i].name, err}
			}
		}
		return nil
	}, nil
}

// columnOf finds the column that a writer's field fills, and what the reader's schema says of it.
func columnOf(wf field, r *Schema, fields []types.Field) (int, *Schema) {
	find := func(name string) int {
		return slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == name })
	}
	if r != nil {
		for _, rf := range r.fields {
			if rf.name == wf.name || slices.Contains(rf.aliases, wf.name) {
				return find(rf.name), rf.schema
			}
		}
	}
	return find(wf.name), nil
}

func fieldOf(r *Schema, name string) *field {
	if r == nil {
		return nil
	}
	for i := range r.fields {
		if r.fields[i].name == name {
			return &r.fields[i]
		}
	}
	return nil
}

// FieldError says which field of a message is not what its column asks for.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return fmt.Sprintf("field %q: %v", e.Field, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

// skip reads a value that no column takes.
func (p *planner) skip(w *Schema) op {
	if done := p.skips[w]; done != nil {
		return done
	}
	var real op
	p.skips[w] = func(in *input) error { return real(in) } // for records that contain themselves
	bytes := func(in *input) error { _, err := in.bytes(); return err }
	fixed := func(n int) op { return func(in *input) error { _, err := in.take(n); return err } }
	switch w.kind {
	case kNull:
		real = func(*input) error { return nil }
	case kBoolean:
		real = fixed(1)
	case kInt, kLong, kEnum:
		real = func(in *input) error { _, err := in.long(); return err }
	case kFloat:
		real = fixed(4)
	case kDouble:
		real = fixed(8)
	case kFixed:
		real = fixed(w.size)
	case kArray:
		item := p.skip(w.items)
		real = func(in *input) error { return in.blocks(func() error { return item(in) }) }
	case kMap:
		item := p.skip(w.items)
		real = func(in *input) error {
			return in.blocks(func() error {
				if err := bytes(in); err != nil {
					return err
				}
				return item(in)
			})
		}
	case kRecord:
		var ops []op
		for _, f := range w.fields {
			ops = append(ops, p.skip(f.schema))
		}
		real = func(in *input) error {
			if in.depth++; in.depth > deepest {
				return errors.New("a value is nested too deep")
			}
			defer func() { in.depth-- }()
			for _, o := range ops {
				if err := o(in); err != nil {
					return err
				}
			}
			return nil
		}
	case kUnion:
		var ops []op
		for _, b := range w.branches {
			ops = append(ops, p.skip(b))
		}
		real = func(in *input) error {
			n, err := in.long()
			if err == nil && (n < 0 || n >= int64(len(ops))) {
				err = fmt.Errorf("a union has %d branches, and the value is of number %d", len(ops), n)
			}
			if err != nil {
				return err
			}
			return ops[n](in)
		}
	default: // bytes, string
		real = bytes
	}
	return p.skips[w]
}

var errText = errors.New("the text is not UTF-8")

// leaf reads a value without parts.
func leaf(w *Schema, c *column) (op, error) {
	switch w.kind {
	case kBoolean:
		if add, ok := decode.BoolAppender(c.leaf); ok {
			return func(in *input) error {
				v, err := in.boolean()
				if err == nil {
					add(v)
				}
				return err
			}, nil
		}
	case kInt, kLong:
		if add := integer(w, c); add != nil {
			return func(in *input) error {
				v, err := in.long()
				if err != nil {
					return err
				}
				if w.kind == kInt && v != int64(int32(v)) {
					return fmt.Errorf("%d is no int", v)
				}
				return add(v)
			}, nil
		}
	case kFloat, kDouble:
		return floating(w, c)
	case kString:
		text := c.t.Kind == types.Varchar || c.t.Kind == types.JSON
		return func(in *input) error {
			b, err := in.bytes()
			if err != nil {
				return err
			}
			if text && !utf8.Valid(b) {
				return errText
			}
			return c.leaf.AppendText(b)
		}, nil
	case kEnum:
		if c.t.Kind == types.Varchar {
			return func(in *input) error {
				n, err := in.long()
				if err != nil {
					return err
				}
				if n < 0 || n >= int64(len(w.symbols)) {
					return fmt.Errorf("the enum %q has no symbol number %d", w.name, n)
				}
				return c.leaf.AppendText([]byte(w.symbols[n]))
			}, nil
		}
	case kBytes, kFixed:
		read := (*input).bytes
		if w.kind == kFixed {
			read = func(in *input) ([]byte, error) { return in.take(w.size) }
		}
		if add := octets(w, c); add != nil {
			return func(in *input) error {
				b, err := read(in)
				if err != nil {
					return err
				}
				return add(b)
			}, nil
		}
	}
	return nil, wrong(w, c)
}

// integer appends whole numbers, or what they mean; nil when the column takes neither.
func integer(w *Schema, c *column) func(int64) error {
	outside := func(v int64) error { return fmt.Errorf("%d is not a value of %s", v, c.t) }
	logical, means := w.logicalType()
	if means {
		return moment(w, logical, c)
	}
	switch c.t.Kind {
	case types.TinyInt:
		return bounded[int8](c, math.MinInt8, math.MaxInt8, outside)
	case types.SmallInt:
		return bounded[int16](c, math.MinInt16, math.MaxInt16, outside)
	case types.Integer:
		return bounded[int32](c, math.MinInt32, math.MaxInt32, outside)
	case types.BigInt:
		return bounded[int64](c, math.MinInt64, math.MaxInt64, outside)
	case types.UTinyInt:
		return bounded[uint8](c, 0, math.MaxUint8, outside)
	case types.USmallInt:
		return bounded[uint16](c, 0, math.MaxUint16, outside)
	case types.UInteger:
		return bounded[uint32](c, 0, math.MaxUint32, outside)
	case types.UBigInt:
		return bounded[uint64](c, 0, math.MaxInt64, outside)
	case types.Real:
		return bounded[float32](c, math.MinInt64, math.MaxInt64, outside)
	case types.Double:
		return bounded[float64](c, math.MinInt64, math.MaxInt64, outside)
	case types.HugeInt:
		add, _ := decode.Appender[decimal128.Num](c.leaf)
		return func(v int64) error { add(decimal128.FromI64(v)); return nil }
	}
	return nil
}

func bounded[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64](c *column, low, high int64, outside func(int64) error) func(int64) error {
	add, ok := decode.Appender[T](c.leaf)
	if !ok {
		return nil
	}
	return func(v int64) error {
		if v < low || v > high {
			return outside(v)
		}
		add(T(v))
		return nil
	}
}

// moment appends dates and times.
func moment(w *Schema, logical types.Type, c *column) func(int64) error {
	outside := func(v int64) error { return fmt.Errorf("%d (%s) is not a value of %s", v, w.logical, c.t) }
	perSecond := int64(1_000_000)
	switch w.logical {
	case "time-millis", "timestamp-millis", "local-timestamp-millis":
		perSecond = 1_000
	case "timestamp-nanos", "local-timestamp-nanos":
		perSecond = 1_000_000_000
	}
	switch logical.Kind {
	case types.Date:
		if add, ok := decode.Appender[int32](c.leaf); ok && c.t.Kind == types.Date {
			return func(v int64) error { add(int32(v)); return nil }
		}
		return nil
	case types.Time:
		if add, ok := decode.Appender[int64](c.leaf); ok && c.t.Kind == types.Time {
			return func(v int64) error {
				if v < 0 || v > 86_400*perSecond {
					return outside(v)
				}
				add(v * (1_000_000 / perSecond))
				return nil
			}
		}
		return nil
	}
	wanted := map[types.Kind]int64{types.TimestampS: 1, types.TimestampMS: 1_000, types.Timestamp: 1_000_000, types.TimestampTZ: 1_000_000, types.TimestampNS: 1_000_000_000}[c.t.Kind]
	add, ok := decode.Appender[int64](c.leaf)
	if !ok || wanted == 0 {
		return nil
	}
	return func(v int64) error {
		if wanted < perSecond {
			add(types.FloorDiv(v, perSecond/wanted))
			return nil
		}
		f := wanted / perSecond
		if v > math.MaxInt64/f || v < math.MinInt64/f {
			return outside(v)
		}
		add(v * f)
		return nil
	}
}

func floating(w *Schema, c *column) (op, error) {
	if add, ok := decode.Appender[float64](c.leaf); ok {
		return func(in *input) error {
			if w.kind == kDouble {
				v, err := in.double()
				if err == nil {
					add(v)
				}
				return err
			}
			v, err := in.float()
			if err == nil {
				add(float64(v))
			}
			return err
		}, nil
	}
	add, ok := decode.Appender[float32](c.leaf)
	if !ok || w.kind == kDouble { // half of the digits would be lost
		return nil, wrong(w, c)
	}
	return func(in *input) error {
		v, err := in.float()
		if err == nil {
			add(v)
		}
		return err
	}, nil
}

// octets appends bytes, or what they mean; nil when the column takes neither.
func octets(w *Schema, c *column) func([]byte) error {
	switch t, means := w.logicalType(); {
	case means && t.Kind == types.Decimal && c.t.Kind == types.Decimal && c.t.Scale == t.Scale && c.t.Width >= t.Width:
		add, _ := decode.Appender[decimal128.Num](c.leaf)
		return func(b []byte) error {
			n, ok := bigEndian(b)
			if !ok || !n.FitsInPrecision(int32(t.Width)) {
				return fmt.Errorf("a number has more than the %d digits of its schema", t.Width)
			}
			add(n)
			return nil
		}
	case means && t.Kind == types.UUID && c.t.Kind == types.UUID:
		return func(v []byte) error {
			return c.leaf.AppendText(fmt.Appendf(nil, "%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:]))
		}
	case means && t.Kind == types.Interval && c.t.Kind == types.Interval:
		add, _ := decode.Appender[arrow.MonthDayNanoInterval](c.leaf)
		return func(b []byte) error {
			months, days, millis := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
			if months > math.MaxInt32 || days > math.MaxInt32 {
				return errors.New("a duration is longer than an INTERVAL can be")
			}
			add(arrow.MonthDayNanoInterval{Months: int32(months), Days: int32(days), Nanoseconds: int64(millis) * 1_000_000})
			return nil
		}
	case c.t.Kind == types.Blob:
		return c.leaf.AppendText
	case c.t.Kind == types.Varchar:
		return func(b []byte) error {
			if !utf8.Valid(b) {
				return errText
			}
			return c.leaf.AppendText(b)
		}
	}
	return nil
}

// bigEndian reads a number in two's complement of any length.
func bigEndian(b []byte) (decimal128.Num, bool) {
	var hi, lo uint64
	if len(b) > 0 && b[0] >= 0x80 {
		hi, lo = math.MaxUint64, math.MaxUint64
	}
	for i, x := range b {
		if over := byte(hi >> 56); i >= 16 && over != byte(int64(hi)>>63) {
			return decimal128.Num{}, false
		}
		hi, lo = hi<<8|lo>>56, lo<<8|uint64(x)
	}
	return decimal128.New(int64(hi), lo), true
}
