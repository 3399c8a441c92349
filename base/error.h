/* base/error.h - how a failure of the outside world travels up.
 *
 * Owns: one status and one sentence. Files, devices and memory fail; the function that notices
 * fills the caller's `struct error` with ONE sentence that names the object (which file, which
 * field), the value found and the value expected, and returns false / NULL. The first error wins:
 * error_set() on an already set error does nothing, so a caller may add context only by setting
 * it first. Our own bugs are asserts, never errors. Nothing here prints or exits.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

enum error_code {
	ERROR_NONE = 0,
	ERROR_IO,          /* the system refused: open, read, map, write */
	ERROR_FORMAT,      /* the bytes break the format's rules */
	ERROR_UNSUPPORTED, /* well formed, but this program does not do it */
	ERROR_MEMORY,      /* not enough memory, or a size beyond what may be asked for */
	ERROR_ARGUMENT,    /* the caller's value is out of range */
	ERROR_DEVICE,      /* the device cannot run this, and why */
	ERROR_CANCELLED,   /* the caller asked for it */
	ERROR_STALLED      /* there was work, and none of it was done: a fault of ours that must not become a loop */
};

struct error {
	enum error_code code;
	char text[512]; /* one sentence, no trailing newline, valid UTF-8 (bytes of files are escaped) */
};

/* Sets *e unless it is NULL or already set. Returns false always, so that
 * `return error_set(...)` reads well in bool functions. The whole sentence is written as error_quote does. */
bool error_set(struct error *e, enum error_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Copies at most cap-1 bytes of an untrusted byte string into out for use inside a sentence:
 * what misleads (base/text.h) and invalid UTF-8 become \xNN, long strings end in "...". Returns out. */
const char *error_quote(char *out, unsigned cap, const void *bytes, unsigned long long n);

#endif
