/* runtime/session/session_file.h - the header of a saved session's file, shared by the files
 * runtime/session_file*.c, and its pictures. */
#ifndef RUNTIME_SESSION_FILE_H
#define RUNTIME_SESSION_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "include/jitrun.h"

enum { VERSION_OF_ONE_STATE = 1, STATE_VERSION = 2, VERSION_OF_PICTURES = 3, HEADER = 256, ABOUT_MAX = 136 };
enum {
	AT_VERSION = 8,
	AT_LAYOUT = 12,
	AT_LIBRARY = 16,
	AT_MODEL = 48,
	AT_KV = 56,
	AT_NUMERICS = 60,
	AT_LAYERS = 64,
	AT_HEADS = 68,
	AT_DIM = 72,
	AT_VOCAB = 76,
	AT_LENGTH = 80,
	AT_COMPUTED = 84,
	AT_FIRST = 88,
	AT_STATE = 92,
	AT_BYTES = 96,
	AT_SUM = 104,
	AT_ABOUT = 112,
	AT_HEADER_SUM = HEADER - 8
};

/* What the session would write, but for the numbers from AT_LENGTH on that belong to its tokens. */
bool session_file_header(uint8_t p[HEADER], jit_session *s, struct error *err);
/* Whether a file's header p is of the same model, library and numerics as one that the session would write. */
bool session_file_is_ours(const char *path, const uint8_t *p, const uint8_t *own, struct error *err);

/* ---- session_file_pictures.c */

struct safefile_part;
struct image_features;
struct saved_pictures {
	uint8_t *table; /* NULL: the session has none */
	size_t table_bytes;
	struct image_features **of; /* n of them, the session's */
	uint32_t n;
};
/* forget is due in any case. */
bool session_file_list_pictures(struct saved_pictures *v, const jit_session *s, struct error *err);
void session_file_forget_pictures(struct saved_pictures *v);
/* 1 + n parts more, and their checksum; none without pictures. */
void session_file_add_pictures(const struct saved_pictures *v, struct safefile_part *part, int *parts, uint64_t *sum);

struct pictures_location {
	const char *path;
	int fd;
	uint64_t at, bytes; /* of the file */
	uint32_t length;    /* tokens */
};
/* The session, which has none, has them then. *sum goes on with them. */
bool session_file_read_pictures(jit_session *s, const struct pictures_location *location, uint64_t *sum,
                                struct error *err);

#endif
