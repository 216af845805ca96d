package sim

import (
	"cmp"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"
)

// disk is the file system of the machine on which the processes of a history run. The end of a process takes nothing from it. A loss of power ends all
// processes and takes what was not synced, or some of it: of a file the bytes behind its last sync, of a folder the changes of its names since
// then, each on its own. So a name may stay whose bytes are lost, and a later change of a folder without an earlier one.
type disk struct {
	w     *World
	root  *inode
	nodes int
	temps int
}

// inode is a file or a folder.
type inode struct {
	id       int
	modified time.Time

	data   []byte
	synced int  // bytes that no loss takes
	broken bool // a sync failed: what was not synced by then never will be, whatever later syncs say

	names   map[string]*inode // of a folder
	kept    map[string]*inode // as they were when it was last synced
	changes []change          // since then
}

// change is one step of a folder: a name is another file's, or nobody's. A rename is one change of two names.
type change []struct {
	name string
	node *inode
}

func newDisk(w *World) *disk {
	d := &disk{w: w}
	d.root = d.folder()
	return d
}

func (d *disk) file() *inode {
	d.nodes++
	return &inode{id: d.nodes, modified: d.w.clock.Now()}
}

func (d *disk) folder() *inode {
	n := d.file()
	n.names, n.kept = map[string]*inode{}, map[string]*inode{}
	return n
}

// find is what a path names; nil when nothing has it.
func (d *disk) find(name string) *inode {
	at := d.root
	for part := range strings.SplitSeq(strings.Trim(path.Clean(name), "/"), "/") {
		if part != "" && at != nil {
			at = at.names[part]
		}
	}
	return at
}

// at is a path's folder and its last name.
func (d *disk) at(op, name string) (*inode, string, error) {
	dir, base := path.Split(path.Clean(name))
	folder := d.find(dir)
	if folder == nil || folder.names == nil {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return folder, base, nil
}

func (c change) apply(names map[string]*inode) {
	for _, one := range c {
		if one.node == nil {
			delete(names, one.name)
		} else {
			names[one.name] = one.node
		}
	}
}

func (n *inode) change(c change) {
	c.apply(n.names)
	n.changes = append(n.changes, c)
}

// sync makes durable what a file holds or which names a folder has. It says nothing of the name of either.
func (n *inode) sync() {
	if n.names == nil {
		if !n.broken {
			n.synced = len(n.data)
		}
		return
	}
	for _, c := range n.changes {
		c.apply(n.kept)
	}
	n.changes = nil
}

// loss says what of the unsynced stays when power is lost.
type loss uint8

const (
	nothing    loss = iota
	everything      // the machine wrote it meanwhile
	beginning       // in order: the first changes of each folder, the first bytes of each file
	some            // in no order
	losses
)

// lose takes what was not synced. Nothing is drawn by names, which differ between runs.
func (d *disk) lose(kind loss, r *rand.Rand) {
	nodes := map[int]*inode{}
	var walk func(n *inode)
	walk = func(n *inode) {
		if nodes[n.id] != nil {
			return
		}
		nodes[n.id] = n
		for _, names := range []map[string]*inode{n.names, n.kept} {
			for _, below := range names {
				walk(below)
			}
		}
		for _, c := range n.changes {
			for _, one := range c {
				if one.node != nil {
					walk(one.node)
				}
			}
		}
	}
	walk(d.root)
	order := make([]*inode, 0, len(nodes))
	for _, n := range nodes {
		order = append(order, n)
	}
	slices.SortFunc(order, func(a, b *inode) int { return cmp.Compare(a.id, b.id) })
	for _, n := range order {
		if n.names == nil {
			n.tear(kind, r)
			continue
		}
		stay := r.IntN(len(n.changes) + 1)
		for i, c := range n.changes {
			if kind == everything || kind == beginning && i < stay || kind == some && r.IntN(2) == 0 {
				c.apply(n.kept)
			}
		}
		n.names, n.changes = n.kept, nil
		n.kept = map[string]*inode{}
		for name, below := range n.names {
			n.kept[name] = below
		}
	}
}

// sector is how many bytes stay or go together.
const sector = 64

// tear cuts what was not synced of a file, or leaves holes in it.
func (n *inode) tear(kind loss, r *rand.Rand) {
	rest := n.data[n.synced:]
	end := r.IntN(len(rest) + 1)
	switch {
	case kind == nothing:
		end = 0
	case kind == everything && !n.broken:
		end = len(rest)
	case kind == some:
		end = len(rest)
		for from := 0; from < end; from += sector {
			if r.IntN(2) == 0 {
				clear(rest[from:min(from+sector, end)])
			}
		}
	}
	n.data = slices.Clone(n.data[:n.synced+end])
	n.synced, n.broken = len(n.data), false
}

// below calls for each file below a folder, in the order of their names.
func (d *disk) below(folder string, each func(name string, n *inode)) {
	n := d.find(folder)
	if n == nil {
		return
	}
	for _, base := range sorted(n.names) {
		name, below := path.Join(folder, base), n.names[base]
		if below.names == nil {
			each(name, below)
		} else {
			d.below(name, each)
		}
	}
}

// sorted are names in an order that is the seed's: that of names, and for those that differ by what processes drew, that in which their files were made.
func sorted(names map[string]*inode) []string {
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(plain(a), plain(b)), cmp.Compare(names[a].id, names[b].id), cmp.Compare(a, b))
	})
	return out
}
