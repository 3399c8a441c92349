/* runtime/speculate/speculate.h - how many tokens to draft, and how many drafts were accepted.
 *
 * A pass through the model over the last token and the draft tokens after it gives the logits after each of them. The
 * session chooses from these as it always does, token by token. As long as its choice equals the draft token, the next
 * logits are already there. So drafts change when logits are computed, never what they are, and nothing here, timing
 * included, can change a token.
 *
 * Owns: the draft tokens of the last pass, the choice of the next pass's width, and the counts. The width is chosen
 * from measurements: how often a draft was accepted after an agreement of that length, and the seconds that a pass of
 * each width took. Plain passes are counted too, where it costs nothing. A pass with drafts spends only time that
 * speculation has saved before: see `balance` in struct speculate. Knows no model and runs nothing.
 */
#ifndef RUNTIME_SPECULATE_H
#define RUNTIME_SPECULATE_H

#include "runtime/speculate/ask.h"
#include "runtime/speculate/draft.h"

enum {
	SPECULATE_MAX = 16,    /* tokens of one pass */
	SPECULATE_WIDTHS = 4,  /* of passes: speculate_tokens, the first without drafts */
	SPECULATE_CLASSES = 13 /* of agreement lengths */
};
extern const uint32_t speculate_tokens[SPECULATE_WIDTHS];
_Static_assert((int)ASK_MAX == SPECULATE_MAX - 1 && (int)ASK_SIZES == SPECULATE_WIDTHS, "a pass has what was asked");

enum speculate_mode { SPECULATE_OFF, SPECULATE_AUTO, SPECULATE_FIXED };

/* Who proposes draft tokens: a copy of what the text has already, the rules, or a draft model. */
enum speculate_source { SPECULATE_COPY, SPECULATE_RULES, SPECULATE_MODEL };

struct speculate_window { /* what the last pass computed: ids[0] at position `first`, and drafts after it */
	uint64_t first;
	uint32_t tokens;        /* 0: no window; 1: a plain pass, whose draft is only compared */
	uint32_t drafts, right; /* ids[1 .. drafts] are drafts, of which so many were accepted so far; behind
	                           them the pass may have tokens that nobody asks for */
	bool wrong;             /* one was rejected: then drafts is 0 */
	enum speculate_source source;
	struct draft_match from; /* where a copy came from */
	int32_t ids[SPECULATE_MAX];
	uint8_t class[SPECULATE_MAX]; /* of ids[i]: which drafts are like it, of those that its source proposed */
};

/* What else is known of the tokens that come next, where a grammar says which may. */
struct speculate_rules {
	void *user;
	/* Tokens that should come next, as the text can hardly go on otherwise. */
	uint32_t (*guess)(void *user, int32_t *ids, uint32_t max);
	/* How many of these tokens may come next. */
	uint32_t (*fit)(void *user, const int32_t *ids, uint32_t n);
};

struct speculate {
	const struct speculate_rules *rules; /* borrowed; NULL: there are none */
	enum speculate_mode mode;
	unsigned fixed; /* the width of SPECULATE_FIXED */
	struct draft draft;
	struct ask ask; /* of the draft model; ask.o.on: there is one */
	struct speculate_window window;
	uint32_t fresh; /* the window has the drafts behind so many tokens that cost nothing; 0: of no text yet */
	uint32_t copied_to, copied_from; /* text[copied_to ...] would go on as text[copied_from ...] when a long passage
	                                    was last seen copied; 0: none was */
	uint32_t copied;                 /* tokens of it that had agreed there */

	double right[SPECULATE_CLASSES], wrong[SPECULATE_CLASSES]; /* fading counts of drafts, by agreement */
	double seconds[SPECULATE_WIDTHS]; /* of a pass; fading mean, before the first measurement an estimate */
	double trust[SPECULATE_WIDTHS];   /* 1 when just measured; what was not measured for long is taken for less, so
	                                     that it is tried again */
	uint32_t measured[SPECULATE_WIDTHS];
	double again[SPECULATE_WIDTHS]; /* seconds that follow a pass of this width where drafts are refused and
	                                   accepted tokens are computed once more; fading mean over its passes */
	unsigned before;                /* the width of the pass before, while its drafts may have such a sequel; 0 */
	double prompt_token;            /* seconds for each token of a wide pass, 0: none seen */
	double prompt_seconds;          /* of all passes over prompts */
	double balance;                 /* seconds speculation has saved and not spent again */

	uint64_t passes[SPECULATE_WIDTHS], drafted[SPECULATE_WIDTHS], accepted[SPECULATE_WIDTHS];
	unsigned width; /* of the window's pass */
};

/* ---- a draft model, which the session asks before it has the next window filled */

struct speculate_company;
/* How many tokens a draft model is to propose behind the last one, ids[length - 1]; 0: none. room: as of
 * speculate_next(); others: NULL: the session is alone in the pass. */
uint32_t speculate_wants(struct speculate *s, uint32_t length, uint32_t room, const struct speculate_company *others);
/* How many tokens the model may read before that at this session's cost. */
uint32_t speculate_affords(const struct speculate *s);
/* The model proposes one more, which it holds so likely. True: it is to go on. */
bool speculate_offer(struct speculate *s, int32_t id, float likely);
/* It is done; seconds: for what it proposed, and for `read` tokens that it read before. */
void speculate_offered(struct speculate *s, double seconds, uint32_t read, double read_seconds);
/* It could not be asked after all. */
void speculate_not_requested(struct speculate *s);
/* How many times as fast as without it tokens come with a draft model, by what was measured; 0: it was not asked. */
double speculate_gain(const struct speculate *s);

/* ---- passes */

/* The width with so many tokens; 0: there is none with drafts. */
unsigned speculate_width(int tokens);
/* s: all zero but for mode and fixed. ids: the session's, up to `context` of them. False: no memory. */
bool speculate_open(struct speculate *s, const int32_t *ids, uint32_t context);
void speculate_close(struct speculate *s);

/* The last token, ids[position], was chosen or fed. True: its logits are in the window's row position - first. Call
 * once for each token, in order. */
bool speculate_hit(struct speculate *s, uint64_t position, int32_t id);
/* Fills the window for a pass that starts with the last token, ids[length - 1]; room: most tokens it may have. */
const struct speculate_window *speculate_next(struct speculate *s, uint32_t length, uint32_t room);
/* The same in a pass with other sequences. seconds: of the pass as it is with what the others compute, by width of this
 * one's; tokens: what the others should get out of it, to which this one's share is added. */
struct speculate_company {
	double tokens, seconds[SPECULATE_WIDTHS];
};
const struct speculate_window *speculate_next_beside(struct speculate *s, uint32_t length, uint32_t room,
                                                     struct speculate_company *others);
/* What the window's pass took; and what a pass over n tokens of a prompt took. */
void speculate_took(struct speculate *s, double seconds);
/* What was computed once more before the window's pass took, which the pass before is to blame for; to be called before
 * speculate_took(), with 0 where nothing was. */
void speculate_again(struct speculate *s, double seconds);
void speculate_prompt_took(struct speculate *s, uint32_t tokens, double seconds);
/* The cache was written by others, or tokens from n on are forgotten: the window holds no more. */
void speculate_drop(struct speculate *s);
void speculate_rewind(struct speculate *s, uint32_t n);

#endif
