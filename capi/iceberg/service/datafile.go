package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// dataFiles describes the files that a commit adds: counts, sizes and bounds by their footers, columns found by the field ids in them, the partition as
// the writer says.
func dataFiles(ctx context.Context, t *table.Table, c *meta.Commit) ([]iceberg.DataFile, error) {
	said := map[string]meta.File{}
	for _, f := range c.Files {
		said[f.Path] = f
	}
	out := make([]iceberg.DataFile, 0, len(c.Add))
	rowID := t.Metadata().NextRowID()
	for _, path := range c.Add {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		known, ok := said[path]
		if !ok {
			known.Spec = -1
		}
		d, err := dataFile(ctx, t, path, known, rowID)
		if err != nil {
			return nil, err
		}
		rowID += d.Count()
		out = append(out, d)
	}
	return out, nil
}

func dataFile(ctx context.Context, t *table.Table, path string, known meta.File, rowID int64) (iceberg.DataFile, error) {
	m := t.Metadata()
	spec := m.PartitionSpecByID(known.Spec)
	if known.Spec < 0 {
		now := m.PartitionSpec()
		spec = &now
	}
	if spec == nil {
		return nil, faultf(kindSchema, "the table %s has no partition spec %d, which the file %s is of", name(t), known.Spec, path)
	}
	files, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	// By no spec first: what the footer says is the file's own, and buckets cannot be told from it.
	footer, err := table.FileToDataFile(ctx, files, address(path), m.CurrentSchema(), *iceberg.UnpartitionedSpec, 0, m.Properties())
	if err != nil {
		return nil, unreadable(path, err)
	}
	if known.Rows > 0 && known.Rows != footer.Count() || known.Bytes > 0 && known.Bytes != footer.FileSizeBytes() {
		return nil, faultf(kindIO, "the file %s has %d rows in %d bytes and was written with %d in %d", path, footer.Count(), footer.FileSizeBytes(), known.Rows, known.Bytes).
			hint("another program wrote under its name; restart from a checkpoint before it")
	}
	values, logical := map[int]any{}, map[int]string{}
	for _, f := range spec.Fields() {
		t, value := partType(f, m.CurrentSchema()), any(nil)
		switch text, given := known.Partition[f.Name]; {
		case given:
			if value, err = parseSingle(text, t); err != nil {
				return nil, faultf(kindSchema, "the file %s is in the partition %s of %s: %v", path, f.Name, text, err)
			}
		case known.Spec < 0:
			if value, err = inferred(footer, f, m.CurrentSchema()); err != nil {
				return nil, faultf(kindSchema, "the file %s: %v", path, err)
			}
		}
		values[f.FieldID] = value
		if word := avroWord(t); word != "" {
			logical[f.FieldID] = word
		}
	}
	b, err := iceberg.NewDataFileBuilder(*spec, iceberg.EntryContentData, address(path), iceberg.ParquetFile, values, logical, nil, footer.Count(), footer.FileSizeBytes())
	if err != nil {
		return nil, err
	}
	b.ColumnSizes(footer.ColumnSizes()).ValueCounts(footer.ValueCounts()).NullValueCounts(footer.NullValueCounts()).NaNValueCounts(footer.NaNValueCounts())
	b.LowerBoundValues(footer.LowerBoundValues()).UpperBoundValues(footer.UpperBoundValues()).SplitOffsets(footer.SplitOffsets())
	if m.Version() >= 3 {
		b.FirstRowID(rowID)
	}
	return b.Build(), nil
}

// inferred is the value of a part that all rows of a file share, by the bounds of its column.
func inferred(d iceberg.DataFile, f iceberg.PartitionField, schema *iceberg.Schema) (any, error) {
	source, ok := schema.FindFieldByID(f.SourceID())
	lower, upper := d.LowerBoundValues()[f.SourceID()], d.UpperBoundValues()[f.SourceID()]
	if !ok || lower == nil || upper == nil {
		if n := d.NullValueCounts()[f.SourceID()]; ok && n == d.Count() {
			return nil, nil
		}
		return nil, fmt.Errorf("its value of the partition %s is not known", f.Name)
	}
	var results [2]iceberg.Optional[iceberg.Literal]
	for i, raw := range [][]byte{lower, upper} {
		v, err := iceberg.LiteralFromBytes(source.Type, raw)
		if err != nil {
			return nil, err
		}
		results[i] = f.Transform.Apply(iceberg.Optional[iceberg.Literal]{Val: v, Valid: true})
	}
	if !results[0].Valid || !results[1].Valid || !results[0].Val.Equals(results[1].Val) || !f.Transform.PreservesOrder() && string(lower) != string(upper) {
		return nil, fmt.Errorf("its rows are of several partitions by %s", f.Name)
	}
	return results[0].Val.Any(), nil
}

// avroWord is what a manifest calls the type of a partition's value.
func avroWord(t iceberg.Type) string {
	switch t.(type) {
	case iceberg.DateType:
		return "date"
	case iceberg.TimeType:
		return "time-micros"
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return "timestamp-micros"
	case iceberg.DecimalType:
		return "decimal"
	case iceberg.UUIDType:
		return "uuid"
	}
	return ""
}

func unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return faultf(kindIO, "the file %s, which was written for the table, is not there", path).hint("was it deleted as an orphan? restart from a checkpoint before it")
	case strings.Contains(err.Error(), "schema"), errors.Is(err, iceberg.ErrInvalidSchema):
		return faultf(kindSchema, "the file %s does not fit the table: %w", path, err)
	}
	return fmt.Errorf("the file %s cannot be read: %w", path, err)
}

// address writes a path as the table's metadata do: with its scheme.
func address(path string) string {
	if strings.HasPrefix(path, "/") {
		return "file://" + path
	}
	return path
}
