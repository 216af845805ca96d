package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/riverbed/riverbed/connectors/files"
	"github.com/riverbed/riverbed/connectors/parquet"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/types"
)

// wanted are the actions that are read from a checkpoint. What was removed is in it only for those who delete files.
var wanted = []string{"protocol", "metaData", "add", "sidecar"}

// checkpoint reads one, and the sidecars that it names.
func (t *table) checkpoint(ctx context.Context, parts checkpoint) (*actions, error) {
	a := &actions{}
	for _, info := range parts {
		if err := t.checkpointFile(ctx, info, a); err != nil {
			return nil, t.broken(path.Base(info.Name), err)
		}
	}
	sidecars := a.sidecars
	a.sidecars = nil
	for _, name := range sidecars {
		if strings.ContainsAny(name, "/\\") {
			return nil, t.broken(path.Base(parts[0].Name), fmt.Errorf("it names the sidecar %q, which is no name of a file", name))
		}
		info, err := t.store.Stat(ctx, t.logFile("_sidecars/"+name))
		if err == nil {
			err = t.checkpointFile(ctx, info, a)
		}
		if err == nil && len(a.sidecars) > 0 {
			err = errors.New("it names sidecars itself")
		}
		if err != nil {
			return nil, t.broken("_sidecars/"+name, err)
		}
	}
	return a, nil
}

func (t *table) checkpointFile(ctx context.Context, info objstore.Info, a *actions) error {
	if strings.HasSuffix(info.Name, ".json") {
		data, err := objstore.Get(ctx, t.store, info.Name)
		if err != nil {
			return err
		}
		return parseActions(bytes.NewReader(data), a)
	}
	f, err := parquet.Format{}.Open(ctx, files.Ref{Store: t.store, Info: info}, nil)
	if err != nil {
		return err
	}
	var read []int
	for i, field := range f.Fields() {
		if slices.Contains(wanted, field.Name) && field.Type.Kind == types.Struct {
			read = append(read, i)
		}
	}
	if len(read) == 0 {
		return errors.New("it has none of the columns of a checkpoint")
	}
	for unit := range f.Units() {
		if err := readActions(ctx, f, unit, read, a); err != nil {
			return err
		}
	}
	return nil
}

func readActions(ctx context.Context, f files.File, unit int, read []int, a *actions) error {
	batches, err := f.Read(ctx, files.ReadRequest{Unit: unit, Columns: read})
	if err != nil {
		return err
	}
	defer func() { _ = batches.Close() }()
	for {
		b, err := batches.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for k, c := range read {
			field, col := f.Fields()[c], b.Rows.Column(k)
			for row := range col.Len() {
				if col.IsNull(row) {
					continue
				}
				if err := a.record(field.Name, recordOf(types.ValueAt(col, row, field.Type), field.Type)); err != nil {
					return fmt.Errorf("the action %q: %w", field.Name, err)
				}
			}
		}
	}
}

// record takes one action of a checkpoint.
func (a *actions) record(name string, r record) (err error) {
	switch name {
	case "add":
		f := &dataFile{Path: r.text("path"), Partition: r.optionalTexts("partitionValues"), Stats: r.text("stats"), DataChange: true}
		if n, ok := r.number("size"); ok {
			f.Size = &n
		}
		f.Modified, _ = r.number("modificationTime")
		if v, ok := r["deletionVector"].(record); ok && v.text("storageType") != "" {
			f.Vector = &vectorRef{Storage: v.text("storageType"), Where: v.text("pathOrInlineDv")}
			f.Vector.Size, _ = v.number("sizeInBytes")
			f.Vector.Cardinality, _ = v.number("cardinality")
			if n, ok := v.number("offset"); ok {
				f.Vector.Offset = &n
			}
		}
		if f.Path == "" {
			return nil // a writer gave the absent action as a struct of NULLs
		}
		a.adds = append(a.adds, f)
		return f.check()
	case "protocol":
		if n, ok := r.number("minReaderVersion"); ok {
			a.protocol = &protocol{MinReaderVersion: int(n), ReaderFeatures: r.texts("readerFeatures")}
		}
	case "metaData":
		if r.text("schemaString") == "" {
			return nil
		}
		a.metadata = &metadata{ID: r.text("id"), SchemaString: r.text("schemaString"), PartitionColumns: r.texts("partitionColumns"), Configuration: map[string]string{}}
		for k, v := range r.optionalTexts("configuration") {
			if v != nil {
				a.metadata.Configuration[k] = *v
			}
		}
	case "sidecar":
		if s := r.text("path"); s != "" {
			a.sidecars = append(a.sidecars, s)
		}
	}
	return nil
}

// record is a struct by the names of its fields. Structs within are records too.
type record map[string]any

func recordOf(v types.Value, t types.Type) record {
	values, _ := v.([]types.Value)
	r := make(record, len(values))
	for i, x := range values {
		f := t.Fields[i]
		if f.Type.Kind == types.Struct && x != nil {
			r[f.Name] = recordOf(x, f.Type)
			continue
		}
		r[f.Name] = x
	}
	return r
}

func (r record) text(name string) string {
	s, _ := r[name].(string)
	return s
}

func (r record) number(name string) (int64, bool) {
	n, ok := r[name].(int64)
	return n, ok
}

func (r record) texts(name string) (out []string) {
	list, _ := r[name].([]types.Value)
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func (r record) optionalTexts(name string) map[string]*string {
	entries, _ := r[name].([]types.MapEntry)
	out := make(map[string]*string, len(entries))
	for _, e := range entries {
		key, ok := e.Key.(string)
		if !ok {
			continue
		}
		out[key] = nil
		if s, ok := e.Value.(string); ok {
			out[key] = &s
		}
	}
	return out
}
