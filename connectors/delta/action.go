package delta

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/riverbed/riverbed/core/errs"
)

// actions are what one commit, or a checkpoint, says. What does not concern a reader is left out.
type actions struct {
	protocol *protocol
	metadata *metadata
	adds     []*dataFile
	removes  []*dataFile
	changes  []*dataFile // of the change data feed
	sidecars []string
	time     int64 // commitInfo.inCommitTimestamp; 0: none
}

// protocol says what a reader must know.
type protocol struct {
	MinReaderVersion int      `json:"minReaderVersion"`
	ReaderFeatures   []string `json:"readerFeatures"`
}

// metadata describes the table.
type metadata struct {
	ID               string            `json:"id"`
	SchemaString     string            `json:"schemaString"`
	PartitionColumns []string          `json:"partitionColumns"`
	Configuration    map[string]string `json:"configuration"`
}

// dataFile is a file of rows, as add, remove and cdc actions name it.
type dataFile struct {
	Path       string             `json:"path"` // percent-encoded; relative to the table, or a URL
	Partition  map[string]*string `json:"partitionValues"`
	Size       *int64             `json:"size"`
	Modified   int64              `json:"modificationTime"` // in milliseconds
	DataChange bool               `json:"dataChange"`
	Stats      string             `json:"stats"`
	Vector     *vectorRef         `json:"deletionVector"`

	parsed fileStats
}

// fileKey is what tells the files of a table apart.
type fileKey struct{ path, vector string }

func (f *dataFile) key() fileKey { return fileKey{f.Path, f.Vector.id()} }

// name is the path as the store knows it.
func (f *dataFile) name() (string, error) {
	name, err := url.PathUnescape(f.Path)
	if err != nil || name == "" {
		return "", fmt.Errorf("%q is no path of a file", f.Path)
	}
	return name, nil
}

// parseActions reads the lines of a commit.
func parseActions(r io.Reader, into *actions) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if e := into.line(trimmed); e != nil {
				return fmt.Errorf("line %d: %w", n, e)
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// line reads one action.
func (a *actions) line(line []byte) error {
	var one map[string]json.RawMessage
	if err := json.Unmarshal(line, &one); err != nil {
		return cutOff(err)
	}
	for name, body := range one {
		if string(body) == "null" {
			continue
		}
		if err := a.take(name, body); err != nil {
			return fmt.Errorf("the action %q: %w", name, cutOff(err))
		}
	}
	return nil
}

// cutOff says plainly that a text ends too early.
func cutOff(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input" {
		return errors.New("it ends in the middle")
	}
	return err
}

func (a *actions) take(name string, body []byte) (err error) {
	switch name {
	case "add":
		a.adds, err = takeFile(a.adds, body)
	case "remove":
		a.removes, err = takeFile(a.removes, body)
	case "cdc":
		a.changes, err = takeFile(a.changes, body)
	case "metaData":
		a.metadata = &metadata{}
		err = json.Unmarshal(body, a.metadata)
	case "protocol":
		a.protocol = &protocol{}
		err = json.Unmarshal(body, a.protocol)
	case "sidecar":
		var s struct {
			Path string `json:"path"`
		}
		err = json.Unmarshal(body, &s)
		a.sidecars = append(a.sidecars, s.Path)
	case "commitInfo":
		var info struct {
			Time int64 `json:"inCommitTimestamp"`
		}
		// The rest of it is the writer's own business, and need not even be an object.
		if json.Unmarshal(body, &info) == nil {
			a.time = info.Time
		}
	case "txn", "domainMetadata", "checkpointMetadata":
	default:
		return errs.New(errs.Unsupported, "read log", "it is not known, and the rows of the table may depend on it").
			WithHint("read the table with the engine that wrote it, and copy it to Parquet files")
	}
	return err
}

func takeFile(to []*dataFile, body []byte) ([]*dataFile, error) {
	f := &dataFile{}
	if err := json.Unmarshal(body, f); err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return append(to, f), nil
}

func (f *dataFile) check() (err error) {
	if _, err = f.name(); err != nil {
		return err
	}
	if f.Size != nil && *f.Size < 0 {
		return fmt.Errorf("the file %q has the size %d", f.Path, *f.Size)
	}
	f.parsed, err = parseStats(f.Stats)
	if err != nil {
		return fmt.Errorf("the statistics of %q: %w", f.Path, err)
	}
	return f.Vector.check()
}
