/* train/file.h - files that appear whole or not at all: written under another name, flushed, and renamed. */
#ifndef TRAIN_FILE_H
#define TRAIN_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "graph/tensor.h"

struct train_file {
	FILE *f;
	char path[4096], written[4100];
};

bool train_file_open(struct train_file *t, const char *path, struct error *err);
/* ok: whether it is to appear. False: err, and the file that was there before is as it was. */
bool train_file_close(struct train_file *t, bool ok, struct error *err);
/* folder/name; makes the folder where there is none. */
bool train_folder_open(const char *folder, struct error *err);
bool train_path(char out[4096], const char *folder, const char *name, struct error *err);

/* A tensor of floats for a file of safetensors. */
struct train_entry {
	const char *name;
	struct shape shape;
	const float *values;
};
bool train_write_safetensors(const char *path, const struct train_entry *e, uint32_t n, struct error *err);

#endif
