/* runtime/speculate/speculate_model.c - when a draft model is asked, and what becomes of its tokens. */
#include "runtime/speculate/speculate_parts.h"

#include <math.h>
#include <string.h>

enum { READ_FIRST = 48 }; /* tokens that a draft model reads before anybody knows what that costs */

static double request_rate(const struct speculate *s, unsigned w, uint32_t n, const struct speculate_company *others)
{
	double tokens = ask_tokens(&s->ask, w, n), plain = s->seconds[0];

	if (others)
		return (others->tokens + tokens) /
		       (fmax(others->seconds[w], others->seconds[0]) + n * s->ask.token_seconds);
	return tokens / (ask_seconds(&s->ask, w, n, s->seconds[w], plain) + s->again[w]);
}

uint32_t speculate_wants(struct speculate *s, uint32_t length, uint32_t room, const struct speculate_company *others)
{
	double max;
	unsigned best = 0;
	uint32_t wanted = 0;

	if (!s->ask.o.on || room < 2)
		return 0;
	speculate_refresh(s, length);
	if (s->window.source == SPECULATE_RULES ||
	    (s->mode == SPECULATE_AUTO && (others ? others->seconds[0] <= 0 : !s->measured[0] || s->balance <= 0)))
		return 0;
	if (s->mode == SPECULATE_FIXED)
		max = 0;
	else if (s->window.drafts)
		speculate_choose(s, room, others, &max);
	else
		max = others ? (others->tokens + 1) / others->seconds[0] : 1 / (s->seconds[0] * s->trust[0]);
	max *= SPECULATE_MARGIN;
	for (unsigned w = 1; w < SPECULATE_WIDTHS && speculate_tokens[w] <= room; w++) {
		uint32_t n = speculate_tokens[w] - 1;
		n = n < s->ask.o.max ? n : s->ask.o.max;
		double rate = s->mode == SPECULATE_FIXED ? w == s->fixed : request_rate(s, w, n, others);
		if (n <= wanted || rate <= max)
			continue;
		max = rate;
		best = w;
		wanted = n;
	}
	if (s->mode == SPECULATE_FIXED && speculate_expected(s, s->fixed) > ask_tokens(&s->ask, s->fixed, wanted))
		return 0;
	s->ask.beside = others != NULL;
	if (best)
		ask_begin(&s->ask, best, wanted,
		          s->mode == SPECULATE_FIXED ? 0
		          : others                   ? others->seconds[0] / (others->tokens + 1)
		                                     : s->seconds[0]);
	return wanted;
}

uint32_t speculate_affords(const struct speculate *s)
{
	if (s->mode == SPECULATE_FIXED)
		return UINT32_MAX;
	if (s->ask.read_seconds <= 0)
		return READ_FIRST;
	double n = s->balance / s->ask.read_seconds;
	return n < READ_FIRST ? READ_FIRST : n < 1e6 ? (uint32_t)n : 1000000;
}

bool speculate_offer(struct speculate *s, int32_t id, float likely) { return ask_take(&s->ask, id, likely); }

/* What the model proposed takes the place of the copy, as far as the rules allow it. */
static void take_offer(struct speculate *s)
{
	struct speculate_window *w = &s->window;
	const struct speculate_rules *r = s->rules;
	uint32_t n = s->ask.n;

	if (r && n)
		n = r->fit(r->user, s->ask.ids, n);
	if (!n || n < s->ask.o.min)
		return;
	w->source = SPECULATE_MODEL;
	w->from = (struct draft_match){ 0 };
	memset(w->ids, 0, sizeof w->ids);
	memcpy(w->ids + 1, s->ask.ids, n * sizeof *w->ids);
	memcpy(w->class + 1, s->ask.class, n);
	w->drafts = n;
}

void speculate_offered(struct speculate *s, double seconds, uint32_t read, double read_seconds)
{
	ask_end(&s->ask, seconds, read, read_seconds);
	s->balance -= s->ask.beside ? 0 : seconds + read_seconds;
	take_offer(s);
}

void speculate_not_requested(struct speculate *s) { s->ask.now = 0; }

double speculate_gain(const struct speculate *s)
{
	double best = 0;

	for (unsigned w = 1; w < SPECULATE_WIDTHS; w++) {
		const struct ask_size *z = &s->ask.size[w];
		double gain =
			z->timed > 0 && z->seconds > 0 ? z->tokens / z->n * z->timed / z->seconds * s->seconds[0] : 0;
		best = gain > best ? gain : best;
	}
	return best;
}
