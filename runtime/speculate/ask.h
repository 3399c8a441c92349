/* runtime/speculate/ask.h - whether a draft model is asked for tokens, for how many, and what came of it.
 *
 * A draft model takes time for each token that it proposes, before anybody knows whether it is right. So asking has to
 * pay by what was measured in the session: the tokens that passes gave after the model had been asked for so many, and
 * the seconds of both together. The model says how likely it holds each token; how often tokens of that likelihood were
 * right decides when to stop asking for more.
 *
 * Owns: these measurements, and the tokens proposed for the next pass. Knows no model and runs nothing.
 */
#ifndef RUNTIME_ASK_H
#define RUNTIME_ASK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	ASK_MAX = 15,    /* tokens for one pass */
	ASK_SIZES = 4,   /* of askings, by the width of the pass; the first is that without drafts, and none */
	ASK_CLASSES = 10 /* of likelihoods */
};

struct ask_options {
	bool on;
	uint32_t max, min; /* tokens for one pass; fewer than `min` are not used */
	float min_p;       /* a token that is held less likely ends the asking and is not used */
};

struct ask {
	struct ask_options o;
	double right[ASK_CLASSES], wrong[ASK_CLASSES]; /* fading counts of tokens, by likelihood */
	struct ask_size {
		double n, tokens;      /* fading sums: of askings, and of the tokens that their passes gave */
		double timed, seconds; /* of those whose passes had nothing else: how many, and what both took */
		double trust;          /* as struct speculate's */
	} size[ASK_SIZES];
	double token_seconds, read_seconds; /* of a token that is proposed; of one that is only read. 0: not known */

	/* The asking that the next pass, or the pass before, is about. */
	unsigned now; /* its size; 0: nothing was asked */
	uint32_t wanted, n;
	double chance, worth; /* that all n are right; seconds that one more right token saves */
	double took;
	bool timed;  /* `took` has the pass, which had nothing else */
	bool beside; /* it is for a pass with other sequences */
	int32_t ids[ASK_MAX];
	uint8_t class[ASK_MAX];

	uint64_t requests, proposed, used, accepted; /* used, accepted: by passes with drafts */
	double seconds;                              /* that asking took */
};

/* What is expected of an asking for n tokens: tokens of its pass, the one that comes anyhow included; seconds of asking
 * and pass together, where a pass of that width takes `pass`. */
double ask_tokens(const struct ask *a, unsigned size, uint32_t n);
double ask_seconds(const struct ask *a, unsigned size, uint32_t n, double pass, double plain);
/* How likely a token of that class is right. */
double ask_chance(const struct ask *a, unsigned class);

/* The model is asked for up to n tokens, of which one more that is right saves `worth` seconds. worth 0: for all. */
void ask_begin(struct ask *a, unsigned size, uint32_t n, double worth);
/* It proposes one more, which it holds so likely. True: it is to go on. */
bool ask_take(struct ask *a, int32_t id, float likely);
/* It is done, and took so many seconds for these tokens, and read others before in so many. */
void ask_end(struct ask *a, double seconds, uint32_t read, double read_seconds);
/* A token of that class was right, or not. */
void ask_learn(struct ask *a, unsigned class, bool right);
/* The asking's pass, which had nothing else, took so many seconds. */
void ask_passed(struct ask *a, double seconds);
/* It is over, and gave so many tokens. 0: nobody knows what it would have given. */
void ask_over(struct ask *a, uint32_t tokens);
/* Passes went by: what was measured of other sizes is believed less. */
void ask_age(struct ask *a, double by);

#endif
