package service

import (
	"context"
	"errors"
	"maps"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/riverbed/riverbed/connectors/iceberg/meta"
)

// tableOf is the table as the catalog has it now.
func (c *call) tableOf(ctx context.Context) (*table.Table, error) {
	t, err := c.catalog.LoadTable(ctx, c.ident)
	switch {
	case errors.Is(err, catalog.ErrNoSuchTable), errors.Is(err, catalog.ErrNoSuchNamespace):
		return nil, faultf(kindAbsent, "the catalog has no table %s", c.Table).hint("check the catalog and the name, or let it be created")
	case err != nil:
		return nil, err
	}
	return t, nil
}

func load(ctx context.Context, c *call) (meta.Answer, error) {
	t, err := c.tableOf(ctx)
	if err != nil {
		return meta.Answer{}, err
	}
	s, err := at(t, c.Ref)
	if err != nil {
		return meta.Answer{}, err
	}
	return meta.Answer{Table: describe(s)}, nil
}

func describe(s state) *meta.Table {
	m := s.Metadata()
	out := &meta.Table{
		Location: m.Location(), UUID: m.TableUUID().String(), Format: m.Version(), Schema: fieldsOf(s.schema.Fields()), SchemaID: s.schema.ID,
		Partition: partsOf(m.PartitionSpec(), m.CurrentSchema()), Spec: m.DefaultPartitionSpec(), Specs: map[int][]meta.PartitionField{}, Properties: m.Properties(),
	}
	for _, spec := range m.PartitionSpecs() {
		out.Specs[spec.ID()] = partsOf(spec, m.CurrentSchema())
	}
	if s.snapshot != nil {
		out.Snapshot = s.snapshot.SnapshotID
	}
	for _, snapshot := range history(s.Table, s.snapshot) {
		out.Snapshots = append(out.Snapshots, snapshotOf(snapshot))
	}
	return out
}

// settings of tables that we make: a stream commits often, so manifests are merged and old metadata files are not kept for ever.
var settings = iceberg.Properties{
	table.PropertyFormatVersion:               "2",
	table.ManifestMergeEnabledKey:             "true",
	table.MetadataDeleteAfterCommitEnabledKey: "true",
}

func create(ctx context.Context, c *call) (meta.Answer, error) {
	schema, err := schemaOf(c.Schema)
	if err != nil {
		return meta.Answer{}, err
	}
	spec, err := partitionOf(c.Partition, schema)
	if err != nil {
		return meta.Answer{}, err
	}
	properties := maps.Clone(settings)
	maps.Copy(properties, c.Settings)
	options := []catalog.CreateTableOpt{catalog.WithPartitionSpec(spec), catalog.WithProperties(properties)}
	if location := properties["location"]; location != "" {
		options = append(options, catalog.WithLocation(location))
		delete(properties, "location")
	}
	if err := c.namespace(ctx); err != nil {
		return meta.Answer{}, err
	}
	t, err := c.catalog.CreateTable(ctx, c.ident, schema, options...)
	if errors.Is(err, catalog.ErrTableAlreadyExists) {
		return meta.Answer{}, faultf(kindExists, "the catalog has a table %s", c.Table)
	}
	if err != nil {
		return meta.Answer{}, err
	}
	s, err := at(t, meta.Ref{})
	if err != nil {
		return meta.Answer{}, err
	}
	return meta.Answer{Table: describe(s)}, nil
}

// namespace makes the table's namespace, and those that it is in, when they are not there.
func (c *call) namespace(ctx context.Context) error {
	for n := 1; n < len(c.ident); n++ {
		namespace := c.ident[:n]
		if there, err := c.catalog.CheckNamespaceExists(ctx, namespace); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		if err := c.catalog.CreateNamespace(ctx, namespace, nil); err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
			return err
		}
	}
	return nil
}

// drop takes the table out of the catalog; its files stay.
func drop(ctx context.Context, c *call) (meta.Answer, error) {
	err := c.catalog.DropTable(ctx, c.ident)
	if errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace) {
		err = faultf(kindAbsent, "the catalog has no table %s", c.Table)
	}
	return meta.Answer{}, err
}

// evolve adds the columns that the table does not have and widens those that are narrower; what the request does not name stays.
func evolve(ctx context.Context, c *call) (meta.Answer, error) {
	schema, err := schemaOf(c.Schema)
	if err != nil {
		return meta.Answer{}, err
	}
	var out meta.Answer
	err = c.retry(ctx, func(t *table.Table) error {
		tx := t.NewTransaction()
		if err := tx.UpdateSchema(true, false).UnionByNameWith(schema).Commit(); err != nil {
			return faultf(kindSchema, "the table %s cannot take the new columns: %w", c.Table, err)
		}
		evolved, err := tx.Commit(ctx)
		if err != nil {
			return err
		}
		s, err := at(evolved, meta.Ref{})
		if err == nil {
			out.Table = describe(s)
		}
		return err
	})
	return out, err
}
