/* runtime/sampling/chain.h - samplers one after another, from logits to a token.
 *
 * Owns: the options and what they may be, the order of the samplers, and the state that some keep between tokens. A
 * chain is logit biases, then the samplers in their order, then the draw: of a token by its probability, by adaptive-p
 * where that has a target, or of the likeliest one where the temperature is 0 or less. Mirostat takes the place of all
 * samplers but the biases and the temperature, as in llama.cpp.
 *
 * The choice is a function of the logits, the text before, the state and the numbers drawn. What penalties and DRY look
 * at is the text itself; the rest is in struct chain_state, a value: a copy of it saves it, and putting that back
 * restores it.
 */
#ifndef RUNTIME_SAMPLING_CHAIN_H
#define RUNTIME_SAMPLING_CHAIN_H

#include "base/error.h"
#include "runtime/sampling/draws.h"
#include "runtime/sampling/dry.h"
#include "runtime/sampling/penalties.h"

enum sampler {
#define SAMPLER(id, ...) SAMPLER_##id,
#include "base/sampling.def"
	SAMPLERS
};

struct sampler_order {
	enum sampler sampler[SAMPLERS];
	int n;
};

/* The usual one, which is llama.cpp's. */
extern const char sampler_order_usual[];
/* Names with semicolons between; each at most once. Those left out are not used. */
bool sampler_order_parse(struct sampler_order *o, const char *text, struct error *err);

/* The numbers of jit_sampling with what their 0 stands for there. temperature and top_k: 0 or less is off;
 * repeat_window and dry_window: -1 is all of the text, 0 off; adaptive_target: less than 0 is off. */
struct chain_options {
	const char *samplers; /* their order; NULL: the usual one */
#define REAL float
#define WHOLE int32_t
#define SAMPLING_FIELD(type, field, ...) type field;
#include "base/sampling.def"
#undef REAL
#undef WHOLE
	const char *const *dry_breakers;
	int32_t n_dry_breakers;
	const jit_logit_bias *logit_bias;
	int32_t n_logit_bias;
};
/* Everything is off; numbers behind what is off have their usual values. */
extern const struct chain_options chain_usual;
/* Whether every field is a number that it may be. */
bool chain_options_check(const struct chain_options *o, int32_t vocab, struct error *err);

/* What tokens spell, for DRY's breakers; fn NULL: no token spells anything. */
struct chain_pieces {
	const char *(*fn)(void *user, int32_t id, size_t *n);
	void *user;
};

/* Between tokens. */
struct chain_state {
	float mu;
	struct adaptive_state adaptive;
};
/* Numbers from [0, 1), for this token. */
struct chain_draws {
	double xtc, token;
};

struct chain;
/* Texts are of at most `context` tokens, all of them in the vocabulary. What the options point to is copied. */
struct chain *chain_open(const struct chain_options *o, int32_t vocab, size_t context, struct chain_pieces pieces,
                         struct error *err);
void chain_close(struct chain *c);

struct chain_state chain_begin(const struct chain *c);
/* Whether the state ever changes. */
bool chain_has_state(const struct chain *c);
/* The token after text[0 .. n-1]. Allocates nothing. */
int32_t chain_choose(struct chain *c, const float *logits, const int32_t *text, size_t n, struct chain_draws u,
                     struct chain_state *s);
/* What chain_choose drew from last: tokens, and probabilities but for their sum. */
const struct candidates *chain_list(const struct chain *c);
/* The same logits, with -infinity for tokens that a bias of that forbids. */
const float *chain_forbid(const struct chain *c, float *logits);
/* Whether it takes the likeliest. */
bool chain_is_greedy(const struct chain *c);
/* The text went on with this token, be it the one that was chosen or not. */
void chain_accept(const struct chain *c, struct chain_state *s, int32_t id);

#endif
