/* runtime/ranks/choose.h - which split a model gets that is to be split as is best here (--split auto).
 *
 * Owns: the measuring, and the comparison. What is compared is the time of a token of one text, by the forecast.
 */
#ifndef RUNTIME_RANKS_CHOOSE_H
#define RUNTIME_RANKS_CHOOSE_H

#include "runtime/ranks/forecast.h"
#include "runtime/ranks/ranks.h"

/* How fast messages and weights are here: the shortest delay of many, bits of large messages, and the slowest rank's
 * reading of so many bytes, while all read. All ranks call it at the same time, and have the same numbers. False: err.
 */
bool ranks_measure(struct ranks *r, uint64_t reads, struct ranks_machine *out, struct error *err);

struct ranks_choice {
	bool by_rows;
	double rows, layers; /* seconds of a token; 0: that split is not possible */
	char why[400];
};
/* Where neither split is possible, err says why there is none by layers. False: err. */
bool ranks_choose(const struct model_spec *s, const struct target *t, enum dtype kv, unsigned ranks,
                  const struct ranks_machine *m, struct ranks_choice *out, struct error *err);

#endif
