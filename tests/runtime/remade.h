/* tests/runtime/remade.h - small models made anew from those that lie there: the tensors and the configuration of one,
 * files of others in a folder of the test's own, and whether two compute the same. */
#ifndef TESTS_RUNTIME_REMADE_H
#define TESTS_RUNTIME_REMADE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/jitrun.h"
#include "tests/loaders/st_writer.h"

/* A model as safetensors. */
struct original {
	uint8_t *file;
	const uint8_t *data;
	json_t *header, *config;
};

/* One of its tensors. */
struct slice {
	uint64_t dim[4], rank;
	const uint8_t *p;
	size_t bytes;
	enum dtype type;
};

/* False: it is not there. name: of a folder of golden/. */
bool original_open(struct original *o, const char *name);
void original_read(struct original *o, const char *dir);
void original_close(struct original *o);
/* Of an entry of `header`. */
struct slice original_slice(json_t *entry, const uint8_t *data);

/* Set-up and tear-down of a group of tests that writes files. */
int remade_start(void **state);
int remade_end(void **state);
/* In the test's folder; returns out. */
char *remade_path(char out[300], const char *name);
void remade_file(const char *name, const void *p, size_t n);
void remade_put(struct st_writer *w, const char *name, const struct slice *t);
/* The directory of a model: its files. */
void remade_model(const char *name, struct st_writer *w, json_t *config);

/* A model whose heads of a state are cut in two, of half the values each, which computes what the original does: each
 * value's part of the state is its own. heads, head_dim: the fields that say their number and size. False: the original
 * is not there. */
bool remade_halves(const char *made, const char *name, const char *heads, const char *head_dim);

struct remade_run {
	const char *device;
	int batch;
};

/* The logits behind some tokens. tolerance: of the largest; 0: the same bits. */
void remade_compare(const char *a, struct remade_run run_a, const char *b, struct remade_run run_b, double tolerance);
/* Whether any of them differs, on the CPU. */
bool remade_differ(const char *a, const char *b);

#endif
