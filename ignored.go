package riverbed

import (
	"slices"
	"strings"

	"github.com/riverbed/riverbed/core/errs"
)

// ignored is a setting of DuckDB that is accepted and has no effect: it changes how DuckDB computes or shows something, not
// what a query means. Where some of its values would change that, only lists the ones that mean what is so here anyway.
type ignored struct {
	name string
	only []string // nil: every value
	why  string
}

const (
	ofTests     = "it is a test of DuckDB's own"
	ofPlanner   = "it guides DuckDB's optimizer; results are the same"
	ofStorage   = "it concerns DuckDB's database file, and there is none here"
	ofShell     = "it concerns what DuckDB's shell shows"
	ofMemory    = "memory_limit and state_dir rule memory and disk here"
	ofExtension = "what DuckDB has in extensions is built in, or is not there"
	ofNetwork   = "connectors have options of their own"
	asHere      = "only what is so here anyway"
)

var (
	yes  = []string{"true", "1", "on", "yes", "t"}
	none = []string{"false", "0", "off", "no", "f"}
)

var ignoredSettings = []ignored{
	{"access_mode", []string{"automatic", "read_write"}, asHere},
	{"allocator_background_threads", nil, ofMemory},
	{"allocator_bulk_deallocation_flush_threshold", nil, ofMemory},
	{"allocator_flush_threshold", nil, ofMemory},
	{"allow_community_extensions", nil, ofExtension},
	{"allow_extensions_metadata_mismatch", nil, ofExtension},
	{"allow_unsigned_extensions", nil, ofExtension},
	{"approximate_join_order_threshold", nil, ofPlanner},
	{"asof_loop_join_threshold", nil, ofPlanner},
	{"autoinstall_extension_repository", nil, ofExtension},
	{"autoinstall_known_extensions", nil, ofExtension},
	{"autoload_known_extensions", nil, ofExtension},
	{"calendar", []string{"gregorian"}, asHere},
	{"catalog_error_max_schemas", nil, ofShell},
	{"checkpoint_threshold", nil, ofStorage},
	{"custom_extension_repository", nil, ofExtension},
	{"debug_asof_iejoin", nil, ofTests},
	{"debug_checkpoint_abort", nil, ofTests},
	{"debug_force_external", nil, ofTests},
	{"debug_force_no_cross_product", nil, ofTests},
	{"debug_verify_column_bindings", nil, ofTests},
	{"debug_verify_serializer", nil, ofTests},
	{"debug_verify_vector", nil, ofTests},
	{"debug_window_mode", nil, ofTests},
	{"default_block_size", nil, ofStorage},
	{"default_collation", []string{"", "binary", "c", "posix"}, asHere},
	{"default_secret_storage", nil, ofNetwork},
	{"delim_join_as_cte", nil, ofPlanner},
	{"deprecated_using_key_syntax", nil, "both spellings of USING KEY are read alike"},
	{"disable_checkpoint_on_shutdown", nil, ofStorage},
	{"disable_timestamptz_casts", none, asHere},
	{"disabled_compression_methods", nil, ofStorage},
	{"disabled_optimizers", nil, ofPlanner},
	{"dynamic_or_filter_threshold", nil, ofPlanner},
	{"enable_caching_operators", nil, ofPlanner},
	{"enable_external_access", yes, asHere},
	{"enable_external_file_cache", nil, ofMemory},
	{"enable_fsst_vectors", nil, ofStorage},
	{"enable_http_metadata_cache", nil, ofNetwork},
	{"enable_macro_dependencies", nil, "a view keeps the macros that it was made with"},
	{"enable_object_cache", nil, ofMemory},
	{"enable_optimizer", nil, ofPlanner},
	{"enable_profiling", nil, "EXPLAIN ANALYZE tells what a query did"},
	{"enable_progress_bar", nil, ofShell},
	{"enable_progress_bar_print", nil, ofShell},
	{"enable_verification", nil, ofTests},
	{"enable_view_dependencies", nil, "views over views are kept whole in any case"},
	{"experimental_metadata_reuse", nil, ofStorage},
	{"explain_output", nil, ofShell},
	{"extension_directory", nil, ofExtension},
	{"external_threads", nil, "parallelism rules the workers here"},
	{"file_search_path", []string{""}, asHere},
	{"force_bitpacking_mode", nil, ofStorage},
	{"force_compression", nil, ofStorage},
	{"home_directory", nil, "paths are the process's own"},
	{"http_logging_output", nil, ofNetwork},
	{"http_retries", nil, ofNetwork},
	{"http_timeout", nil, ofNetwork},
	{"ieee_floating_point_ops", yes, asHere},
	{"immediate_transaction_mode", nil, "statements that change rows take turns in any case"},
	{"index_scan_max_count", nil, ofPlanner},
	{"index_scan_percentage", nil, ofPlanner},
	{"integer_division", none, asHere},
	{"lambda_syntax", nil, "both spellings of a lambda are read"},
	{"late_materialization_max_rows", nil, ofPlanner},
	{"legacy_disable_null_type", none, asHere},
	{"log_query_path", nil, ofShell},
	{"max_expression_depth", nil, "the parser bounds nesting by itself"},
	{"max_temp_directory_size", nil, ofMemory},
	{"max_vacuum_tasks", nil, ofStorage},
	{"merge_join_threshold", nil, ofPlanner},
	{"nested_loop_join_threshold", nil, ofPlanner},
	{"old_implicit_casting", none, asHere},
	{"operator_memory_limit", nil, ofMemory},
	{"order_by_non_integer_literal", none, asHere},
	{"ordered_aggregate_threshold", nil, ofPlanner},
	{"parquet_metadata_cache", nil, ofMemory},
	{"partitioned_write_flush_threshold", nil, ofMemory},
	{"partitioned_write_max_open_files", nil, ofMemory},
	{"perfect_ht_threshold", nil, ofPlanner},
	{"pivot_filter_threshold", nil, ofPlanner},
	{"pivot_limit", nil, "a pivot has as many columns as its rows ask for"},
	{"prefer_range_joins", nil, ofPlanner},
	{"preserve_identifier_case", yes, asHere},
	{"preserve_insertion_order", nil, "an order is what ORDER BY says; rows of one scan come as they lie"},
	{"produce_arrow_string_view", none, asHere},
	{"profiling_mode", nil, "EXPLAIN ANALYZE tells what a query did"},
	{"profiling_output", nil, "EXPLAIN ANALYZE tells what a query did"},
	{"profiling_renderer_settings", nil, ofShell},
	{"progress_bar_time", nil, ofShell},
	{"scalar_subquery_error_on_multiple_rows", yes, asHere},
	{"scheduler_process_partial", nil, ofPlanner},
	{"secret_directory", nil, ofNetwork},
	{"show_behavior", []string{"auto"}, asHere},
	{"storage_compatibility_version", nil, ofStorage},
	{"streaming_buffer_size", nil, ofMemory},
	{"temp_directory", nil, ofMemory},
	{"temp_file_encryption", none, asHere},
	{"verify_external", nil, ofTests},
	{"verify_fetch_row", nil, ofTests},
	{"verify_parallelism", nil, ofTests},
	{"verify_serializer", nil, ofTests},
	{"wal_autocheckpoint", nil, ofStorage},
	{"write_buffer_row_group_count", nil, ofMemory},
	{"zstd_min_string_length", nil, ofStorage},
}

// switches are PRAGMAs without a value that have no effect, for the reason of a setting.
var switches = map[string]string{
	"enable_verification": "true", "disable_verification": "false", "enable_optimizer": "true", "disable_optimizer": "false",
	"enable_object_cache": "true", "disable_object_cache": "false", "enable_profiling": "true", "disable_profiling": "false", "enable_profile": "true", "disable_profile": "false",
	"enable_progress_bar": "true", "disable_progress_bar": "false", "enable_print_progress_bar": "true", "disable_print_progress_bar": "false",
	"verify_external": "true", "disable_verify_external": "false", "verify_fetch_row": "true", "disable_verify_fetch_row": "false",
	"verify_parallelism": "true", "disable_verify_parallelism": "false", "verify_serializer": "true", "disable_verify_serializer": "false",
	"force_checkpoint": "", "enable_checkpoint_on_shutdown": "false", "disable_checkpoint_on_shutdown": "true",
}

func findIgnored(name string) *ignored {
	for i := range ignoredSettings {
		if strings.EqualFold(ignoredSettings[i].name, name) {
			return &ignoredSettings[i]
		}
	}
	return nil
}

// accept refuses a value that would mean something else than what is so.
func (g *ignored) accept(v string) error {
	if g.only == nil || slices.Contains(g.only, strings.ToLower(v)) {
		return nil
	}
	return errs.New(errs.Unsupported, "configure", "%s = %s is not supported: it would change what queries mean", g.name, v).
		WithHint("accepted: %s", strings.Join(g.only, ", "))
}
