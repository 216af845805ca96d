package checkpoint

import (
	"context"
	"slices"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// Write uploads the sections of an epoch as one object and says in next.Objects which objects count: those of prev that still do, and
// the new one. With prev nil nothing older counts. When there is nothing to write there is no object.
//
// AIDEV-NOTE: the epoch's object has a name of its own at each call, so a retry never touches what a manifest may name whose
// publication had no answer.
func (s *Store) Write(ctx context.Context, prev, next *Manifest, sections []Section) error {
	if err := s.writable(); err != nil {
		return err
	}
	sections = encodable(sections)
	objects := s.carried(prev)
	if len(sections) > 0 {
		o, err := s.upload(ctx, next.Epoch, sections)
		if err != nil {
			return err
		}
		objects = append(objects, o)
	}
	next.Objects = counting(objects, next)
	return nil
}

func (s *Store) upload(ctx context.Context, epoch flow.Epoch, sections []Section) (Object, error) {
	name := s.newName(epoch, epoch)
	s.mu.Lock()
	delete(s.making, s.writing) // of an attempt before this one
	s.writing = name
	s.mu.Unlock()
	w, err := s.newObject(ctx, name, epoch, epoch)
	if err != nil {
		return Object{}, err
	}
	defer w.abort()
	err = w.encode(ctx, sections)
	var o Object
	if err == nil {
		o, err = w.commit()
	}
	if err != nil {
		return Object{}, storeFailed(ctx, errs.Checkpoint, "write", s.url(name), err)
	}
	return o, nil
}

// newName names an object and keeps it from being collected.
func (s *Store) newName(first, last flow.Epoch) string {
	name := dataName(first, last, s.fence(), s.names.Add(1))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making[name] = true
	return name
}

// carried are the objects of a manifest, with the merged one instead of those it was made of.
func (s *Store) carried(prev *Manifest) []Object {
	if prev == nil {
		return nil
	}
	objects := slices.Clone(prev.Objects)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.merged == nil {
		return objects
	}
	if out, ok := s.merged.instead(objects); ok {
		return out
	}
	delete(s.making, s.merged.object.Name)
	s.merged = nil
	return objects
}

// counting narrows the index of objects to the sections that count in a manifest.
func counting(objects []Object, m *Manifest) []Object {
	type table struct{ owner, table string }
	newest := map[table]int{} // object with the newest whole table, counted from one
	age := map[string]int{}
	for i, o := range objects {
		age[o.Name] = i + 1
		for _, s := range o.Sections {
			if s.Kind == Whole {
				newest[table{s.Owner, s.Table}] = i + 1
			}
		}
	}
	return keepSections(objects, func(o Object, s SectionIndex) bool {
		switch s.Kind {
		case Whole:
			return newest[table{s.Owner, s.Table}] == age[o.Name]
		case Log: // of one object those are newer than the whole table: a merge takes only what counts
			return newest[table{s.Owner, s.Table}] <= age[o.Name]
		case Once:
			return o.Epochs[1] == m.Epoch || m.holds(s.Owner, o.Epochs[1])
		}
		return true
	})
}

// holds reports whether an epoch's rows are still to be committed to a sink.
func (m *Manifest) holds(sink string, epoch flow.Epoch) bool {
	for _, s := range m.Sinks {
		for _, l := range s.Pending {
			if s.Name == sink && l.Held && l.Epoch == epoch {
				return true
			}
		}
	}
	return false
}
