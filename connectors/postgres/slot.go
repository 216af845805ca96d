package postgres

import (
	"context"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/core/errs"
)

// The life of a slot. A stream that begins creates <slot>_new with a snapshot, and goes on from there. The first durable checkpoint
// that holds a position of the stream makes it <slot> (a copy, then the other is dropped). So a slot of that name
// belongs to somebody's checkpoint and is never dropped unasked, and one named _new belongs to nobody who could come back without a
// position: a stream that begins drops it. A stream that goes on from a position takes either.

// newSuffix ends the name of a slot that no checkpoint has.
const newSuffix = "_new"

// slotState is a slot as the server lists it.
type slotState struct {
	exists  bool
	pid     string        // of the session that reads it; "" for none
	flushed pglogrepl.LSN // what the server may forget
}

func (d *database) slot(ctx context.Context, conn *pgconn.PgConn, name string) (s slotState, err error) {
	rows, _, err := query(ctx, conn, "SELECT coalesce(active_pid::text, ''), plugin, database = current_database(), coalesce(confirmed_flush_lsn, '0/0') FROM pg_replication_slots WHERE slot_name = $1", name)
	if err != nil || len(rows) == 0 {
		return s, err
	}
	if string(rows[0][1]) != "pgoutput" || string(rows[0][2]) != "t" {
		return s, errs.New(errs.Source, "open", "the replication slot %q of %s is of another database or plugin", name, d).WithHint("choose another name by the option slot")
	}
	flushed, err := pglogrepl.ParseLSN(string(rows[0][3]))
	return slotState{true, string(rows[0][0]), flushed}, err
}

func dropSlot(ctx context.Context, conn *pgconn.PgConn, name string) error {
	_, _, err := query(ctx, conn, "SELECT pg_drop_replication_slot($1)", name)
	if sqlState(err) == "42704" { // it is gone
		return nil
	}
	return err
}

// replication opens a connection on which slots are made and read.
func (d *database) replication(ctx context.Context) (*pgconn.PgConn, error) {
	conf := d.conf.Copy()
	conf.RuntimeParams["replication"] = "database"
	return pgconn.ConnectConfig(ctx, conf)
}

// beginSlot makes a slot that begins now, and a snapshot of the same moment, which holds until the connection is used again.
func (s *stream) beginSlot(ctx context.Context, conn *pgconn.PgConn) (from pglogrepl.LSN, snapshot string, err error) {
	name := s.slot + newSuffix
	if s.slot == "" {
		name = s.temporary(conn)
	} else if err := s.reserve(ctx, conn); err != nil {
		return 0, "", err
	} else if _, err := ask(ctx, s.db, "open", "the replication slots of %s cannot be read", func(ctx context.Context, q *pgconn.PgConn) (struct{}, error) {
		return struct{}{}, s.clearSlots(ctx, q)
	}); err != nil {
		return 0, "", err
	}
	made, err := pglogrepl.CreateReplicationSlot(ctx, conn, name, "pgoutput", pglogrepl.CreateReplicationSlotOptions{Temporary: s.slot == "", SnapshotAction: "EXPORT_SNAPSHOT", Mode: pglogrepl.LogicalReplication})
	if err != nil {
		switch sqlState(err) {
		case "53400":
			return 0, "", errs.New(errs.Source, "open", "%s has no room for a replication slot: %s", s.db, err.Error()).WithHint("raise max_replication_slots there, or drop slots that nobody reads (pg_replication_slots)")
		case "55000":
			return 0, "", errs.New(errs.Source, "open", "%s gives no changes: %s", s.db, err.Error()).WithHint("set wal_level = logical there and restart it")
		}
		return 0, "", err
	}
	from, err = pglogrepl.ParseLSN(made.ConsistentPoint)
	return from, made.SnapshotName, err
}

// reserve keeps others from beginning by the same slot as long as the connection lives: a slot that is made and not yet read looks like
// one that was left behind.
func (s *stream) reserve(ctx context.Context, conn *pgconn.PgConn) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte("riverbed slot\x00" + s.slot))
	res, err := conn.Exec(ctx, "SELECT pg_try_advisory_lock("+strconv.FormatInt(int64(h.Sum64()), 10)+")").ReadAll()
	if err == nil && string(res[0].Rows[0][0]) != "t" {
		err = s.inUse(s.slot, "unknown")
	}
	return err
}

// clearSlots makes room for a stream that begins.
func (s *stream) clearSlots(ctx context.Context, q *pgconn.PgConn) error {
	for _, name := range []string{s.slot, s.slot + newSuffix} {
		state, err := s.db.slot(ctx, q, name)
		if err != nil {
			return err
		}
		switch {
		case !state.exists:
			continue
		case state.pid != "":
			return s.inUse(name, state.pid)
		case name == s.slot && !s.drop:
			return errs.New(errs.Source, "open", "the replication slot %q of %s is there already: a pipeline with checkpoints has read the table %s by it, and this one begins at its beginning", name, s.db, s.table).
				WithHint("go on from those checkpoints, choose another name by the option slot, or set drop_slot = true to give up what it holds")
		}
		if err := dropSlot(ctx, q, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) inUse(name, pid string) error {
	return errs.New(errs.Source, "open", "the replication slot %q of %s is read by another session (process %s of the server)", name, s.db, pid).AsTransient().
		WithHint("a slot has one reader: give each query and each pipeline a slot of its own. A reader that has died is forgotten after wal_sender_timeout")
}

// keptSlot finds the slot by which a stream goes on from a position, and makes it the checkpoint's own.
func (s *stream) keptSlot(ctx context.Context, q *pgconn.PgConn) error {
	kept, err := s.db.slot(ctx, q, s.slot)
	if err != nil {
		return err
	}
	fresh, err := s.db.slot(ctx, q, s.slot+newSuffix)
	if err != nil {
		return err
	}
	if !kept.exists && !fresh.exists {
		return errs.New(errs.State, "open", "the replication slot %q of %s is gone, and with it what the table %s became since the last checkpoint", s.slot, s.db, s.table).
			WithHint("somebody dropped it, or the database was restored or failed over without its slots; start the pipeline anew, without its checkpoints")
	}
	if !kept.exists {
		if err := s.keep(ctx, q); err != nil {
			return err
		}
	}
	if fresh.exists && fresh.pid == "" {
		return dropSlot(ctx, q, s.slot+newSuffix)
	}
	return nil
}

// keep copies the slot that no checkpoint had to one that a checkpoint has.
func (s *stream) keep(ctx context.Context, q *pgconn.PgConn) error {
	_, _, err := query(ctx, q, "SELECT pg_copy_logical_replication_slot($1, $2)", s.slot+newSuffix, s.slot)
	if sqlState(err) == "42710" { // it is there: the answer of the last time was lost
		return nil
	}
	return err
}

// dropNew drops the slot that no checkpoint has, once there is one that a checkpoint has: it would hold the server's log for ever.
func (s *stream) dropNew(ctx context.Context) error {
	name := s.slot + newSuffix
	return s.db.retry(ctx, openAttempts, "read", "the replication slot "+name+" of %s cannot be dropped", func(ctx context.Context, _ int) error {
		conn, err := s.db.once(ctx)
		if err != nil {
			return err
		}
		defer hangUp(conn)
		err = dropSlot(ctx, conn, name)
		if sqlState(err) == "55006" { // of our connection the server has not heard yet that it is gone
			err = s.inUse(name, "unknown")
		}
		return err
	})
}

// publish looks that the publication has all changes of the table, and makes it when asked.
func (s *stream) publish(ctx context.Context, q *pgconn.PgConn, create bool) error {
	name := s.publication
	look := func() (there, has bool, lacks []string, err error) {
		rows, _, err := query(ctx, q, "SELECT pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication WHERE pubname = $1", name)
		if err != nil || len(rows) == 0 {
			return false, false, nil, err
		}
		for i, what := range []string{"insert", "update", "delete", "truncate"} {
			if string(rows[0][i]) != "t" {
				lacks = append(lacks, what)
			}
		}
		if s.table.kind == 'p' && string(rows[0][4]) != "t" {
			lacks = append(lacks, "publish_via_partition_root")
		}
		rows, _, err = query(ctx, q, "SELECT to_jsonb(t) ->> 'rowfilter', to_jsonb(t) ->> 'attnames' FROM pg_publication_tables t WHERE pubname = $1 AND schemaname = $2 AND tablename = $3", name, s.table.schema, s.table.name)
		if err != nil || len(rows) == 0 {
			return true, false, lacks, err
		}
		if rows[0][0] != nil {
			return true, true, lacks, errs.New(errs.Source, "open", "the publication %q leaves out rows of the table %s", name, s.table).WithHint("take the condition out of the publication and write it into the query")
		}
		return true, true, lacks, nil
	}
	there, has, lacks, err := look()
	if err != nil {
		return err
	}
	if !has {
		sql := "CREATE PUBLICATION " + quote(name) + " FOR TABLE " + s.table.sql()
		if s.table.kind == 'p' {
			sql += " WITH (publish_via_partition_root)"
		}
		if there {
			sql = "ALTER PUBLICATION " + quote(name) + " ADD TABLE " + s.table.sql()
		}
		if !create {
			return errs.New(errs.Source, "open", "the table %s is in no publication %q of %s", s.table, name, s.db).WithHint("run %s there, or set create_publication = true", sql)
		}
		if err := exec(ctx, q, sql); err != nil && sqlState(err) != "42710" { // another session was quicker
			return err
		}
		if _, has, lacks, err = look(); err != nil || !has {
			return err
		}
	}
	if len(lacks) > 0 {
		return errs.New(errs.Source, "open", "the publication %q lacks %s, so changes of the table %s would be missed", name, strings.Join(lacks, ", "), s.table).
			WithHint("ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate'), or make another", quote(name))
	}
	return nil
}
