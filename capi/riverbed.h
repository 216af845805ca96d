/* The C ABI of Riverbed. Python reads it through ctypes (python/riverbed/_native.py); nothing else crosses.
 *
 * Rules
 *  - A function returns 0, or a number of core/errs.Kinds and fills *err with a JSON object.
 *  - A handle is a number, never 0. A handle that was closed, or is of another kind, is an error and no crash.
 *  - Text that comes in is (pointer, length), borrowed for the call. Text that goes out is malloc'd: rb_free it.
 *  - Arrow structs are the Arrow C Data Interface's. What the library fills is released through the struct's own
 *    release; what it is given is moved from.
 *  - Functions that may wait say so; they return early with kind "cancelled" after rb_cancel on the same handle.
 */
#ifndef RIVERBED_H
#define RIVERBED_H

#include <stddef.h>
#include <stdint.h>

struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;

/* malloc'd text, or {NULL, 0}. */
typedef struct {
  char *data;
  int64_t len;
} rb_text;

/* Text of the caller, borrowed. */
typedef const char *rb_chars;

typedef uint64_t rb_handle;

/* What a batch says besides its columns. Absent values are INT64_MIN. */
typedef struct {
  int64_t rows;
  int64_t columns;
  int64_t step;
  int64_t watermark; /* microseconds, UTC */
  int64_t barrier;   /* the epoch that ends with this batch */
} rb_batch_info;

/* The changes of one step, as a subscription hands them out: a handle, and what the batch says. rb_subscription_next writes an
 * array of them; its caller has room for one at least, else the call is an error and takes no changes. */
typedef struct {
  rb_handle batch;
  rb_batch_info info;
} rb_change;

/* Called by the library, from any of its threads, for a function written in the host language.
 * in, in_schema: a struct array with one field an argument; the callee owns both. out, out_schema: the result, an
 * array of as many rows; the library owns both when 0 is returned. Otherwise err holds up to err_cap bytes of text,
 * ended by 0. The callee lets no exception through. */
typedef int32_t (*rb_udf_fn)(uint64_t context, struct ArrowArray *in, struct ArrowSchema *in_schema,
                             struct ArrowArray *out, struct ArrowSchema *out_schema, char *err, int64_t err_cap);

/* The same for a sink: one batch of changes a call. The callee closes the handle. */
typedef int32_t (*rb_sink_fn)(uint64_t context, rb_handle batch, char *err, int64_t err_cap);

/* The same for connectors that live in the host. request is JSON. in, in_schema: rows of the request, a struct array that the callee owns; both
 * are released structs (no release) where it has none. out, out_schema: rows of the answer, which the library owns; left alone where it has none.
 * answer: JSON in memory of rb_alloc, which the library frees; of an error, where the callee returns 1, with class, message, hint, transient. */
typedef int32_t (*rb_host_fn)(rb_chars request, int64_t len, struct ArrowArray *in, struct ArrowSchema *in_schema,
                              struct ArrowArray *out, struct ArrowSchema *out_schema, rb_text *answer);

/* callbacks.c: C calls through function pointers, which Go cannot make itself. After rb_quiesce they answer with an
 * error and call nothing. run stands for the run that calls; rbi_caller is the one whose function the present thread
 * runs, or 0. */
uint64_t rbi_caller(void);
int32_t rbi_call_udf(rb_udf_fn fn, uint64_t context, uint64_t run, struct ArrowArray *in, struct ArrowSchema *in_schema,
                     struct ArrowArray *out, struct ArrowSchema *out_schema, char *err, int64_t err_cap);
int32_t rbi_call_sink(rb_sink_fn fn, uint64_t context, rb_handle batch, char *err, int64_t err_cap);
int32_t rbi_call_host(rb_host_fn fn, rb_chars request, int64_t len, struct ArrowArray *in, struct ArrowSchema *in_schema,
                      struct ArrowArray *out, struct ArrowSchema *out_schema, rb_text *answer);

/* Around what may run the host's code: rbi_leave follows where rbi_enter answers 1. After rb_quiesce it answers 0. */
int rbi_enter(void);
void rbi_leave(void);

/* foreign.c: what is done to an array that comes in before anything else, and in a stream to those still to come. Arrays of
 * the null type that came with a buffer have none afterwards, if there is a schema; after rb_quiesce nothing is given back to the host. */
void rbi_take_array(struct ArrowArray *array, const struct ArrowSchema *schema);
void rbi_take_stream(struct ArrowArrayStream *stream);

/* The same for an array that Go reads itself: it is moved out of the host's struct, and given back. */
struct ArrowArray *rbi_move_array(struct ArrowArray *array);
void rbi_give_back(struct ArrowArray *moved);

#endif
