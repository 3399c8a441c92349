/* runtime/speculate/draft.h - draft tokens from the text itself (prompt lookup).
 *
 * Owns: an index of a token sequence by its runs of 2, 3 and 4 tokens. The draft is what followed the earlier place
 * that agrees with the end of the text the longest. Where a long passage was being copied and another token came, the
 * draft is what follows near the place in the original. A change that a copy made, such as another name, is
 * remembered, and drafts of later copies make the same change. Knows no model, and nothing of how often a draft is
 * accepted. The index grows and shrinks token by token; each step costs a few memory accesses, and nothing is
 * allocated after draft_open().
 */
#ifndef RUNTIME_DRAFT_H
#define RUNTIME_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DRAFT_SHORTEST = 2,
	DRAFT_LONGEST = 4, /* tokens in the indexed runs */
	DRAFT_RUNS = DRAFT_LONGEST - DRAFT_SHORTEST + 1,
	DRAFT_REACH = 32,     /* agreement is measured up to here */
	DRAFT_POSITIONS = 16, /* earlier places fresh at, the latest first */
	DRAFT_NEAR = 16,      /* draft_resume() looks so many tokens to either side */
	DRAFT_CHANGES = 16,   /* the latest are kept */
	DRAFT_CHANGE_MAX = 16 /* tokens that one replaces, and that it puts there */
};

/* Where a copied text said ids[was .. was+was_n-1], its copy says ids[is .. is+is_n-1]. */
struct draft_change {
	uint32_t was, was_n, is, is_n;
	uint32_t before; /* only behind so many of the tokens before `was` */
};

struct draft {
	const int32_t *ids; /* the caller's; ids[0 .. indexed-1] stay as they are while indexed */
	uint32_t indexed, capacity, mask;
	uint32_t *latest[DRAFT_RUNS];  /* open-addressed: end of a run's latest occurrence + 1, 0: free */
	uint32_t *earlier[DRAFT_RUNS]; /* [capacity]: end of the same run's occurrence before this one + 1, 0: none */
	struct draft_change change[DRAFT_CHANGES]; /* the latest first */
	uint32_t changes;
};

struct draft_match {
	uint32_t length; /* tokens that agree; draft_find() looks at DRAFT_SHORTEST..DRAFT_REACH, 0: there is no earlier
	                    place */
	uint32_t next;   /* index of the token that followed there */
	uint32_t made;   /* so many tokens of the copy from there are the end of the text already */
};

/* False: no memory. capacity: the most tokens the text will have. */
bool draft_open(struct draft *d, const int32_t *ids, uint32_t capacity);
void draft_close(struct draft *d);

/* Indexes ids[indexed .. n-1]. */
void draft_extend(struct draft *d, uint32_t n);
/* Forgets what is indexed from n on; to be called before those ids change. */
void draft_rewind(struct draft *d, uint32_t n);

/* The place to copy from, for the text as indexed. */
struct draft_match draft_find(const struct draft *d);
/* The place near `expected`, the token that would come next if as many tokens had come as are missing of the copied
 * passage: where the most tokens agree with the end of the text, the nearest of several; `expected` itself and length 0
 * when no token does. expected must be indexed. */
struct draft_match draft_resume(const struct draft *d, uint32_t expected);
/* The n tokens that follow if the text goes on as it did there, but for the changes known; the copy may run into
 * itself, which continues a loop. */
void draft_copy(const struct draft *d, struct draft_match m, int32_t *out, uint32_t n);

/* Where such a copy stands after n tokens: it was at `next` after `made` of them, and `change` makes what came since
 * and the token that comes now. NULL: no change does, and made is n. */
struct draft_standing {
	uint32_t made, next;
	const struct draft_change *change;
};
struct draft_standing draft_standing(const struct draft *d, struct draft_match m, uint32_t n);
/* Whether the copy from `next` on makes ids[to .. indexed-1]. */
bool draft_follows(const struct draft *d, uint32_t next, uint32_t to);

/* A copy of ids[was .. was+was_n-1] said ids[is .. is+is_n-1] there. Only changes of up to DRAFT_CHANGE_MAX tokens are
 * kept. */
void draft_note_change(struct draft *d, uint32_t was, uint32_t was_n, uint32_t is, uint32_t is_n);
/* At `at` the change was expected and something else came: it is expected no more where as little of what is before it
 * agrees as does there. */
void draft_doubt_change(struct draft *d, const struct draft_change *change, uint32_t at);

#endif
