package riverbed

import (
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/objstore"
	"github.com/riverbed/riverbed/core/sql"
	"github.com/riverbed/riverbed/state"
)

// setting is one key of Config. The environment variable is RIVERBED_ and the key in upper case, unless env says otherwise.
type setting struct {
	key, env, doc string
	set           func(c *config, v string) error
	get           func(c *config) string
}

// config is the parsed configuration of a session. It is replaced whole, never changed, once a session uses it.
type config struct {
	stateDir         string
	checkpointURL    string
	fromSavepoint    string
	changedQuery     string
	acceptDuplicates bool
	checkpointMS     int64
	maxWatermarkLag  int64 // ms
	maxSplitLead     int64 // ms
	idleTimeout      int64 // ms
	maxOutage        int64 // ms
	parallelism      int
	memoryLimit      int64 // bytes
	stateRoom        *state.Room
	logLevel         string
	telemetry        bool
	kafkaBrokers     string
	awsRegion        string
	zone             *time.Location
	stepRows         int
	strictRetraction bool
	onError          string
	descending       bool              // default_order
	nulls            string            // default_null_order
	ignored          map[string]string // settings without effect, as given; replaced, never changed
}

// What an expression that fails on a row does to its query.
const (
	onErrorFail = "fail"
	onErrorBad  = "bad"
)

// settings lists every key once; SHOW ALL and the error for an unknown key come from it.
var settings = []setting{
	plain("state_dir", "", "directory for state that does not fit in memory", func(c *config) *string { return &c.stateDir }),
	{"checkpoint_url", "", "where the checkpoints of pipelines go: a directory, file:// or s3://; without it they have none", func(c *config, v string) error {
		c.checkpointURL = v
		_, _, err := objstore.For(v)
		return err
	}, func(c *config) string { return c.checkpointURL }},
	plain("from_savepoint", "", "the savepoint from which pipelines without checkpoints begin, or a folder that has one for each of them by its id; it stays as it is", func(c *config) *string { return &c.fromSavepoint }),
	{"changed_query", "", "what becomes of checkpoints of another query: 'refuse', 'reuse' the state of operators that compute what they did, or 'rebuild' it from the history of the sources", func(c *config, v string) error {
		if v != changedRefuse && v != changedReuse && v != changedRebuild {
			return errs.New(errs.Usage, "configure", "expected 'refuse', 'reuse' or 'rebuild', got %q", v)
		}
		c.changedQuery = v
		return nil
	}, func(c *config) string { return c.changedQuery }},
	flag("accept_duplicates", "go on with a sink whose marker the checkpoints do not know: rows may be lost or doubled", func(c *config) *bool { return &c.acceptDuplicates }),
	millis("checkpoint_interval_ms", "time between checkpoints", func(c *config) *int64 { return &c.checkpointMS }),
	millis("max_watermark_lag_ms", "upper bound of allowed lateness", func(c *config) *int64 { return &c.maxWatermarkLag }),
	millis("max_split_lead_ms", "how far one split may run ahead of the slowest, in event time", func(c *config) *int64 { return &c.maxSplitLead }),
	millis("idle_timeout_ms", "a split without rows for so long does not hold back the watermark", func(c *config) *int64 { return &c.idleTimeout }),
	millis("max_outage_ms", "how long a running pipeline waits for a service that does not answer, before it ends", func(c *config) *int64 { return &c.maxOutage }),
	positive("parallelism", "workers of a query", func(c *config) *int { return &c.parallelism }),
	{"memory_limit", "", "bytes that operators may hold ('4GB', '512MB')", func(c *config, v string) (err error) {
		c.memoryLimit, err = parseBytes(v)
		return err
	}, func(c *config) string { return strconv.FormatInt(c.memoryLimit, 10) }},
	{"log_level", "", strings.Join(logLevels, ", "), func(c *config, v string) error {
		if !slices.Contains(logLevels, v) {
			return errs.New(errs.Usage, "configure", "expected one of %s, got %q", strings.Join(logLevels, ", "), v)
		}
		c.logLevel = v
		return nil
	}, func(c *config) string { return c.logLevel }},
	flag("telemetry", "write one local JSON file of usage; never the network", func(c *config) *bool { return &c.telemetry }),
	plain("kafka_brokers", "KAFKA_BROKERS", "default of brokers= for Kafka connectors", func(c *config) *string { return &c.kafkaBrokers }),
	plain("aws_region", "AWS_REGION", "region for S3", func(c *config) *string { return &c.awsRegion }),
	{"timezone", "", "session time zone for TIMESTAMP WITH TIME ZONE", func(c *config, v string) (err error) {
		c.zone, err = loadZone(v)
		return err
	}, func(c *config) string { return c.zone.String() }},
	positive("step_rows", "rows that one step takes at most", func(c *config) *int { return &c.stepRows }),
	{"on_error", "", "what a row does that an expression fails on: 'fail' ends the query, 'bad' leaves the row out and puts it into __bad", func(c *config, v string) error {
		if v != onErrorFail && v != onErrorBad {
			return errs.New(errs.Usage, "configure", "expected 'fail' or 'bad', got %q", v)
		}
		c.onError = v
		return nil
	}, func(c *config) string { return c.onError }},
	{"default_order", "", "the order of ORDER BY without ASC or DESC; a view keeps the one that it was made with", func(c *config, v string) error {
		switch strings.ToUpper(v) {
		case "ASC", "ASCENDING", "DEFAULT":
			c.descending = false
		case "DESC", "DESCENDING":
			c.descending = true
		default:
			return errs.New(errs.Usage, "configure", "expected ASC or DESC, got %q", v)
		}
		return nil
	}, func(c *config) string {
		if c.descending {
			return "DESC"
		}
		return "ASC"
	}},
	{"default_null_order", "", "where NULLs stand in ORDER BY without NULLS FIRST or LAST: nulls_last, nulls_first, nulls_first_on_asc_last_on_desc, nulls_last_on_asc_first_on_desc; a view keeps the one that it was made with", func(c *config, v string) error {
		known, ok := nullOrders[strings.ReplaceAll(strings.ToLower(v), " ", "_")]
		if !ok {
			return errs.New(errs.Usage, "configure", "expected nulls_last, nulls_first, nulls_first_on_asc_last_on_desc or nulls_last_on_asc_first_on_desc, got %q", v)
		}
		c.nulls = known
		return nil
	}, func(c *config) string { return c.nulls }},
	flag("strict_retractions", "fail when a row is retracted that was never there, instead of counting it", func(c *config) *bool { return &c.strictRetraction }),
}

// aliases are DuckDB's names of settings that we have under another.
var aliases = map[string]string{"threads": "parallelism", "worker_threads": "parallelism", "max_memory": "memory_limit", "null_order": "default_null_order"}

// nullOrders are the spellings of default_null_order.
var nullOrders = map[string]string{"nulls_last": nullsLast, "null_last": nullsLast, "last": nullsLast, "default": nullsLast,
	"nulls_first": nullsFirst, "null_first": nullsFirst, "first": nullsFirst,
	nullsLeast: nullsLeast, "sqlite": nullsLeast, "mysql": nullsLeast, nullsGreatest: nullsGreatest, "postgres": nullsGreatest}

const (
	nullsLast     = "nulls_last"
	nullsFirst    = "nulls_first"
	nullsLeast    = "nulls_first_on_asc_last_on_desc"
	nullsGreatest = "nulls_last_on_asc_first_on_desc"
)

// order is what default_order and default_null_order say.
func (c *config) order() sql.Order {
	return sql.Order{Desc: c.descending, NullsFirst: c.nulls == nullsFirst || c.nulls == nullsLeast, NullsFirstDesc: c.nulls == nullsFirst || c.nulls == nullsGreatest}
}

var logLevels = []string{"trace", "debug", "info", "warn", "error"}

func plain(key, env, doc string, at func(*config) *string) setting {
	return setting{key, env, doc, func(c *config, v string) error { *at(c) = v; return nil }, func(c *config) string { return *at(c) }}
}

func flag(key, doc string, at func(*config) *bool) setting {
	return setting{key, "", doc, func(c *config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return errs.New(errs.Usage, "configure", "expected true or false, got %q", v)
		}
		*at(c) = b
		return nil
	}, func(c *config) string { return strconv.FormatBool(*at(c)) }}
}

func millis(key, doc string, at func(*config) *int64) setting {
	return setting{key, "", doc, func(c *config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return errs.New(errs.Usage, "configure", "expected a number of milliseconds, got %q", v)
		}
		*at(c) = n
		return nil
	}, func(c *config) string { return strconv.FormatInt(*at(c), 10) }}
}

func positive(key, doc string, at func(*config) *int) setting {
	return setting{key, "", doc, func(c *config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return errs.New(errs.Usage, "configure", "expected a positive number, got %q", v)
		}
		*at(c) = n
		return nil
	}, func(c *config) string { return strconv.Itoa(*at(c)) }}
}

func loadZone(name string) (*time.Location, error) {
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, errs.New(errs.Usage, "configure", "unknown time zone %q", name).WithHint("use a name such as 'UTC' or 'Europe/London'")
	}
	return loc, nil
}

// parseBytes reads "512MB", "4 GiB" or a plain number of bytes.
func parseBytes(s string) (int64, error) {
	num := strings.TrimRight(strings.TrimSpace(s), "BbIiKkMmGgTt ")
	unit := strings.ToUpper(strings.TrimSpace(strings.TrimSpace(s)[len(num):]))
	factors := map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
	f, ok := factors[unit]
	n, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if !ok || err != nil || !(n >= 0 && n*f < math.MaxInt64) {
		return 0, errs.New(errs.Usage, "configure", "expected a size such as '4GB' or '512MiB', got %q", s)
	}
	return int64(n * f), nil
}

// newConfig reads the environment, then the given keys, which win.
func newConfig(given map[string]string) (*config, error) {
	c := &config{stateDir: "./.riverbed-state", checkpointMS: 30000, changedQuery: changedRefuse, maxWatermarkLag: 60000, maxSplitLead: 300000, idleTimeout: 10000, maxOutage: 300000,
		parallelism: runtime.NumCPU(), memoryLimit: defaultMemoryLimit(), stateRoom: state.NewRoom(0), logLevel: "info", zone: time.UTC, stepRows: 256 << 10, onError: onErrorFail, nulls: nullsLast}
	for _, s := range settings {
		env := s.env
		if env == "" {
			env = "RIVERBED_" + strings.ToUpper(s.key)
		}
		if v := os.Getenv(env); v != "" {
			if err := s.apply(c, env, v); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		s := findSetting(k)
		if s == nil {
			return nil, unknownSetting(k)
		}
		if err := s.apply(c, k, given[k]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// apply sets the key; an error says under which name the value was given.
func (s *setting) apply(c *config, name, v string) error {
	err := s.set(c, v)
	if err == nil {
		return nil
	}
	e := errs.As(err)
	e.Msg = name + ": " + e.Msg
	return e
}

func findSetting(key string) *setting {
	key = strings.ToLower(key)
	if name, ok := aliases[key]; ok {
		key = name
	}
	for i := range settings {
		if settings[i].key == key {
			return &settings[i]
		}
	}
	return nil
}

func settingNames() []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.key
	}
	return names
}

func unknownSetting(key string) *errs.Error {
	names := settingNames()
	all := slices.Clone(names)
	for _, g := range ignoredSettings {
		all = append(all, g.name)
	}
	hint := errs.DidYouMean(key, all)
	if hint == "" {
		hint = "known keys: " + strings.Join(names, ", ")
	}
	return errs.New(errs.Usage, "configure", "unknown setting %q", key).WithHint("%s", hint)
}

// defaultMemoryLimit is 80 % of what the machine, or the control group we run in, has.
func defaultMemoryLimit() int64 {
	total := int64(0)
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		for _, line := range strings.Split(string(data), "\n") {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
				kb, _ := strconv.ParseInt(f[1], 10, 64)
				total = kb << 10
			}
		}
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if data, err := os.ReadFile(path); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && n > 0 && (total == 0 || n < total) {
				total = n
			}
		}
	}
	return total / 10 * 8 // 0 where neither is known: no limit
}
