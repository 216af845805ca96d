package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// The sink of files is the engine's own. Its reader lists the folder, as anybody would, and knows nothing of the sink's manifest.

// entered is told of a new entry of the sink's manifest: by then all files of its epoch are visible, and no others.
func (v *vault) entered(data []byte) {
	var entry struct {
		Marker connectors.Marker `json:"marker"`
		Files  []any             `json:"files"`
	}
	if err := json.Unmarshal(data, &entry); err != nil {
		v.w.violate("the sink's manifest has an entry that cannot be read: %v", err)
		return
	}
	v.marker = entry.Marker
	if strings.HasSuffix(string(entry.Marker), ":0") {
		return
	}
	v.readFolder()
	v.apply(entry.Marker, nil)
}

// readFolder adds up the rows of all visible files.
func (v *vault) readFolder() {
	v.rows = map[string]int64{}
	texts, err := v.files()
	for _, text := range texts {
		for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
			if err == nil && len(line) > 0 {
				err = v.readLine(line)
			}
		}
	}
	if err != nil {
		v.w.violate("the sink's folder cannot be read: %v", err)
	}
}

// files are the contents of all visible files.
func (v *vault) files() (out [][]byte, err error) {
	if v.w.files.sink {
		v.w.disk.below("/out", func(name string, n *inode) {
			if path.Ext(name) == ".jsonl" {
				out = append(out, n.data)
			}
		})
		return out, nil
	}
	ctx, store := context.Background(), v.w.store.double
	found, err := store.Glob(ctx, "/out/**/*.jsonl")
	for _, f := range found {
		text, e := objstore.Get(ctx, store, f.Name)
		if e != nil {
			return nil, e
		}
		out = append(out, text)
	}
	return out, err
}

// readLine adds a row, whose last member is its weight.
func (v *vault) readLine(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var cells []string
	for member, name := 0, ""; d.More() || member == 0; member++ {
		tok, err := d.Token()
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		switch text := fmt.Sprint(tok); {
		case member == 0: // the brace
		case member%2 == 1:
			name = text
		case name == flow.WeightColumn:
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return err
			}
			row := strings.Join(cells, "|")
			if v.rows[row] += n; v.rows[row] == 0 {
				delete(v.rows, row)
			}
		default:
			if at, err := time.Parse(time.DateTime, text); err == nil {
				text = fmt.Sprint(at.UnixMicro())
			}
			cells = append(cells, text)
		}
	}
	return nil
}
