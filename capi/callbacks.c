#define _GNU_SOURCE
#include "riverbed.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A host that shuts down must not be called any more, and must not go while a call is in it. */
static atomic_int quiet, inside;

int rbi_enter(void) {
  atomic_fetch_add(&inside, 1);
  if (!atomic_load(&quiet)) return 1;
  atomic_fetch_sub(&inside, 1);
  return 0;
}

void rbi_leave(void) { atomic_fetch_sub(&inside, 1); }

static int enter(char *err, int64_t err_cap) {
  if (rbi_enter()) return 1;
  strncpy(err, "RuntimeError: the host program is shutting down", (size_t)err_cap - 1);
  return 0;
}

static int32_t leave(int32_t rc) {
  rbi_leave();
  return rc;
}

/* The run whose function runs in this thread: what the function asks of the library belongs to that run. */
static _Thread_local uint64_t caller;

uint64_t rbi_caller(void) { return caller; }

int32_t rbi_call_udf(rb_udf_fn fn, uint64_t context, uint64_t run, struct ArrowArray *in, struct ArrowSchema *in_schema,
                     struct ArrowArray *out, struct ArrowSchema *out_schema, char *err, int64_t err_cap) {
  if (!enter(err, err_cap)) return 1;
  const uint64_t outer = caller;
  caller = run;
  const int32_t rc = fn(context, in, in_schema, out, out_schema, err, err_cap);
  caller = outer;
  return leave(rc);
}

int32_t rbi_call_sink(rb_sink_fn fn, uint64_t context, rb_handle batch, char *err, int64_t err_cap) {
  if (!enter(err, err_cap)) return 1;
  return leave(fn(context, batch, err, err_cap));
}

/* Without an answer where the host must not be called any more. */
int32_t rbi_call_host(rb_host_fn fn, rb_chars request, int64_t len, struct ArrowArray *in, struct ArrowSchema *in_schema,
                      struct ArrowArray *out, struct ArrowSchema *out_schema, rb_text *answer) {
  if (!rbi_enter()) return 1;
  return leave(fn(request, len, in, in_schema, out, out_schema, answer));
}

/* rb_quiesce refuses all further callbacks and gives nothing of the host's back any more; it waits at most so long for
 * what of that runs to end. */
__attribute__((visibility("default"))) void rb_quiesce(int64_t timeout_ms) {
  const struct timespec millisecond = {0, 1000000};
  atomic_store(&quiet, 1);
  for (int64_t i = 0; i < timeout_ms && atomic_load(&inside) > 0; i++) nanosleep(&millisecond, NULL);
}

/* Destructors of the PyCapsules that carry Arrow structs. They are C and no Python callbacks, so that a capsule that
 * dies while the interpreter shuts down still frees what it holds. The interpreter's symbols are looked up at run
 * time: the library does not link against any Python. */

/* The release member of the three Arrow structs stands at a different place in each; these are their layouts. */
typedef struct { const char *s[3]; int64_t n[2]; void *c[2]; void (*release)(void *); void *p; } schema_layout;
typedef struct { int64_t n[5]; void *b[3]; void (*release)(void *); void *p; } array_layout;
typedef struct { void *f[3]; void (*release)(void *); void *p; } stream_layout;

typedef void *(*capsule_pointer_fn)(void *, const char *);

static void *capsule_pointer(void *capsule, const char *name) {
  capsule_pointer_fn get = (capsule_pointer_fn)dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer");
  return get ? get(capsule, name) : NULL;
}

__attribute__((visibility("default"))) void rb_capsule_schema(void *capsule) {
  schema_layout *s = capsule_pointer(capsule, "arrow_schema");
  if (s && s->release) s->release(s);
  free(s);
}

__attribute__((visibility("default"))) void rb_capsule_array(void *capsule) {
  array_layout *a = capsule_pointer(capsule, "arrow_array");
  if (a && a->release) a->release(a);
  free(a);
}

__attribute__((visibility("default"))) void rb_capsule_stream(void *capsule) {
  stream_layout *s = capsule_pointer(capsule, "arrow_array_stream");
  if (s && s->release) s->release(s);
  free(s);
}

/* release of structs that are borrowed for one call: the lender keeps the memory, the mark is all. */
__attribute__((visibility("default"))) void rb_release_borrowed_schema(void *schema) {
  ((schema_layout *)schema)->release = NULL;
}

__attribute__((visibility("default"))) void rb_release_borrowed_array(void *array) {
  ((array_layout *)array)->release = NULL;
}
