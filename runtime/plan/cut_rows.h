/* runtime/plan/cut_rows.h - a plan cut by rows for several ranks, which compute each of its ops together.
 *
 * Owns: which units of each op a rank computes, and what it must be given before. Nothing here knows a family of
 * models: units of matrices and of attention follow from the shares (cut_shares.h), those of all other ops from what
 * they read, as their signatures say. An op whose input is on all ranks is computed by all of them; one of which each
 * rank has a part of the input, part by part. Only where an op reads what its rank has not, there is an exchange, of
 * just that. So no number is ever added up across ranks, and every one is computed as one process computes it.
 */
#ifndef RUNTIME_PLAN_CUT_ROWS_H
#define RUNTIME_PLAN_CUT_ROWS_H

#include "runtime/plan/cut.h"
#include "runtime/plan/cut_shares.h"

/* Bytes that ranks give each other: those of rank r are range[of[r]] .. range[of[r + 1] - 1], together bytes[r]. */
struct cut_exchange {
	uint32_t stage; /* it comes before this stage of the part; n_stages: behind the last one */
	bool to_first;  /* only rank 0 gets them */
	struct cut_range *range;
	size_t of[CUT_RANKS_MAX + 1];
	uint64_t bytes[CUT_RANKS_MAX];
};

struct cut_rows {
	struct plan part; /* of this rank; its ops, with the plan's arguments, and its stages are the cut's own */
	struct cut_exchange *exchange;
	size_t n_exchanges;
	uint64_t largest; /* bytes of all ranks in one exchange, at most */
};

/* Memory that ops write and others read: values and logits; and what the host fills in on rank 0 alone. */
struct cut_space {
	uint64_t begin, bytes;
	bool for_first; /* its last contents are read by rank 0 */
	bool of_first;  /* before the plan's ops, only rank 0 has it */
};
enum { CUT_SPACES_MAX = 4 };

/* choices: tokens times the experts of each. NULL: err; ERROR_UNSUPPORTED where the plan has an op that cannot be cut.
 */
struct cut_rows *cut_rows_open(const struct plan *p, const struct model_spec *s, struct weights *w,
                               const struct cut_shares *shares, const struct cut_space *space, size_t n_spaces,
                               uint64_t choices, struct error *err);
/* NULL is fine. */
void cut_rows_close(struct cut_rows *c);

#endif
