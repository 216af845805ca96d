package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
	"github.com/riverbed/riverbed/core/objstore"
)

// What uploads of ended processes left in a file system goes; what may be an upload of ours, or is nobody's, stays.
func TestLeftoversOfEndedUploadsGo(t *testing.T) {
	o := testOptions(objstore.Local{}, newHasty())
	o.Dir = t.TempDir()
	o.Warn = func(err error) { t.Error(err) }
	s := open(t, o)
	epoch(t, s, nil, nil, stateOf("a", "t", change{"x", 1}))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	gone := []string{".manifest-0000000000.json.123.tmp", ".lease-000001.json.9.tmp", "data/.0000000003-000001-7.rbd.77.tmp", "data/.0000000001-0000000003-000001-7.rbd.78.tmp",
		"data/0000000009-000001-3.rbd"}
	kept := []string{".manifest-0000000002.json.123.tmp", ".lease-000002.json.9.tmp", "data/.0000000003-000002-7.rbd.77.tmp", "data/.other.tmp", "notes.txt", "data/readme.rbd",
		"data/0000000009-000003-3.rbd", "../p2/.lease-000001.json.9.tmp"}
	if err := os.Mkdir(filepath.Join(o.Dir, "p2"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(slices.Clone(gone), kept...) {
		if err := os.WriteFile(filepath.Join(o.Dir, "p", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, o)
	m, err := s.Fence(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if !contentOf(t, s, m).equal(content{map[string]string{"a/t/x": "1"}, nil}) {
		t.Error("the content is another")
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(o.Dir, "p", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(o.Dir, "p", name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A merge that finds damage says so, and does not read everything again behind each epoch.
func TestAMergeThatFailsIsToldOfAndWaits(t *testing.T) {
	d := objstore.NewDouble()
	var told []string
	o := testOptions(d, newHasty())
	o.Warn = func(err error) { told = append(told, err.Error()) }
	s := open(t, o)
	m := epoch(t, s, nil, nil)
	m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", 1}))
	flip(t, d, at(m.Objects[0].Name), 60)
	for i := range mergePause {
		m = epoch(t, s, m, nil, stateOf("a", "t", change{"y", i}))
	}
	if len(told) != 1 || !strings.Contains(told[0], m.Objects[0].Name) || !strings.Contains(told[0], "damaged") {
		t.Errorf("told %q", told)
	}
}

func TestWhatMayPassIsTransient(t *testing.T) {
	ctx := context.Background()
	gone, stop := context.WithCancel(ctx)
	stop()
	for _, c := range []struct {
		ctx       context.Context
		err       error
		kind      errs.Kind
		transient bool
	}{
		{ctx, &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, errs.Checkpoint, true},
		{ctx, &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, errs.Checkpoint, false},
		{ctx, objstore.ErrExists, errs.Checkpoint, false},
		{ctx, errs.New(errs.Source, "write", "the bucket does not answer").AsTransient(), errs.Checkpoint, true},
		{ctx, errs.New(errs.Usage, "write", "no such bucket"), errs.Usage, false},
		{gone, errors.New("whatever"), errs.Cancelled, false},
	} {
		e := errs.As(storeFailed(c.ctx, errs.Checkpoint, "write", "x", c.err))
		if e.Kind != c.kind || e.Transient != c.transient {
			t.Errorf("%v: %v, transient %v", c.err, e.Kind, e.Transient)
		}
	}
}

// FuzzManifest reads what may stand in a folder: it is refused or is what was written.
func FuzzManifest(f *testing.F) {
	m := &Manifest{Pipeline: "p", Epoch: 3, Objects: objectsOf(1, 2), Sinks: []Sink{{Name: "s", Pending: []Link{{Epoch: 2}}}}}
	data, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"crc32c": "00000000", "format": 2}`))
	f.Add([]byte(`{"format": 2}`))
	f.Add([]byte(`{"format": 2, "crc32c": "`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeManifest("x", data, "1.0")
		if err != nil {
			if !errs.Is(err, errs.State) {
				t.Fatal(err)
			}
			return
		}
		if _, err := got.encode(); err != nil {
			t.Fatal(err)
		}
	})
}

// An epoch that somebody reads stays whole while the pipeline goes on, until it is let go or an hour has passed.
func TestHeldEpochsStay(t *testing.T) {
	d, ctx, c := objstore.NewDouble(), context.Background(), newHasty()
	o := testOptions(d, c)
	s := open(t, o)
	m := epoch(t, s, nil, nil, stateOf("a", "t", change{"x", 1}))
	read := o
	read.ReadOnly = true
	reader := open(t, read)
	release, err := reader.Hold(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	goOn := func(n int) {
		for i := range n {
			m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", i}))
		}
	}
	first := m
	goOn(20)
	s.Close()
	s = open(t, o) // another holder finds the hold
	if m, err = s.Fence(ctx); err != nil {
		t.Fatal(err)
	}
	goOn(10)
	if got := contentOf(t, reader, first); got.state["a/t/x"] != "1" {
		t.Errorf("got %v", got)
	}
	there := func(e flow.Epoch) bool {
		_, err := reader.Manifest(ctx, e)
		return err == nil
	}
	if !there(0) {
		t.Error("the held manifest is gone")
	}
	release()
	goOn(1)
	if there(0) || reader.Read(ctx, first, func(Section) error { return nil }) == nil {
		t.Error("what was let go is still there")
	}
	if _, err := reader.Hold(ctx, 0); !errs.Is(err, errs.State) {
		t.Errorf("what is gone cannot be held: %v", err)
	}

	last := m.Epoch
	if _, err := reader.Hold(ctx, last); err != nil {
		t.Fatal(err)
	}
	goOn(10)
	c.Advance(holdFor - 1)
	if goOn(1); !there(last) {
		t.Error("it is gone too early")
	}
	c.Advance(2)
	goOn(1)
	if goOn(1); there(last) {
		t.Error("whoever ended without a word holds it for ever")
	}
	if left, err := s.list(ctx, "hold-*"); len(left) != 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}
