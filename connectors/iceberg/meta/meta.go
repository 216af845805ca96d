// Package meta is what the engine and the library of Iceberg metadata say to each other: one request and one answer in JSON a call. The
// library (capi/iceberg) knows catalogs, snapshots and manifests and imports iceberg-go; the engine reads and writes data files and
// imports this package alone.
//
// Invariant: a request says all that it needs. The library may keep a catalog's connection, never an answer to an earlier request.
package meta

// Catalog says where tables are looked up. Properties are those of the catalog's own clients ("uri", "warehouse", "token", …), and those
// of the object store; they may hold secrets and are in no message.
type Catalog struct {
	Type       string            `json:"type"` // sql, rest, glue, hadoop
	Name       string            `json:"name,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Ref names a state of a table: at most one of its fields, none for the newest snapshot of the main branch.
type Ref struct {
	Branch   string `json:"branch,omitempty"`
	Tag      string `json:"tag,omitempty"`
	Snapshot int64  `json:"snapshot,omitempty"`
	AsOf     int64  `json:"as_of_ms,omitempty"` // milliseconds since 1970: the newest snapshot of the branch at that time
}

// Request is one call. Which fields count depends on the operation.
type Request struct {
	Op      string  `json:"op"` // load, create, drop, files, changes, marker, begin, commit, evolve
	Catalog Catalog `json:"catalog"`
	Table   string  `json:"table"` // namespace.name
	Ref     Ref     `json:"ref,omitzero"`
	// After, for changes: the snapshot that was read last; 0 begins with the first of the branch.
	After int64 `json:"after,omitempty"`
	// Most, for changes: how many snapshots are told at most; 0 is all.
	Most int `json:"most,omitempty"`
	// Schema and Partition, for create and evolve.
	Schema    []Field           `json:"schema,omitempty"`
	Partition []PartitionField  `json:"partition,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"` // table properties
	// Commit, for commit and begin.
	Commit *Commit `json:"commit,omitempty"`
}

// Field is a column of an Iceberg schema. Type is Iceberg's word ("long", "decimal(10, 2)", "timestamptz"), or "struct", "list", "map" with
// Fields: those of the struct, the element, the key and the value.
type Field struct {
	ID       int     `json:"id"`
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Required bool    `json:"required,omitempty"`
	Doc      string  `json:"doc,omitempty"`
	Fields   []Field `json:"fields,omitempty"`
	// Initial is the value that files written before the column was added stand for (v3), as JSON; "" is NULL.
	Initial string `json:"initial,omitempty"`
	// Default is the value of rows that are written without the column (v3, write-default), as JSON; "" is NULL.
	Default string `json:"default,omitempty"`
}

// PartitionField is one part of a partition: a transform of a column ("identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour").
type PartitionField struct {
	Source    int    `json:"source"` // field id; in create it may be 0 with Column given
	Column    string `json:"column,omitempty"`
	Name      string `json:"name"`
	Transform string `json:"transform"`
}

// Table is a table as its metadata file says it.
type Table struct {
	Location  string           `json:"location"`
	UUID      string           `json:"uuid"`
	Format    int              `json:"format"`
	Schema    []Field          `json:"schema"` // of the Ref of the request
	SchemaID  int              `json:"schema_id"`
	Partition []PartitionField `json:"partition,omitempty"` // the default spec
	Spec      int              `json:"spec"`                // number of the default spec
	// Specs are all of them by number: a file is of the one that was the default when it was written (File.Spec).
	Specs      map[int][]PartitionField `json:"specs,omitempty"`
	Snapshot   int64                    `json:"snapshot,omitempty"` // that the Ref stands for; 0: the table has none
	Properties map[string]string        `json:"properties,omitempty"`
	Snapshots  []Snapshot               `json:"snapshots,omitempty"` // of the Ref, oldest first
}

// Snapshot is one commit.
type Snapshot struct {
	ID        int64             `json:"id"`
	Parent    int64             `json:"parent,omitempty"`
	Sequence  int64             `json:"sequence"`
	At        int64             `json:"at_ms"`
	Operation string            `json:"operation"` // append, overwrite, delete, replace
	Summary   map[string]string `json:"summary,omitempty"`
}

// File is a data file with what deletes rows of it.
type File struct {
	Path      string            `json:"path"`
	Rows      int64             `json:"rows"`
	Bytes     int64             `json:"bytes"`
	Sequence  int64             `json:"sequence"`            // data sequence number
	Partition map[string]string `json:"partition,omitempty"` // name of the part to its value in Iceberg's single-value JSON form (as in Lower); a missing name is NULL
	Spec      int               `json:"spec,omitempty"`      // number of its partition spec
	Format    string            `json:"format,omitempty"`    // parquet, orc, avro
	// Lower and Upper bound columns by field id, in Iceberg's single-value JSON form; for skipping files.
	Lower map[int]string `json:"lower,omitempty"`
	Upper map[int]string `json:"upper,omitempty"`
	// Nulls and Values count by field id, where the manifest says.
	Nulls  map[int]int64 `json:"nulls,omitempty"`
	Values map[int]int64 `json:"values,omitempty"`
	// Deletes apply to this file already: paired by partition, path and sequence number.
	Deletes []Delete `json:"deletes,omitempty"`
}

// Delete is a file of deleted rows.
type Delete struct {
	Path  string `json:"path"`
	Kind  string `json:"kind"`            // position, equality, vector
	Equal []int  `json:"equal,omitempty"` // field ids of an equality delete
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes,omitempty"` // of the whole file
	// Offset and Length of a deletion vector in its Puffin file.
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
}

// Change is what one snapshot did: whole files that came and went, and files whose deletes grew.
type Change struct {
	Snapshot Snapshot `json:"snapshot"`
	Schema   []Field  `json:"schema"`
	Added    []File   `json:"added,omitempty"`
	Removed  []File   `json:"removed,omitempty"` // with the deletes that applied before
	Deleted  []Pair   `json:"deleted,omitempty"`
}

// Pair is a file before and after more of its rows were deleted.
type Pair struct {
	Before File `json:"before"`
	After  File `json:"after"`
}

// Commit publishes the data files of one or more epochs of a pipeline as one snapshot. A commit whose marker the table holds is left as it is.
type Commit struct {
	Pipeline string `json:"pipeline"` // "": the marker is of this commit alone, and stands in its snapshot; nothing goes before it
	Epoch    int64  `json:"epoch"`    // the last epoch in it
	Marker   string `json:"marker"`   // of that epoch
	Previous string `json:"previous"` // what the table must hold for this pipeline
	Branch   string `json:"branch,omitempty"`
	// Add are files that were uploaded and are in no snapshot yet, Remove are data files that the new ones replace (copy-on-write): each must be in the
	// branch still, and unchanged since Base, or the answer is Conflict.
	Add    []string `json:"add,omitempty"`
	Remove []string `json:"remove,omitempty"`
	Base   int64    `json:"base,omitempty"`
	// Files says of the paths of Add what their writer knows: Partition and Spec, which cannot always be told from bounds (bucket), Rows and
	// Bytes. One that is not there is not partitioned.
	Files []File `json:"files,omitempty"`
}

// Answer is what a call gives. Error is "" when it went well.
type Answer struct {
	// Table is given by load, create, evolve, files and changes, from the same metadata as the rest.
	Table   *Table   `json:"table,omitempty"`
	Files   []File   `json:"files,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	// Marker is what the table holds for the pipeline, for marker, begin and commit.
	Marker string `json:"marker,omitempty"`
	// Snapshot is what a commit made, or the one that an earlier commit of the same marker had made.
	Snapshot int64 `json:"snapshot,omitempty"`
	// Conflict says that files of Commit.Remove were replaced by another writer: read them again.
	Conflict bool   `json:"conflict,omitempty"`
	Error    string `json:"error,omitempty"`
	// Kind is the kind of the error: absent (table, namespace, branch or tag), exists, expired (a snapshot that is gone), schema, marker, io, usage, canceled.
	Kind string `json:"kind,omitempty"`
	Hint string `json:"hint,omitempty"`
	// Transient says of an error that the same request may go well later.
	Transient bool `json:"transient,omitempty"`
}
