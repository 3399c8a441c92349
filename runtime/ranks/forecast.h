/* runtime/ranks/forecast.h - what each of several ranks would have of a model, and what they would exchange, before any
 * of it is loaded; and how long a token would take by that.
 *
 * Owns: the arithmetic. What is exchanged by rows is counted on a plan that is cut as it would be (plan/cut_rows.h).
 */
#ifndef RUNTIME_RANKS_FORECAST_H
#define RUNTIME_RANKS_FORECAST_H

#include "jit/target.h"
#include "runtime/ranks/split.h"

struct ranks_forecast {
	unsigned ranks;
	bool by_rows;
	struct split_range range[CARRIER_RANKS_MAX]; /* by layers */
	/* Bytes of each rank: packed matrices, what of them a token reads, and the KV cache of a context. */
	uint64_t weights[CARRIER_RANKS_MAX], token[CARRIER_RANKS_MAX], kv[CARRIER_RANKS_MAX];
	/* Of a token, all ranks together: exchanges, the bytes in them, and those of logits that rank 0 gets. */
	uint64_t exchanges, exchanged, logits;
};
/* How many ranks a carrier would have, by its name: "fork:4", or "mpi:4". False: err. */
bool ranks_count(const char *carrier, unsigned *ranks, struct error *err);
/* split: as split_layers() and split_rows() have it. False: err. */
bool ranks_forecast(const struct model_spec *s, const struct target *t, enum dtype kv, uint32_t context, unsigned ranks,
                    const char *split, struct ranks_forecast *out, struct error *err);

/* A machine that reads so many bytes a second, and a network: bits a second, and seconds until a message is there. */
struct ranks_machine {
	double read, bits, delay;
};
/* Seconds of a token of one text, without its logits, which are not sent as a whole where the greatest is wanted. */
double ranks_token_seconds(const struct ranks_forecast *f, const struct ranks_machine *m);
/* By layers, seconds between the tokens of as many texts as there are ranks, each with a rank of its own at any time.
 */
double ranks_filled_seconds(const struct ranks_forecast *f, const struct ranks_machine *m);

#endif
