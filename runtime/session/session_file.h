/* runtime/session/session_file.h - the header of a saved session's file, shared by the files
 * runtime/session_file*.c. */
#ifndef RUNTIME_SESSION_FILE_H
#define RUNTIME_SESSION_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "include/jitrun.h"

enum { VERSION_OF_ONE_STATE = 1, STATE_VERSION = 2, HEADER = 256, ABOUT_MAX = 136 };
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

#endif
