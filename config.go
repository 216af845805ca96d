package riverbed

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// setting is one key of Config. The environment variable is RIVERBED_ and the key in upper case, unless env says otherwise.
type setting struct {
	key, env, doc string
	set           func(c *config, v string) error
}

// config is the parsed configuration of a session.
type config struct {
	stateDir         string
	checkpointURL    string
	checkpointMS     int64
	maxWatermarkLag  int64 // ms
	maxSplitLead     int64 // ms
	idleTimeout      int64 // ms
	parallelism      int
	memoryLimit      int64 // bytes
	logLevel         string
	telemetry        bool
	kafkaBrokers     string
	awsRegion        string
	timeZone         string
	batchRows        int
	stepRows         int
	strictRetraction bool
}

// settings lists every key once; docs/reference and the error for an unknown key come from it.
var settings = []setting{
	{"state_dir", "", "directory for state that does not fit in memory", func(c *config, v string) error { c.stateDir = v; return nil }},
	{"checkpoint_url", "", "where durable checkpoints go; refused until they exist", func(c *config, v string) error {
		if v != "" {
			return errs.New(errs.Checkpoint, "configure", "checkpoint_url is set, but durable checkpoints are not part of this version").
				WithHint("leave it out: a restarted pipeline reads again from its sources' start")
		}
		return nil
	}},
	{"checkpoint_interval_ms", "", "time between checkpoints", millis(func(c *config) *int64 { return &c.checkpointMS })},
	{"max_watermark_lag_ms", "", "upper bound of allowed lateness", millis(func(c *config) *int64 { return &c.maxWatermarkLag })},
	{"max_split_lead_ms", "", "how far one split may run ahead of the slowest, in event time", millis(func(c *config) *int64 { return &c.maxSplitLead })},
	{"idle_timeout_ms", "", "a split without rows for so long does not hold back the watermark", millis(func(c *config) *int64 { return &c.idleTimeout })},
	{"parallelism", "", "workers of a query", positive(func(c *config) *int { return &c.parallelism })},
	{"memory_limit", "", "bytes that operators may hold ('4GB', '512MB')", func(c *config, v string) error {
		n, err := parseBytes(v)
		c.memoryLimit = n
		return err
	}},
	{"log_level", "", "trace, debug, info, warn or error", func(c *config, v string) error {
		for _, l := range []string{"trace", "debug", "info", "warn", "error"} {
			if v == l {
				c.logLevel = v
				return nil
			}
		}
		return errs.New(errs.Usage, "configure", "log_level must be trace, debug, info, warn or error, not %q", v)
	}},
	{"telemetry", "", "write one local JSON file of usage; never the network", func(c *config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return errs.New(errs.Usage, "configure", "telemetry must be true or false, not %q", v)
		}
		c.telemetry = b
		return nil
	}},
	{"kafka_brokers", "KAFKA_BROKERS", "default of brokers= for Kafka connectors", func(c *config, v string) error { c.kafkaBrokers = v; return nil }},
	{"aws_region", "AWS_REGION", "region for S3", func(c *config, v string) error { c.awsRegion = v; return nil }},
	{"timezone", "", "session time zone for TIMESTAMP WITH TIME ZONE", func(c *config, v string) error {
		if _, err := loadZone(v); err != nil {
			return err
		}
		c.timeZone = v
		return nil
	}},
	{"step_rows", "", "rows that one step takes at most", positive(func(c *config) *int { return &c.stepRows })},
	{"strict_retractions", "", "fail when a row is retracted that was never there, instead of counting it", func(c *config, v string) error {
		b, err := strconv.ParseBool(v)
		c.strictRetraction = b
		if err != nil {
			return errs.New(errs.Usage, "configure", "strict_retractions must be true or false, not %q", v)
		}
		return nil
	}},
}

func millis(at func(*config) *int64) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return errs.New(errs.Usage, "configure", "expected a number of milliseconds, got %q", v)
		}
		*at(c) = n
		return nil
	}
}

func positive(at func(*config) *int) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return errs.New(errs.Usage, "configure", "expected a positive number, got %q", v)
		}
		*at(c) = n
		return nil
	}
}

// parseBytes reads "512MB", "4 GiB" or a plain number of bytes.
func parseBytes(s string) (int64, error) {
	num := strings.TrimRight(strings.TrimSpace(s), "BbIiKkMmGgTt ")
	unit := strings.ToUpper(strings.TrimSpace(strings.TrimSpace(s)[len(num):]))
	factors := map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
	f, ok := factors[unit]
	n, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	if !ok || err != nil || n < 0 {
		return 0, errs.New(errs.Usage, "configure", "expected a size such as '4GB' or '512MiB', got %q", s)
	}
	return int64(n * f), nil
}

// newConfig reads the environment, then the given keys, which win.
func newConfig(given map[string]string) (*config, error) {
	c := &config{stateDir: "./.riverbed-state", checkpointMS: 30000, maxWatermarkLag: 60000, maxSplitLead: 300000, idleTimeout: 10000,
		parallelism: runtime.NumCPU(), memoryLimit: defaultMemoryLimit(), logLevel: "info", timeZone: "UTC", stepRows: 256 << 10}
	for _, s := range settings {
		env := s.env
		if env == "" {
			env = "RIVERBED_" + strings.ToUpper(s.key)
		}
		v := os.Getenv(env)
		if g, ok := given[s.key]; ok {
			v, env = g, s.key
		}
		if v == "" {
			continue
		}
		if err := s.set(c, v); err != nil {
			e := errs.As(err)
			e.Msg = env + ": " + e.Msg
			return nil, e
		}
	}
	for k := range given {
		if findSetting(k) == nil {
			return nil, unknownSetting(k)
		}
	}
	return c, nil
}

func findSetting(key string) *setting {
	for i := range settings {
		if settings[i].key == strings.ToLower(key) {
			return &settings[i]
		}
	}
	return nil
}

func unknownSetting(key string) error {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.key
	}
	hint := errs.DidYouMean(key, names)
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
