package service

import (
	"encoding/json"
	"fmt"

	"github.com/apache/iceberg-go"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// fieldsOf writes a schema in the words of the seam.
func fieldsOf(fields []iceberg.NestedField) []meta.Field {
	out := make([]meta.Field, len(fields))
	for i, f := range fields {
		out[i] = fieldOf(f)
	}
	return out
}

func fieldOf(f iceberg.NestedField) meta.Field {
	out := meta.Field{ID: f.ID, Name: f.Name, Required: f.Required, Doc: f.Doc}
	switch t := f.Type.(type) {
	case *iceberg.StructType:
		out.Type, out.Fields = "struct", fieldsOf(t.FieldList)
	case *iceberg.ListType:
		out.Type, out.Fields = "list", fieldsOf([]iceberg.NestedField{t.ElementField()})
	case *iceberg.MapType:
		out.Type, out.Fields = "map", fieldsOf([]iceberg.NestedField{t.KeyField(), t.ValueField()})
	default:
		out.Type = f.Type.String()
	}
	if f.InitialDefault != nil || f.WriteDefault != nil {
		if text, err := json.Marshal(f); err == nil {
			var written struct {
				Initial json.RawMessage `json:"initial-default"`
				Write   json.RawMessage `json:"write-default"`
			}
			if json.Unmarshal(text, &written) == nil {
				out.Initial, out.Default = string(written.Initial), string(written.Write)
			}
		}
	}
	return out
}

// schemaOf reads a schema. Fields without an id get one: a catalog that makes a table numbers them anew anyway.
func schemaOf(fields []meta.Field) (*iceberg.Schema, error) {
	if len(fields) == 0 {
		return nil, faultf(kindSchema, "a table needs a column")
	}
	last := 0
	var highest func([]meta.Field)
	highest = func(fields []meta.Field) {
		for _, f := range fields {
			last = max(last, f.ID)
			highest(f.Fields)
		}
	}
	highest(fields)
	next := func(id int) int {
		if id == 0 {
			last++
			id = last
		}
		return id
	}
	out := make([]iceberg.NestedField, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = nested(f, next); err != nil {
			return nil, err
		}
	}
	return iceberg.NewSchema(0, out...), nil
}

func nested(f meta.Field, next func(int) int) (iceberg.NestedField, error) {
	out := iceberg.NestedField{ID: next(f.ID), Name: f.Name, Required: f.Required, Doc: f.Doc}
	children := make([]iceberg.NestedField, len(f.Fields))
	for i, c := range f.Fields {
		var err error
		if children[i], err = nested(c, next); err != nil {
			return out, err
		}
	}
	want := map[string]int{"list": 1, "map": 2}
	if n, ok := want[f.Type]; ok && len(children) != n {
		return out, faultf(kindSchema, "column %q: a %s has %d fields, not %d", f.Name, f.Type, n, len(children))
	}
	switch f.Type {
	case "struct":
		out.Type = &iceberg.StructType{FieldList: children}
	case "list":
		out.Type = &iceberg.ListType{ElementID: children[0].ID, Element: children[0].Type, ElementRequired: children[0].Required}
	case "map":
		out.Type = &iceberg.MapType{
			KeyID: children[0].ID, KeyType: children[0].Type,
			ValueID: children[1].ID, ValueType: children[1].Type, ValueRequired: children[1].Required,
		}
	default:
		t, err := primitive(f.Type)
		if err != nil {
			return out, faultf(kindSchema, "column %q: %v", f.Name, err)
		}
		out.Type = t
	}
	for _, d := range []struct {
		text string
		to   *any
	}{{f.Initial, &out.InitialDefault}, {f.Default, &out.WriteDefault}} {
		if d.text != "" && json.Unmarshal([]byte(d.text), d.to) != nil {
			return out, faultf(kindSchema, "column %q: the default %s is no JSON", f.Name, d.text)
		}
	}
	return out, nil
}

// primitive parses a type by its word in Iceberg's JSON.
func primitive(word string) (iceberg.Type, error) {
	text, err := json.Marshal(map[string]any{"id": 1, "name": "x", "required": false, "type": word})
	if err != nil {
		return nil, err
	}
	var f iceberg.NestedField
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%q is no type of Iceberg", word)
	}
	return f.Type, nil
}

// partitionOf reads a partition spec over a schema.
func partitionOf(fields []meta.PartitionField, schema *iceberg.Schema) (*iceberg.PartitionSpec, error) {
	var options []iceberg.PartitionOption
	for _, f := range fields {
		transform, err := iceberg.ParseTransform(f.Transform)
		if err != nil {
			return nil, faultf(kindSchema, "%q is no transform of a partition", f.Transform).hint("transforms are identity, bucket[N], truncate[N], year, month, day and hour")
		}
		source, ok := schema.FindFieldByName(f.Column)
		if f.Column == "" {
			source, ok = schema.FindFieldByID(f.Source)
		}
		if !ok {
			return nil, faultf(kindSchema, "the partition %s is of the column %q, which the table does not have", f.Name, f.Column)
		}
		if !transform.CanTransform(source.Type) {
			return nil, faultf(kindSchema, "a %s cannot be partitioned by %s", source.Type, f.Transform)
		}
		name := f.Name
		if name == "" {
			if name, err = iceberg.GeneratePartitionFieldName(schema, iceberg.PartitionField{SourceIDs: []int{source.ID}, Transform: transform}); err != nil {
				return nil, err
			}
		}
		options = append(options, iceberg.AddPartitionFieldBySourceID(source.ID, name, transform, schema, nil))
	}
	if len(options) == 0 {
		return iceberg.UnpartitionedSpec, nil
	}
	spec, err := iceberg.NewPartitionSpecOpts(options...)
	if err != nil {
		return nil, faultf(kindSchema, "the partition cannot be: %w", err)
	}
	return &spec, nil
}

// partsOf writes a partition spec in the words of the seam.
func partsOf(spec iceberg.PartitionSpec, schema *iceberg.Schema) []meta.PartitionField {
	var out []meta.PartitionField
	for _, f := range spec.Fields() {
		name, _ := schema.FindColumnName(f.SourceID())
		out = append(out, meta.PartitionField{Source: f.SourceID(), Column: name, Name: f.Name, Transform: f.Transform.String()})
	}
	return out
}
