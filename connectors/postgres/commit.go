package postgres

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/riverbed/riverbed/connectors"
	"github.com/riverbed/riverbed/core/errs"
	"github.com/riverbed/riverbed/core/flow"
)

// Exactly once. A row of the marker table belongs to a pipeline and its table. A commit is one transaction, whose first statement moves the
// marker from the epoch's predecessor to the epoch: it waits for another transaction that is about to do the same, and finds nothing to
// move when that has. So an epoch is applied at most once, whoever tries and however often; and as long as the marker is the predecessor's it
// can be tried again.

// sqlState is the code of an error of the server; "" for others.
func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// lockOf is the advisory lock that commits of this pipeline to this table hold, as pg_locks shows its halves.
func (w *writer) lockOf() (class, object uint32) {
	h := fnv.New64a()
	_, _ = h.Write([]byte("riverbed commit\x00" + w.pipeline + "\x00" + w.markers.String() + "\x00" + w.table.String()))
	return uint32(h.Sum64() >> 32), uint32(h.Sum64())
}

func (w *writer) lock(ctx context.Context, conn *pgconn.PgConn) error {
	class, object := w.lockOf()
	_, _, err := query(ctx, conn, "SELECT pg_advisory_xact_lock($1)", strconv.FormatInt(int64(uint64(class)<<32|uint64(object)), 10))
	return err
}

// endOthers ends sessions that are in a commit of this pipeline to this table. where narrows when. A session that we may not end is waited for.
func (w *writer) endOthers(ctx context.Context, conn *pgconn.PgConn, where string, args ...string) error {
	class, object := w.lockOf()
	args = append([]string{strconv.FormatUint(uint64(class), 10), strconv.FormatUint(uint64(object), 10)}, args...)
	_, _, err := query(ctx, conn, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND classid = $1::oid AND objid = $2::oid
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()`+where, args...)
	if sqlState(err) == "42501" {
		return nil
	}
	return err
}

// Begin makes the marker table and takes the pipeline's place in it.
func (w *writer) Begin(ctx context.Context, first connectors.Marker) (held connectors.Marker, err error) {
	err = w.db.retry(ctx, openAttempts, "begin", "the marker of the table "+w.table.String()+" in %s cannot be read", func(ctx context.Context, _ int) (err error) {
		conn, err := w.session(ctx)
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				w.drop()
			}
		}()
		if err := w.createMarkers(ctx, conn); err != nil {
			return err
		}
		// AIDEV-NOTE: another writer of this pipeline has lost its lease. If it hangs in a commit, that ends here, one way or the other, and we read
		// which; later ones find a newer fence than theirs.
		if err := w.endOthers(ctx, conn, ""); err != nil {
			return err
		}
		if err := exec(ctx, conn, "BEGIN; SET LOCAL lock_timeout = '30s'"); err != nil {
			return err
		}
		if err := w.lock(ctx, conn); err != nil {
			return err
		}
		if first != "" {
			if _, _, err := query(ctx, conn, "INSERT INTO "+w.markers.sql()+" (pipeline, sink, marker) VALUES ($1, $2, $3) ON CONFLICT (pipeline, sink) DO NOTHING",
				w.pipeline, w.table.String(), string(first)); err != nil {
				return err
			}
		}
		rows, _, err := query(ctx, conn, "UPDATE "+w.markers.sql()+" SET fence = fence + 1 WHERE pipeline = $1 AND sink = $2 RETURNING marker, fence", w.pipeline, w.table.String())
		if err != nil {
			return err
		}
		if err := exec(ctx, conn, "COMMIT"); err != nil {
			return err
		}
		held, w.fence = "", ""
		if len(rows) > 0 {
			held, w.fence = connectors.Marker(rows[0][0]), string(rows[0][1])
		}
		return nil
	})
	return held, err
}

func (w *writer) createMarkers(ctx context.Context, conn *pgconn.PgConn) error {
	t, err := lookUp(ctx, conn, w.markers)
	if err != nil {
		return err
	}
	if t == nil {
		if err := createOnce(ctx, conn, "CREATE TABLE IF NOT EXISTS "+w.markers.sql()+" (pipeline text, sink text, marker text NOT NULL, fence bigint NOT NULL DEFAULT 0, PRIMARY KEY (pipeline, sink))"); err != nil {
			return err
		}
		if t, err = lookUp(ctx, conn, w.markers); err != nil || t == nil {
			return err
		}
	}
	w.markers = t.tableName
	return nil
}

// Commit applies an epoch and moves the marker, both or neither.
func (w *writer) Commit(ctx context.Context, e connectors.StagedEpoch) error {
	rows := changes{fields: w.fields, key: w.key, changelog: w.changelog}
	deltas := make([]flow.Delta, len(e.Rows))
	for i, b := range e.Rows {
		deltas[i] = flow.Delta{Batch: b}
	}
	if err := rows.add(deltas...); err != nil {
		return err
	}
	return w.transaction(ctx, "commit", func(ctx context.Context, conn *pgconn.PgConn, n int) (bool, error) {
		if n > 0 {
			// AIDEV-NOTE: our own last attempt may still hang in the server, behind a connection that we gave up. It is ended only while the fence is
			// ours: a writer that was fenced must not end the one that took its place.
			if err := w.endOthers(ctx, conn, " AND EXISTS (SELECT 1 FROM "+w.markers.sql()+" WHERE pipeline = $3 AND sink = $4 AND fence = $5::bigint)", w.pipeline, w.table.String(), w.fence); err != nil {
				return false, err
			}
		}
		if err := w.lock(ctx, conn); err != nil {
			return false, err
		}
		_, moved, err := query(ctx, conn, "UPDATE "+w.markers.sql()+" SET marker = $1 WHERE pipeline = $2 AND sink = $3 AND marker = $4 AND fence = $5::bigint",
			string(e.Marker), w.pipeline, w.table.String(), string(e.Previous), w.fence)
		if err != nil {
			return false, err
		}
		if moved.RowsAffected() == 1 {
			return true, w.apply(ctx, conn, &rows)
		}
		return false, w.notMoved(ctx, conn, e)
	})
}

// notMoved is nil when the epoch is there already, and otherwise says who else was at work.
func (w *writer) notMoved(ctx context.Context, conn *pgconn.PgConn, e connectors.StagedEpoch) error {
	rows, _, err := query(ctx, conn, "SELECT marker, fence FROM "+w.markers.sql()+" WHERE pipeline = $1 AND sink = $2", w.pipeline, w.table.String())
	if err != nil {
		return err
	}
	what := "epoch " + strconv.FormatInt(int64(e.Epoch), 10) + " of the pipeline " + strconv.Quote(w.pipeline)
	switch {
	case len(rows) == 0:
		return errs.New(errs.ExactlyOnce, "commit", "%s cannot be committed: the table %s of %s has no marker for %s any more", what, w.markers, w.db, w.table).
			WithHint("somebody deleted it; what the table %s holds of this pipeline is not known", w.table)
	case string(rows[0][0]) == string(e.Marker):
		return nil
	case string(rows[0][1]) != w.fence:
		return errs.New(errs.ExactlyOnce, "commit", "%s cannot be committed: another run of the pipeline writes to the table %s of %s now", what, w.table, w.db).
			WithHint("this run has lost its place; let the other go on")
	}
	return errs.New(errs.ExactlyOnce, "commit", "%s cannot be committed: the table %s of %s should hold the marker %q and holds %q", what, w.table, w.db, e.Previous, rows[0][0]).
		WithHint("another pipeline of the same id, or the same one from other checkpoints, has written there")
}
