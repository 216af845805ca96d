"""Which options there are, so that a wrong one is refused where it is written. A test compares docs/connectors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from riverbed.errors import RiverbedUsageError

# What every stream takes.
OF_STREAMS = ("watermark", "event_time", "primary_key", "allowed_lateness")

_KAFKA = """brokers topic security_protocol sasl_mechanism sasl_username sasl_password sasl_token ssl_ca_location
    ssl_certificate_location ssl_key_location client_id format start isolation lost_records group_id tombstones upsert
    key_format metadata schema_timeout delim key create partitions changelog headers compression
    marker_topic transactional_id transaction_timeout commit_timeout avro_schema schema_registry schema_registry_user
    schema_registry_password"""
_POSTGRES = """table url host port database user password sslmode sslrootcert slot publication create_publication
    drop_slot key create marker_table changelog"""
_FLIGHT = """location token user password headers tls_ca tls_cert tls_key tls_skip_verify timeout
    path command"""
_ICEBERG = """catalog table branch catalog_type catalog_name warehouse token credential catalog_properties snapshot
    tag as_of start append_only poll_interval key create partition_by evolve compression file_bytes commit_every
    changelog"""
_FILES = "file_rows file_bytes partition_by changelog"
_CSV = "header delim sep quote escape nullstr skip all_varchar sample_size ignore_errors"

OPTIONS = {
    "arrow": "path union_by_name hive_partitioning",
    "console": "stderr",
    "csv": f"path union_by_name hive_partitioning {_CSV} {_FILES}",
    "delta": "path version timestamp start append_only poll_interval",
    "flight": f"{_FLIGHT} ticket on_break",
    "generator": "kind rows rate seed batch_rows",
    "hybrid": "history live partition_column offset_column offsets",
    "iceberg": _ICEBERG,
    "json": f"path union_by_name hive_partitioning format sample_size ignore_errors extension {_FILES}",
    "kafka": _KAFKA,
    "lance": "path key create storage_options changelog",
    "memory": "queue_rows updating upsert",
    "postgres": _POSTGRES,
    "parquet": f"path union_by_name hive_partitioning compression row_group_size {_FILES}",
}


def check(connector: str, said: str, given: Iterable[str]) -> None:
    """Refuse an option that a connector does not have; a connector that is not known here, the library refuses."""
    if connector not in OPTIONS:
        return
    known = [*OPTIONS[connector].split(), *OF_STREAMS]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise RiverbedUsageError(
                f"{said} has no option {name!r}\n"
                + (f"Hint: did you mean {near[0]!r}?" if near else f"Hint: its options are {', '.join(known)}")
            )
