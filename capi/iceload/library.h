/* Loading the library of Iceberg metadata. */
#ifndef RIVERBED_ICELOAD_H
#define RIVERBED_ICELOAD_H

#include <stdint.h>

/* The functions that capi/iceberg exports. */
typedef struct {
  uint64_t (*begin)(void);
  void (*call)(uint64_t number, const char *request, int64_t length, char **answer, int64_t *answered);
  void (*cancel)(uint64_t number);
  void (*free)(void *answer);
} rbi_iceberg;

/* Loads the library at path and fills l. NULL, or what went wrong, malloc'd. */
char *rbi_iceberg_open(const char *path, rbi_iceberg *l);

/* The file that this code is in, of the loader's memory; NULL when it is not known. */
const char *rbi_iceberg_beside(void);

#endif
