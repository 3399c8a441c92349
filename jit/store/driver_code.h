/* jit/store/driver_code.h - machine code that a card's driver made of a kernel's text: under which key it is kept.
 *
 * Where a backend writes text (PTX), the driver makes the code that runs. Such code is an object of its own. Its key is
 * that of the text, but for the code-generator id, which says of which text, for which card and by which driver:
 *
 *   bits 63..24  those of the text's id, inverted, so that no text has this id
 *   bits 23..16  the card's compute capability, 90 for 9.0
 *   bits 15..0   the driver's version, 13000 for CUDA 13.0
 *
 * So code of other texts, cards and drivers is not found, and who lists a cache sees what each object is.
 */
#ifndef JIT_DRIVER_CODE_H
#define JIT_DRIVER_CODE_H

#include "jit/compile.h"

/* Who made it. */
struct driver_code {
	uint32_t capability, version;
};

struct key driver_code_key(const struct key *text, struct driver_code by);
/* Whether a key is of code that a driver made of a text of this program's. by may be NULL. */
bool driver_code_is(const struct key *key, struct driver_code *by);
/* "compute capability 9.0, CUDA 13.0"; returns out. */
enum { DRIVER_CODE_TEXT_MAX = 64 };
char *driver_code_text(struct driver_code by, char out[DRIVER_CODE_TEXT_MAX]);

/* A driver that is here. Called from many threads. */
struct driver_linker {
	struct driver_code by;
	/* What it makes of a kernel's text: object_free. False: err. */
	bool (*link)(void *user, const struct key *text, const struct object *o, struct object *out, struct error *err);
	void *user;
};

/* Whether a key is of such code, and of this driver's. l NULL: there is none. */
bool driver_code_is_by(const struct key *key, const struct driver_linker *l);
/* How many keys of a list are of such code; and takes them out of it, which returns how many are left. */
size_t driver_code_count(const struct key *key, size_t n);
size_t driver_code_drop(struct key *key, size_t n);
/* Makes the object of such a key: generates the text, and has the driver make code of it. False: err, also when it is
 * another driver's, or when there is none (NULL). */
bool driver_code_make(const struct driver_linker *l, const struct key *key, compile_build_fn build, struct object *out,
                      struct error *err);

#endif
