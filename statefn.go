package riverbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/riverbed/riverbed/checkpoint"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/types"
)

// state('pipeline') lists what the newest checkpoint of a pipeline holds, and state('pipeline', 'operator') is a table of it: of a state table the
// row of each key, of __late and __bad their rows. Checkpoints are read as they are, also while the pipeline runs.

// stateArgs reads the arguments of state().
func stateArgs(args []types.Value) (texts []string, err error) {
	for _, a := range args {
		text, ok := a.(string)
		if !ok {
			return nil, errs.New(errs.Schema, "bind", "state takes texts: the id of a pipeline, an operator and a table of it")
		}
		texts = append(texts, text)
	}
	if len(texts) < 1 || len(texts) > 3 {
		return nil, errs.New(errs.Schema, "bind", "state takes the id of a pipeline, and then an operator and a table of it, not %d arguments", len(args)).
			WithHint("state('pipeline') lists the operators")
	}
	return texts, nil
}

// stateRelation is what state(…) reads.
func (s *Session) stateRelation(ctx context.Context, args []types.Value) (flow.Relation, error) {
	texts, err := stateArgs(args)
	if err != nil {
		return nil, err
	}
	url := s.cfg.Load().checkpointURL
	if url == "" {
		return nil, errs.New(errs.Usage, "bind", "state() reads checkpoints, and checkpoint_url is not set").WithHint("SET checkpoint_url = 's3://…' or a directory")
	}
	store, err := checkpointsOf(ctx, url, texts[0])
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }() // it holds nothing
	found, err := store.Inspect(ctx)
	if err != nil {
		return nil, err
	}
	if len(found.Epochs) == 0 {
		return nil, noCheckpoints(texts[0], url)
	}
	if len(texts) == 1 {
		return stateList(found), nil
	}
	return stateTable(ctx, url, texts, found)
}

var stateListFields = []types.Field{
	{Name: "operator", Type: types.String}, {Name: "table", Type: types.String}, {Name: "kind", Type: types.String}, {Name: "version", Type: types.Int64},
	{Name: "stored_rows", Type: types.Int64}, {Name: "bytes", Type: types.Int64}, {Name: "epoch", Type: types.Int64},
}

// stateList is a relation of the tables of a checkpoint.
func stateList(found *checkpoint.Inspection) flow.Relation {
	cols := make([][]types.Value, len(stateListFields))
	for _, t := range found.Tables {
		if t.Kind != checkpoint.State && t.Kind != checkpoint.Log {
			continue
		}
		for c, v := range []types.Value{t.Owner, t.Table, fmt.Sprint(t.Kind), int64(t.Version), t.Rows, t.Bytes, int64(found.Epochs[len(found.Epochs)-1].Epoch)} {
			cols[c] = append(cols[c], v)
		}
	}
	arrays := make([]arrow.Array, len(cols))
	for c, f := range stateListFields {
		arrays[c] = types.ArrayOf(cols[c], f.Type)
	}
	b := array.NewRecordBatch(types.ArrowSchema(stateListFields), arrays, int64(arrays[0].Len()))
	return &storedRows{fields: stateListFields, read: func(_ context.Context, visit func(arrow.RecordBatch) error) error { return visit(b) }}
}

// stateTable finds a table of an operator, and what columns it has.
func stateTable(ctx context.Context, url string, texts []string, found *checkpoint.Inspection) (flow.Relation, error) {
	var of *checkpoint.TableInfo
	var tables, owners []string
	for i, t := range found.Tables {
		if t.Kind != checkpoint.State && t.Kind != checkpoint.Log {
			continue
		}
		owners = append(owners, t.Owner)
		if t.Owner != texts[1] {
			continue
		}
		tables = append(tables, t.Table)
		if len(texts) < 3 || texts[2] == t.Table {
			of = &found.Tables[i]
		}
	}
	owners = slices.Compact(owners)
	switch {
	case len(tables) == 0 && (texts[1] == flow.BadRelation || texts[1] == flow.LateRelation): // none came yet
		of = &checkpoint.TableInfo{Kind: checkpoint.Log, Owner: texts[1]}
	case len(tables) == 0:
		return nil, errs.New(errs.Schema, "bind", "the pipeline %q has no state of an operator %q; it has %s", texts[0], texts[1], strings.Join(owners, ", ")).
			WithHint("%s", errs.DidYouMean(texts[1], owners))
	case len(texts) < 3 && len(tables) > 1:
		return nil, errs.New(errs.Schema, "bind", "the operator %q has several tables: %s", texts[1], strings.Join(tables, ", ")).WithHint("name one as the third argument")
	case of == nil:
		return nil, errs.New(errs.Schema, "bind", "the operator %q has no table %q; it has %s", texts[1], texts[2], strings.Join(tables, ", ")).WithHint("%s", errs.DidYouMean(texts[2], tables))
	}
	if of.Kind == checkpoint.Log && (of.Owner == flow.BadRelation || of.Owner == flow.LateRelation) {
		return loggedRows(url, texts[0], of.Owner), nil
	}
	rel := &storedRows{read: func(ctx context.Context, visit func(arrow.RecordBatch) error) error {
		return readStored(ctx, url, texts[0], of, visit)
	}}
	var at []int
	err := rel.read(ctx, func(b arrow.RecordBatch) error {
		rel.fields, at = readable(b.Schema())
		return errStopped
	})
	if err != nil && !errors.Is(err, errStopped) {
		return nil, err
	}
	stored := rel.read
	rel.read = func(ctx context.Context, visit func(arrow.RecordBatch) error) error {
		return stored(ctx, func(b arrow.RecordBatch) error {
			cols := make([]arrow.Array, len(at))
			for i, c := range at {
				cols[i] = b.Column(c)
			}
			return visit(array.NewRecordBatch(types.ArrowSchema(rel.fields), cols, b.NumRows()))
		})
	}
	return rel, nil
}

// loggedRows is __late or __bad of a pipeline, with the numbers of its rows.
func loggedRows(url, pipeline, name string) flow.Relation {
	k := &keptRows{fields: lateFields}
	if name == flow.BadRelation {
		k.fields = badFields
	}
	return &storedRows{fields: k.Fields(), read: func(ctx context.Context, visit func(arrow.RecordBatch) error) error {
		var number int64
		_, err := readKept(ctx, url, pipeline, name, func(b arrow.RecordBatch) error {
			rows := make([]keptRow, b.NumRows())
			for r := range rows {
				rows[r] = keptRow{number, keptValues(k.fields, b, r)}
				number++
			}
			return visit(keptBatch(k.Fields(), rows))
		})
		return err
	}}
}

// errStopped ends a visit that has seen enough.
var errStopped = errors.New("stopped")

// readStored visits the rows of a table of the newest checkpoint, which is held meanwhile.
func readStored(ctx context.Context, url, pipeline string, of *checkpoint.TableInfo, visit func(arrow.RecordBatch) error) error {
	store, err := checkpointsOf(ctx, url, pipeline)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	m, err := store.Newest(ctx)
	if err != nil {
		return err
	}
	if m == nil {
		return noCheckpoints(pipeline, url)
	}
	release, err := store.Hold(ctx, m.Epoch)
	if err != nil {
		return err
	}
	defer release()
	if of.Kind == checkpoint.Log {
		return store.Log(ctx, m, of.Owner, of.Table, visit)
	}
	return store.State(ctx, m, of.Owner, of.Table, visit)
}

// readable are the columns that have an SQL type.
func readable(s *arrow.Schema) (fields []types.Field, at []int) {
	for i, f := range s.Fields() {
		if t, err := types.FromArrow(f); err == nil && arrow.TypeEqual(t.Arrow(), f.Type) {
			fields, at = append(fields, types.Field{Name: f.Name, Type: t}), append(at, i)
		}
	}
	return fields, at
}

// storedRows is a relation that is read whole when it is scanned.
type storedRows struct {
	fields []types.Field
	read   func(ctx context.Context, visit func(arrow.RecordBatch) error) error
}

// Fields implements flow.Relation.
func (r *storedRows) Fields() []types.Field { return r.fields }

// Stats implements flow.Relation.
func (r *storedRows) Stats() flow.Stats { return flow.Stats{Rows: -1} }

// Scan implements flow.Relation.
func (r *storedRows) Scan(ctx context.Context, req flow.ScanRequest) (flow.Scan, error) {
	var all []arrow.RecordBatch
	if err := r.read(ctx, func(b arrow.RecordBatch) error {
		all = append(all, b)
		return nil
	}); err != nil {
		return nil, err
	}
	return newChunkScan(chunksOf(all), r.fields, req), nil
}
