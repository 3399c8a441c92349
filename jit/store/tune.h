/* jit/store/tune.h - which schedule of a kernel this machine's processor likes: what was measured, kept between runs.
 *
 * Owns: the results, by key and processor, and their file "tuned-HASH.txt" in a cache directory (HASH is of the
 * processor's name; lines of text, made for reading). A result only names a schedule, and schedules compute the same
 * bits: a lost or wrong file costs speed and nothing else, so anything unusual in it is passed over. Never measures:
 * runtime/tuning/tuner.h does.
 */
#ifndef JIT_TUNE_H
#define JIT_TUNE_H

#include "base/error.h"
#include "jit/key.h"

struct tune;
struct tune_result {
	struct key key;   /* its schedule is the one to use */
	double gain;      /* how many times as fast as schedule 0 it was; 1 when it is that */
	uint32_t samples; /* of each schedule */
};

/* dir: where results are read and written; NULL: nowhere. NULL: err (no memory). A file that cannot be used is no
 * error. */
struct tune *tune_open(const char *dir, struct error *err);
void tune_close(struct tune *t);
/* Thread-safe, all that follow. */
bool tune_any(struct tune *t);
/* The result for a key, whatever its schedule. */
bool tune_known(struct tune *t, const struct key *key);
bool tune_find(struct tune *t, const struct key *key, struct tune_result *out);
void tune_set(struct tune *t, const struct tune_result *r);
/* Writes the file when there are results that it lacks, together with what other processes wrote meanwhile. False: it
 * could not be written (nothing is lost but time). */
bool tune_save(struct tune *t, struct error *err);
/* In the order of the keys' text. */
void tune_each(struct tune *t, void (*visit)(const struct tune_result *, void *), void *user);

#endif
