package sim

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/riverbed/riverbed/connectors"
)

// losePower ends all processes and takes from the disk what was not synced. Then it looks at what is left, as whoever repairs the machine may. The world is held.
func (w *World) losePower(kind loss) {
	r := w.draw("loss", w.ops)
	if kind == losses {
		kind = loss(r.IntN(int(losses)))
	}
	w.note("power is lost, kind %d", kind)
	for _, p := range w.processes {
		p.off = true
		if !p.dead {
			p.kill()
		}
	}
	w.disk.lose(kind, r)
	if w.files.sink {
		w.vault.survived()
	}
	if w.files.checkpoints {
		w.survived()
	}
}

// survived holds the newest checkpoint against what the sink has: an epoch that is committed must not be lost.
func (w *World) survived() {
	newest := int64(-1)
	w.disk.below("/checkpoints", func(name string, _ *inode) {
		var epoch int64
		if n, _ := fmt.Sscanf(path.Base(name), "manifest-%d.json", &epoch); n == 1 {
			newest = max(newest, epoch)
		}
	})
	for marker, m := range w.store.manifests {
		if int64(m.Epoch) > newest { // the epoch will be another one
			delete(w.store.manifests, marker)
		}
	}
	if epoch := epochOf(w.vault.marker); epoch > newest {
		w.violate("the sink has epoch %d, and the checkpoints that survive the loss of power are of epoch %d", epoch, newest)
	}
}

func epochOf(m connectors.Marker) (epoch int64) {
	if _, text, ok := strings.Cut(string(m), ":"); ok {
		_, _ = fmt.Sscan(text, &epoch)
		return epoch
	}
	return -1
}

// survived looks at a folder of files: each is whole, and those that the sink's manifest names are there.
func (v *vault) survived() {
	v.marker = ""
	v.w.disk.below("/out", func(name string, n *inode) {
		if !strings.HasSuffix(name, ".commit") {
			return
		}
		var entry struct {
			Marker connectors.Marker `json:"marker"`
			Files  []struct {
				Path string `json:"path"`
				Size int    `json:"bytes"`
			} `json:"files"`
		}
		if err := json.Unmarshal(n.data, &entry); err != nil {
			v.w.violate("an entry of the sink's manifest does not survive the loss of power: %v", err)
			return
		}
		v.marker = entry.Marker
		for _, f := range entry.Files {
			if file := v.w.disk.find(path.Join("/out", f.Path)); file == nil || len(file.data) != f.Size {
				v.w.violate("a file of epoch %d, which is committed, does not survive the loss of power", epochOf(entry.Marker))
			}
		}
	})
	v.readFolder()
}
