package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
)

// table is a folder with a log.
type table struct {
	path  string // as the user wrote it
	store objstore.Store
	dir   string // within the store
}

func newTable(path string) (*table, error) {
	store, dir, err := objstore.For(path)
	if err != nil {
		return nil, err
	}
	if trimmed := strings.TrimRight(dir, "/"); trimmed != "" {
		dir = trimmed
	}
	return &table{path, store, dir}, nil
}

// locate finds a file that the log names: below the table, or anywhere when it is a URL or begins with /.
func (t *table) locate(name string) (objstore.Store, string, error) {
	if strings.Contains(name, "://") {
		return objstore.For(name)
	}
	if after, ok := strings.CutPrefix(name, "file:/"); ok { // as Java writes a URL
		return objstore.For("file:///" + after)
	}
	if path.IsAbs(name) {
		return t.store, name, nil
	}
	return t.store, t.dir + "/" + name, nil
}

// logFile is a file in the log's folder.
func (t *table) logFile(name string) string { return t.dir + "/_delta_log/" + name }

// listing is what the log's folder holds.
type listing struct {
	commits     map[int64]objstore.Info
	checkpoints map[int64][]checkpoint // whole ones
	first, last int64                  // version of the commits; -1: none
}

// checkpoint is the files that together hold one.
type checkpoint []objstore.Info

var (
	commitName = regexp.MustCompile(`^(\d{20})\.json$`)
	// One file; one part of several; one with the newer layout, whose name is free.
	checkpointName = regexp.MustCompile(`^(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.([0-9a-fA-F-]{36}))?\.(parquet|json)$`)
)

// list reads the names in the log's folder. _last_checkpoint is not needed beside them: it may be old or missing.
func (t *table) list(ctx context.Context) (*listing, error) {
	infos, err := t.store.Glob(ctx, escapeGlob(t.dir)+"/_delta_log/*")
	if err != nil {
		return nil, t.cannot("list the log of", err)
	}
	l := &listing{commits: map[int64]objstore.Info{}, checkpoints: map[int64][]checkpoint{}, first: -1, last: -1}
	parts := map[[2]string]checkpoint{}
	for _, info := range infos {
		name := path.Base(strings.ReplaceAll(info.Name, "\\", "/"))
		if m := commitName.FindStringSubmatch(name); m != nil {
			if v, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				l.commits[v] = info
				if l.first < 0 || v < l.first {
					l.first = v
				}
				l.last = max(l.last, v)
			}
			continue
		}
		m := checkpointName.FindStringSubmatch(name)
		if m == nil || info.Size == 0 {
			continue
		}
		v, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			continue
		}
		if m[2] == "" {
			l.checkpoints[v] = append(l.checkpoints[v], checkpoint{info})
			continue
		}
		// They are listed in the order of their numbers.
		key := [2]string{m[1], m[3]}
		parts[key] = append(parts[key], info)
		if of, _ := strconv.Atoi(m[3]); len(parts[key]) == of {
			l.checkpoints[v] = append(l.checkpoints[v], parts[key])
		}
	}
	if l.last < 0 && len(l.checkpoints) == 0 {
		return nil, errs.New(errs.Source, "open", "%q is no Delta table: it has no log in the folder _delta_log", t.path).
			WithHint("name the folder that holds _delta_log; a folder of Parquet files is read by read_parquet")
	}
	for v := range l.checkpoints {
		l.last = max(l.last, v)
	}
	return l, nil
}

// escapeGlob makes a pattern that matches a name alone.
func escapeGlob(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`*?[]{}\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (t *table) cannot(what string, err error) error {
	return errs.Because(err, errs.Source, "read log", "check that the folder is there and may be read", "cannot %s the Delta table %q", what, t.path)
}

// commit reads the changes of one version; ok is false when there is none yet.
func (t *table) commit(ctx context.Context, version int64) (a *actions, ok bool, err error) {
	name := fmt.Sprintf("%020d.json", version)
	f, err := t.store.Open(ctx, t.logFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, t.cannot("open version "+strconv.FormatInt(version, 10)+" of", err)
	}
	defer func() { _ = f.Close() }()
	a = &actions{}
	if f.Info().Size == 0 {
		err = errors.New("it is empty")
	} else {
		err = parseActions(io.NewSectionReader(f, 0, f.Info().Size), a)
	}
	if err != nil {
		return nil, false, t.broken(name, err)
	}
	return a, true, nil
}

// broken says which file of the log is not to be read.
func (t *table) broken(name string, err error) error {
	return errs.Because(err, errs.Source, "read log", "the log of a table is not changed by hand; restore the file, or read an earlier version by version = N",
		"the file %s in the log of the Delta table %q cannot be read", name, t.path)
}

// at finds the version that was the newest at a time. A table may keep the times of its commits itself, from some version on; before it, and
// elsewhere, they are those of the files.
func (t *table) at(ctx context.Context, l *listing, when time.Time) (int64, error) {
	versions := slices.Sorted(maps.Keys(l.commits))
	for ; len(versions) > 0; versions = versions[:len(versions)-1] {
		v := versions[len(versions)-1]
		a, ok, err := t.commit(ctx, v)
		if err != nil {
			return 0, err
		}
		if !ok || a.time == 0 {
			break
		}
		if !time.UnixMilli(a.time).After(when) {
			return v, nil
		}
	}
	found, last := int64(-1), time.Time{}
	for _, v := range versions {
		if made := l.commits[v].Modified; made.After(last) { // clocks differ; versions do not
			last = made
		}
		if last.After(when) {
			break
		}
		found = v
	}
	if found < 0 {
		return 0, errs.New(errs.Source, "open", "the Delta table %q has no version as old as %s; its log begins with version %d", t.path, when.UTC().Format(time.RFC3339), l.first).
			WithHint("leave timestamp out, or give a later one")
	}
	return found, nil
}
