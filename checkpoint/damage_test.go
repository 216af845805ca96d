package checkpoint

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// damaged makes three epochs, of which the last has an object of its own, and lets do damage to files.
func damaged(t *testing.T, do func(d *objstore.Double, m *Manifest)) (*Store, *Manifest) {
	t.Helper()
	d := objstore.NewDouble()
	s := open(t, testOptions(d, newHasty()))
	m := epoch(t, s, nil, nil)
	m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", 1}))
	m = epoch(t, s, m, nil, stateOf("a", "t", change{"y", 2}, change{"z", 3}))
	do(d, m)
	return s, m
}

func at(name string) string { return "/d/p/" + name }

func flip(t *testing.T, d *objstore.Double, name string, i int) {
	t.Helper()
	data, err := objstore.Get(context.Background(), d, name)
	if err != nil {
		t.Fatal(err)
	}
	data[i%len(data)] ^= 0x10
	if err := objstore.Put(context.Background(), d, name, data); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsFoundBeforeAnythingIsVisited(t *testing.T) {
	ctx := context.Background()
	for what, c := range map[string]struct {
		do   func(d *objstore.Double, m *Manifest)
		says []string
	}{
		"missing": {func(d *objstore.Double, m *Manifest) { _ = d.Delete(ctx, at(m.Objects[1].Name)) },
			[]string{"is not there", "epoch 1 is whole"}},
		"truncated": {func(d *objstore.Double, m *Manifest) {
			data, _ := objstore.Get(ctx, d, at(m.Objects[1].Name))
			_ = objstore.Put(ctx, d, at(m.Objects[1].Name), data[:len(data)-1])
		}, []string{"bytes and not", "epoch 1 is whole"}},
		"corrupt": {func(d *objstore.Double, m *Manifest) { flip(t, d, at(m.Objects[1].Name), 33) },
			[]string{"checksum", "epoch 1 is whole"}},
		"both": {func(d *objstore.Double, m *Manifest) {
			flip(t, d, at(m.Objects[0].Name), 33)
			flip(t, d, at(m.Objects[1].Name), 33)
		}, []string{"checksum", "epoch 0 is whole"}},
	} {
		t.Run(what, func(t *testing.T) {
			s, m := damaged(t, c.do)
			visited := 0
			err := s.Read(ctx, m, func(Section) error { visited++; return nil })
			if !errs.Is(err, errs.State) || visited > 0 {
				t.Fatalf("visited %d sections: %v", visited, err)
			}
			for _, says := range append(c.says, "data/") {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
		})
	}
}

// Each byte of an object and of a manifest counts.
func TestEachFlippedBitIsFound(t *testing.T) {
	ctx := context.Background()
	s, m := damaged(t, func(*objstore.Double, *Manifest) {})
	d := s.objects.(*objstore.Double)
	for _, name := range []string{at(m.Objects[1].Name), at(manifestName(2))} {
		whole, err := objstore.Get(ctx, d, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << (i % 8)
			_ = objstore.Put(ctx, d, name, bad)
			got, err := s.Newest(ctx)
			if err == nil {
				err = s.Read(ctx, got, func(Section) error { return nil })
			}
			if !errs.Is(err, errs.State) {
				t.Fatalf("%s, byte %d: %v", name, i, err)
			}
		}
		_ = objstore.Put(ctx, d, name, whole)
	}
	if err := s.Read(ctx, m, func(Section) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestTheNewestManifestDecides(t *testing.T) {
	s, _ := damaged(t, func(d *objstore.Double, _ *Manifest) { flip(t, d, at(manifestName(2)), 700) })
	m, err := s.Newest(context.Background())
	if m != nil || !errs.Is(err, errs.State) || !strings.Contains(err.Error(), "epoch 1 is whole") || !strings.Contains(err.Error(), manifestName(2)) {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestAnotherFormatIsRefused(t *testing.T) {
	ctx := context.Background()
	s, _ := damaged(t, func(d *objstore.Double, m *Manifest) {
		data, _ := objstore.Get(ctx, d, at(manifestName(2)))
		data = bytes.Replace(data, []byte(`"format": 2`), []byte(`"format": 7`), 1)
		data = bytes.Replace(data, []byte(`"riverbed": "1.0"`), []byte(`"riverbed": "9.2"`), 1)
		_ = objstore.Put(ctx, d, at(manifestName(2)), data)
	})
	_, err := s.Newest(ctx)
	for _, says := range []string{"Riverbed 9.2", "format 7", "Riverbed 1.0", "format 2"} {
		if !errs.Is(err, errs.State) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

// What a visit says is not taken for damage.
func TestAVisitsErrorComesBack(t *testing.T) {
	s, m := damaged(t, func(*objstore.Double, *Manifest) {})
	want := errs.New(errs.State, "restore", "another table")
	if err := s.Read(context.Background(), m, func(Section) error { return want }); err != error(want) {
		t.Errorf("got %v", err)
	}
}

func TestPipelineNames(t *testing.T) {
	for _, id := range []string{"a/b", "..", `a\b`, ".x"} {
		o := testOptions(objstore.NewDouble(), newHasty())
		o.Pipeline = id
		if _, err := Open(context.Background(), o); !errs.Is(err, errs.Usage) {
			t.Errorf("%q: %v", id, err)
		}
	}
	o := testOptions(objstore.Local{}, newHasty())
	o.Dir, o.Pipeline = t.TempDir(), "odd [name] {*}?" // characters that a glob would expand
	s := open(t, o)
	m := epoch(t, s, nil, nil)
	for range 6 {
		m = epoch(t, s, m, nil, stateOf("a", "t", change{"x", 1}))
	}
	if epochs, err := s.Epochs(context.Background()); err != nil || len(epochs) != 3 {
		t.Errorf("%v, %v", epochs, err)
	}
}

func TestAStoreThatIsReadOnlyWritesNothing(t *testing.T) {
	s, m := damaged(t, func(*objstore.Double, *Manifest) {})
	d, ctx := s.objects.(*objstore.Double), context.Background()
	o := testOptions(d, newHasty())
	o.ReadOnly = true
	d.Plan = func(_ int, op, name string) objstore.Fault {
		if op == "put" || op == "create" || op == "commit" || op == "delete" {
			t.Errorf("%s %s", op, name)
		}
		return objstore.NoFault
	}
	r := open(t, o)
	got, err := r.Newest(ctx)
	if err != nil || !contentOf(t, r, got).equal(contentOf(t, s, m)) {
		t.Errorf("%v, %v", got, err)
	}
	for _, err := range []error{r.Write(ctx, got, got, nil), r.Publish(ctx, got), func() error { _, err := r.Fence(ctx); return err }()} {
		if !errs.Is(err, errs.Usage) {
			t.Errorf("got %v", err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
