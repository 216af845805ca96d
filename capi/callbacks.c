#define _GNU_SOURCE
#include "riverbed.h"

#include <dlfcn.h>
#include <stdlib.h>

int32_t rbi_call_udf(rb_udf_fn fn, uint64_t context, struct ArrowArray *in, struct ArrowSchema *in_schema,
                     struct ArrowArray *out, struct ArrowSchema *out_schema, char *err, int64_t err_cap) {
  return fn(context, in, in_schema, out, out_schema, err, err_cap);
}

int32_t rbi_call_sink(rb_sink_fn fn, uint64_t context, struct ArrowArray *in, struct ArrowSchema *in_schema, char *err,
                      int64_t err_cap) {
  return fn(context, in, in_schema, err, err_cap);
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
