#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static char *failed(void *library) {
  const char *text = dlerror();
  char *copy = strdup(text ? text : "unknown reason");
  if (library) dlclose(library);
  return copy;
}

/* AIDEV-NOTE: a Go runtime takes over SIGURG, by which it preempts its own threads, and passes it on to nobody: with a second one in the process the
 * first could not preempt a long loop any more. So the handler that was there is put back once the second has started; that one preempts at
 * calls alone, which is enough for metadata. Signals of faults stay with the second, which passes on those that are not its own. */
char *rbi_iceberg_open(const char *path, rbi_iceberg *l) {
  struct sigaction urgent;
  int known = sigaction(SIGURG, NULL, &urgent) == 0;
  dlerror();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return failed(NULL);
  l->begin = (uint64_t(*)(void))dlsym(library, "rb_iceberg_begin");
  l->call = (void (*)(uint64_t, const char *, int64_t, char **, int64_t *))dlsym(library, "rb_iceberg_call");
  l->cancel = (void (*)(uint64_t))dlsym(library, "rb_iceberg_cancel");
  l->free = (void (*)(void *))dlsym(library, "rb_iceberg_free");
  /* A library that has started a Go runtime cannot be unloaded again. */
  if (!l->begin || !l->call || !l->cancel || !l->free) return failed(NULL);
  /* The first call waits until the runtime has started; a number that is begun and never called holds a few bytes. */
  l->cancel(l->begin());
  if (known) sigaction(SIGURG, &urgent, NULL);
  return NULL;
}

const char *rbi_iceberg_beside(void) {
  Dl_info info;
  if (!dladdr((void *)rbi_iceberg_open, &info)) return NULL;
  return info.dli_fname;
}
