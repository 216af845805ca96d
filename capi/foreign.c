/* Arrays and streams of the host, before arrow-go sees them: they are mended, and their release is guarded. */
#include "arrow_c.h"
#include "riverbed.h"

#include <stdlib.h>
#include <string.h>

/* What comes in is the host's object in the end, and to give it back may take the host's lock. Once the host has said
 * goodbye (rb_quiesce), the lock is a trap: a thread that asks Python for it ends there and then, within destructors
 * that allow no such thing. So what is still held then is never given back, on purpose: the process is about to end. */
struct guarded {
  void (*release)(struct ArrowArray *);
  void *private_data;
};

static void guarded_release(struct ArrowArray *array) {
  struct guarded g = *(struct guarded *)array->private_data;
  if (!rbi_enter()) {
    array->release = NULL;
    return;
  }
  free(array->private_data);
  array->release = g.release;
  array->private_data = g.private_data;
  g.release(array);
  rbi_leave();
}

static void guard(struct ArrowArray *array) {
  if (!array->release) return; /* given back already: the import says so */
  struct guarded *g = malloc(sizeof *g);
  if (!g) abort();
  *g = (struct guarded){array->release, array->private_data};
  array->release = guarded_release;
  array->private_data = g;
}

/* Arrays of the null type have no buffers. Polars exports one nevertheless, for validity, and arrow-go refuses such an
 * array: before it sees one, the count is set to what the standard says (mend of layout.go does it where the schema was read before). Nothing is freed by that count: an array is
 * released by the producer, through its private data. */
static void mend(struct ArrowArray *array, const struct ArrowSchema *schema) {
  if (!strcmp(schema->format, "n") && array->n_buffers == 1) array->n_buffers = 0;
  if (array->n_children == schema->n_children)
    for (int64_t i = 0; i < array->n_children; i++) mend(array->children[i], schema->children[i]);
  if (array->dictionary && schema->dictionary) mend(array->dictionary, schema->dictionary);
}

void rbi_take_array(struct ArrowArray *array, const struct ArrowSchema *schema) {
  if (schema) mend(array, schema);
  guard(array);
}

struct ArrowArray *rbi_move_array(struct ArrowArray *array) {
  struct ArrowArray *moved = malloc(sizeof *moved);
  if (!moved) abort();
  *moved = *array;
  array->release = NULL;
  return moved;
}

void rbi_give_back(struct ArrowArray *moved) {
  if (!rbi_enter()) return;
  moved->release(moved);
  free(moved);
  rbi_leave();
}

/* A stream that takes the arrays of another, which it owns. */
struct taken {
  struct ArrowArrayStream inner;
  struct ArrowSchema schema; /* not released once it is known */
};

static int taken_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  struct taken *t = stream->private_data;
  return t->inner.get_schema(&t->inner, out);
}

static int taken_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  struct taken *t = stream->private_data;
  int rc = t->inner.get_next(&t->inner, out);
  if (rc || !out->release) return rc;
  if (!t->schema.release && (rc = t->inner.get_schema(&t->inner, &t->schema))) {
    out->release(out);
    return rc;
  }
  rbi_take_array(out, &t->schema);
  return 0;
}

static const char *taken_error(struct ArrowArrayStream *stream) {
  struct taken *t = stream->private_data;
  return t->inner.get_last_error(&t->inner);
}

static void taken_release(struct ArrowArrayStream *stream) {
  struct taken *t = stream->private_data;
  if (t->schema.release) t->schema.release(&t->schema);
  if (t->inner.release && rbi_enter()) {
    t->inner.release(&t->inner);
    rbi_leave();
  }
  free(t);
  stream->release = NULL;
}

void rbi_take_stream(struct ArrowArrayStream *stream) {
  struct taken *t = calloc(1, sizeof *t);
  if (!t) abort();
  t->inner = *stream;
  *stream = (struct ArrowArrayStream){taken_schema, taken_next, taken_error, taken_release, t};
}
