/* Arrays of the null type have no buffers. Polars exports one nevertheless, for validity, and arrow-go refuses such an
 * array: before it sees one, the count is set to what the standard says. Nothing is freed by that count: an array is
 * released by the producer, through its private data. */
#include "riverbed.h"

#include <stdlib.h>
#include <string.h>

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

void rbi_mend_array(struct ArrowArray *array, const struct ArrowSchema *schema) {
  if (!strcmp(schema->format, "n") && array->n_buffers == 1) array->n_buffers = 0;
  if (array->n_children == schema->n_children)
    for (int64_t i = 0; i < array->n_children; i++) rbi_mend_array(array->children[i], schema->children[i]);
  if (array->dictionary && schema->dictionary) rbi_mend_array(array->dictionary, schema->dictionary);
}

/* A stream that mends the arrays of another, which it owns. */
struct mended {
  struct ArrowArrayStream inner;
  struct ArrowSchema schema; /* not released once it is known */
};

static int mended_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  struct mended *m = stream->private_data;
  return m->inner.get_schema(&m->inner, out);
}

static int mended_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  struct mended *m = stream->private_data;
  int rc = m->inner.get_next(&m->inner, out);
  if (rc || !out->release) return rc;
  if (!m->schema.release && (rc = m->inner.get_schema(&m->inner, &m->schema))) {
    out->release(out);
    return rc;
  }
  rbi_mend_array(out, &m->schema);
  return 0;
}

static const char *mended_error(struct ArrowArrayStream *stream) {
  struct mended *m = stream->private_data;
  return m->inner.get_last_error(&m->inner);
}

static void mended_release(struct ArrowArrayStream *stream) {
  struct mended *m = stream->private_data;
  if (m->schema.release) m->schema.release(&m->schema);
  if (m->inner.release) m->inner.release(&m->inner);
  free(m);
  stream->release = NULL;
}

void rbi_mend_stream(struct ArrowArrayStream *stream) {
  struct mended *m = calloc(1, sizeof *m);
  if (!m) abort();
  m->inner = *stream;
  *stream = (struct ArrowArrayStream){mended_schema, mended_next, mended_error, mended_release, m};
}
