/* train/train.h - the inside of a jit_train, shared by the files of this room. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "include/jitrun_train.h"
#include "train/net.h"

/* A row that was fed, with `context` tokens: those behind its n count nothing. */
struct train_row {
	uint32_t n;
	uint64_t counted;
	int32_t *ids, *position, *segment, *target;
	uint8_t *counts;
};

struct jit_train {
	jit_train_options o; /* with the usual values instead of 0; texts are its own */
	char *path, *targets;
	struct model m;
	bool opened; /* m is */
	jit_compute *compute;
	struct net *net;
	struct train_row *row;
	size_t rows, room;
	uint64_t step, fed; /* fed: rows of all steps so far, by which dropout is numbered */
};

/* options.c: a copy with every number checked and the usual values put in. */
bool train_options(jit_train_options *own, const jit_train_options *from, struct error *err);
/* The number that a float was written as: 0.9, not 0.899999976. */
double train_decimal(float x);
/* Which matrices a list of names asks for. */
bool train_targets(const struct model *m, const char *list, struct layer_adapters *a, struct error *err);

/* save.c, save_peft.c, save_gguf.c, save_weights.c */
bool train_save_peft(const jit_train *t, const char *folder, struct error *err);
bool train_save_gguf(const jit_train *t, const char *path, struct error *err);
bool train_save_weights(const jit_train *t, const char *folder, struct error *err);

/* load_peft.c: what is trained becomes an adapter of a folder, or file, that peft wrote. */
bool train_load_peft(jit_train *t, const char *path, struct error *err);

/* state.c */
bool train_write_state(const jit_train *t, const char *path, struct error *err);
bool train_read_state(jit_train *t, const char *path, struct error *err);

#endif
