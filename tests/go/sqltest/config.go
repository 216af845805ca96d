package sqltest

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Config is one way to run every file: tests/sql/configs/<name>.config.
type Config struct {
	Name    string
	Run     string // batch, incremental, views, duckdb
	Cut     string // file, one, row, random
	Memory  string // memory_limit of a batch run
	Workers int
	Repeat  int // copies of every row, so that batches are big enough for several workers
	Restart bool
	Durable bool   // restarts are from checkpoints
	Store   string // where state leaves memory to at once: memory, or each kind in turn; "" keeps it in memory
	Seeds   int    // full run
	Brief   int    // short run
}

// Configs reads the configurations of a folder, in the order of their names.
func Configs(folder string) ([]Config, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.config"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no configurations in %s", folder)
	}
	sort.Strings(paths)
	var out []Config
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		c := Config{Name: strings.TrimSuffix(filepath.Base(path), ".config"), Run: "incremental", Cut: "file", Workers: 1, Repeat: 1, Seeds: 1, Brief: 1}
		for n, line := range strings.Split(string(b), "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			key, val, ok := strings.Cut(line, "=")
			if !ok || !c.set(strings.TrimSpace(key), strings.TrimSpace(val)) {
				return nil, fmt.Errorf("%s:%d: what is %q?", path, n+1, line)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func (c *Config) set(key, val string) bool {
	n, err := strconv.Atoi(val)
	number := err == nil
	switch key {
	case "run":
		c.Run = val
		return val == "batch" || val == "incremental" || val == "views" || val == "duckdb"
	case "cut":
		c.Cut = val
		return val == "file" || val == "one" || val == "row" || val == "random"
	case "memory":
		c.Memory = val
		return val != ""
	case "store":
		c.Store = val
		return val == "memory" || val == "each"
	case "workers":
		c.Workers = n
	case "repeat":
		c.Repeat = n
	case "seeds":
		c.Seeds = n
	case "brief":
		c.Brief = n
	case "restart":
		c.Restart, c.Durable = val != "no", val == "checkpoint"
		return val == "yes" || val == "no" || val == "checkpoint"
	default:
		return false
	}
	return number
}
