package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumAt stands before a manifest's checksum, which covers the file with eight zeros in its place: so the file is plain JSON, and a
// later version's additional fields do not change what is summed.
var sumAt = []byte(`"crc32c": "`)

const noSum = "00000000"

// encode writes a manifest as JSON.
func (m *Manifest) encode() ([]byte, error) {
	c := *m
	c.Format, c.Checksum = Format, noSum
	data, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return nil, errs.New(errs.Checkpoint, "checkpoint", "the manifest of epoch %d cannot be written: %w", m.Epoch, err)
	}
	data = append(data, '\n')
	at := bytes.Index(data, sumAt) + len(sumAt)
	copy(data[at:], fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli)))
	return data, nil
}

// decodeManifest reads what encode wrote. version is that of this program.
func decodeManifest(name string, data []byte, version string) (*Manifest, error) {
	var head struct {
		Format  int    `json:"format"`
		Version string `json:"riverbed"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, corrupt(name, "it is no JSON: %v", err)
	}
	if head.Format != Format {
		return nil, errs.New(errs.State, "restore", "%s was written by Riverbed %s in format %d, and this is Riverbed %s, which reads format %d",
			name, head.Version, head.Format, version, Format).
			WithHint("run the version that wrote it, or begin anew with another pipeline id")
	}
	at := bytes.Index(data, sumAt)
	if at < 0 || len(data) < at+len(sumAt)+len(noSum) {
		return nil, corrupt(name, "it has no checksum")
	}
	at += len(sumAt)
	want := string(data[at : at+len(noSum)])
	zeroed := bytes.Clone(data)
	copy(zeroed[at:], noSum)
	if sum := fmt.Sprintf("%08x", crc32.Checksum(zeroed, castagnoli)); sum != want {
		return nil, corrupt(name, "its checksum is %s and not %s", sum, want)
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, corrupt(name, "it cannot be read: %v", err)
	}
	return m, nil
}

// errDamaged is the cause of errors about files that are not what was written.
var errDamaged = errors.New("damaged")

// corrupt says what is wrong with an object or a manifest.
func corrupt(name, format string, args ...any) *errs.Error {
	e := errs.New(errs.State, "restore", "%s is damaged: %s", name, fmt.Sprintf(format, args...))
	e.Err = errDamaged
	return e
}

// Names within a pipeline's folder. Numbers have leading zeros so that listings are in order.
const (
	manifestPattern = "manifest-*.json"
	leasePattern    = "lease-*.json"
	dataPattern     = "data/*.rbd"
)

func manifestName(epoch flow.Epoch) string { return fmt.Sprintf("manifest-%010d.json", epoch) }

func leaseName(fence int64) string { return fmt.Sprintf("lease-%06d.json", fence) }

// dataName names an object by the epochs whose changes it has, the lease of who wrote it, and a number that is its own under that
// lease: no object is ever written twice.
func dataName(first, last flow.Epoch, fence, n int64) string {
	if first == last {
		return fmt.Sprintf("data/%010d-%06d-%d.rbd", last, fence, n)
	}
	return fmt.Sprintf("data/%010d-%010d-%06d-%d.rbd", first, last, fence, n)
}

// fenceOf is the lease in the name of an object; false for a name that is not ours.
func fenceOf(name string) (int64, bool) {
	parts := strings.Split(strings.TrimSuffix(name, ".rbd"), "-")
	if len(parts) < 3 || len(parts) > 4 {
		return 0, false
	}
	n, err := strconv.ParseInt(parts[len(parts)-2], 10, 64)
	return n, err == nil
}

// numberOf is the number in the name of a manifest or a lease.
func numberOf(name, before, after string) (int64, bool) {
	name, ok := strings.CutPrefix(name, before)
	if !ok {
		return 0, false
	}
	if name, ok = strings.CutSuffix(name, after); !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n >= 0
}
