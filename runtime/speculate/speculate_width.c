/* runtime/speculate/speculate_width.c - what passes of each width take, how many tokens they give, and which one pays.
 */
#include "runtime/speculate/speculate_parts.h"

#include <math.h>

/* Matrices are multiplied in tiles of tokens, and one token more than a tile may cost as much as a tile more: 4, 8 and
 * 16, not one more than each. */
const uint32_t speculate_tokens[SPECULATE_WIDTHS] = { 1, 4, 8, 16 };

/* Agreement lengths with like chances, and what is believed of them before anything was seen: BELIEF drafts' worth.
 * Below DRAFT_SHORTEST are copies taken up again. */
static const struct {
	uint32_t from;
	double right;
} classes[SPECULATE_CLASSES] = { { 0, 0.2 },   { 1, 0.35 }, { 2, 0.2 },           { 3, 0.35 }, { 4, 0.5 },
	                         { 5, 0.6 },   { 6, 0.65 }, { 7, 0.7 },           { 9, 0.75 }, { 12, 0.8 },
	                         { 16, 0.85 }, { 24, 0.9 }, { DRAFT_REACH, 0.92 } };

#define BELIEF 4.0
#define MEMORY (1.0 - 1.0 / 48) /* counts fade with each draft of their class */
#define EARLY 6                 /* passes in a plain mean; later ones move it by this part */
#define OUTLIER 1.5 /* a longer pass counts as this many times what it may take: somebody took the core away */
#define HOPE 0.6    /* of what its tokens take one by one: the most that a width not measured is taken for */
#define STALE \
	(1.0 - 1.0 / 256)  /* with each pass, times of other widths are believed less: sooner or later they are \
	                      measured again */
#define GRACE 1.0          /* plain passes' worth of time to begin with */
#define INCOME 0.005       /* of each plain pass */
#define PROMPT_INCOME 0.01 /* of the time that prompts took, for a draft model */

/* Before a width was measured: a pass in times of a plain one, when no prompt pass says more. */
static const double draft_ratio[SPECULATE_WIDTHS] = { 1, 1.2, 1.5, 2.2 };

unsigned speculate_class(uint32_t agreed)
{
	unsigned c = 0;

	while (c + 1 < SPECULATE_CLASSES && agreed >= classes[c + 1].from)
		c++;
	return c;
}

void speculate_learn(struct speculate *s, unsigned c, bool right)
{
	if (s->window.source == SPECULATE_MODEL) {
		ask_learn(&s->ask, c, right);
		return;
	}
	s->right[c] = s->right[c] * MEMORY + right;
	s->wrong[c] = s->wrong[c] * MEMORY + !right;
}

/* ---- what a pass takes */

/* Of widths not measured: by the passes of the prompt, but not so high that drafts that always come true would not be
 * tried; once a narrower width is known, no dearer in proportion. */
static void estimate(struct speculate *s)
{
	double plain = s->seconds[0], by_token = INFINITY;

	for (unsigned w = 1; w < SPECULATE_WIDTHS; w++) {
		double drafts = speculate_tokens[w] - 1;
		if (s->measured[w]) {
			by_token = s->seconds[w] > plain ? (s->seconds[w] - plain) / drafts : 0;
			continue;
		}
		double t = fmax(draft_ratio[w] * plain, 0.5 * plain + speculate_tokens[w] * s->prompt_token);
		s->seconds[w] = fmin(fmin(t, HOPE * speculate_tokens[w] * plain), plain + drafts * by_token);
	}
}

void speculate_took(struct speculate *s, double seconds)
{
	double *mean = &s->seconds[s->width], plain = s->seconds[0], max = OUTLIER * speculate_tokens[s->width] * plain;
	uint32_t seen = s->measured[s->width]++;

	if (s->width == 0 && seen == 0)
		s->balance =
			GRACE * (*mean = plain = max = seconds) + (s->ask.o.on ? PROMPT_INCOME * s->prompt_seconds : 0);
	if (s->measured[0] && seconds > max)
		seconds = max;
	if (s->width)
		s->balance -= seconds - plain;
	else if (s->balance < GRACE * plain)
		s->balance += INCOME * plain;
	if (seen == 0)
		*mean = seconds < *mean ? seconds : *mean; /* the first touches new memory */
	else if (seen < EARLY)
		*mean += (seconds - *mean) / seen;
	else
		*mean += ((seconds < OUTLIER * *mean ? seconds : OUTLIER * *mean) - *mean) / EARLY;
	for (unsigned w = 0; w < SPECULATE_WIDTHS; w++)
		s->trust[w] = w == s->width ? 1 : s->trust[w] * STALE;
	ask_passed(&s->ask, seconds);
	ask_age(&s->ask, STALE);
	estimate(s);
}

void speculate_again(struct speculate *s, double seconds)
{
	unsigned w = s->before;
	double max = OUTLIER * fmax(speculate_tokens[w] * s->seconds[0], s->seconds[w]);
	uint32_t seen = s->measured[w] < EARLY ? s->measured[w] : EARLY;

	s->before = 0;
	if (!w || !seen)
		return;
	seconds = seconds < max ? seconds : max;
	s->balance -= seconds;
	s->again[w] += (seconds - s->again[w]) / seen;
}

void speculate_prompt_took(struct speculate *s, uint32_t tokens, double seconds)
{
	double each = seconds / tokens;

	s->prompt_seconds += seconds;
	if (tokens > SPECULATE_MAX && (s->prompt_token == 0 || each < s->prompt_token))
		s->prompt_token = each;
}

/* ---- the next pass */

uint32_t speculate_drafts(const struct speculate *s, unsigned width)
{
	uint32_t max = speculate_tokens[width] - 1;

	return max < s->window.drafts ? max : s->window.drafts;
}

/* How many tokens a pass of that width should give, of all drafts that there are. An agreement grows with each draft
 * that comes true, so the chance of each further draft is that of a longer agreement. */
double speculate_expected(const struct speculate *s, unsigned width)
{
	const struct speculate_window *win = &s->window;
	double all = 1, tokens = 1;
	uint32_t drafts = speculate_drafts(s, width);

	for (uint32_t n = 1; n <= drafts; n++) {
		unsigned c = win->class[n];
		all *= win->source == SPECULATE_MODEL
		               ? ask_chance(&s->ask, c)
		               : (s->right[c] + BELIEF * classes[c].right) / (s->right[c] + s->wrong[c] + BELIEF);
		tokens += all;
	}
	return tokens;
}

/* The width that makes the most tokens in a second, and how many. */
static unsigned best_width(const struct speculate *s, uint32_t room, double *tokens_a_second)
{
	double plain = s->seconds[0] * s->trust[0], max = SPECULATE_MARGIN / plain, again = 0;
	unsigned best = 0;

	*tokens_a_second = 1 / plain;
	if (s->balance <= 0 && s->window.source != SPECULATE_MODEL) /* what was asked for is paid already */
		return 0;
	for (unsigned w = 1; w < SPECULATE_WIDTHS && speculate_tokens[w] <= room; w++) {
		again = s->measured[w] ? s->again[w] : again; /* of a width not measured: as of a narrower one */
		double t = s->measured[w] ? s->seconds[w] * s->trust[w] : s->seconds[w],
		       rate = speculate_expected(s, w) / ((t > plain ? t : plain) + again);
		if (rate > max) {
			max = *tokens_a_second = rate;
			best = w;
		}
	}
	return best;
}

/* Of all sequences in the pass together. */
static unsigned best_width_beside(const struct speculate *s, uint32_t room, const struct speculate_company *others,
                                  double *tokens_a_second)
{
	double plain = (others->tokens + 1) / others->seconds[0], max = SPECULATE_MARGIN * plain;
	unsigned best = 0;

	*tokens_a_second = plain;

	for (unsigned w = 1; w < SPECULATE_WIDTHS && speculate_tokens[w] <= room; w++) {
		double tokens = others->tokens + speculate_expected(s, w),
		       rate = tokens / fmax(others->seconds[w], others->seconds[0]);
		if (rate > max) {
			max = *tokens_a_second = rate;
			best = w;
		}
	}
	return best;
}

unsigned speculate_choose(const struct speculate *s, uint32_t room, const struct speculate_company *others,
                          double *tokens_a_second)
{
	*tokens_a_second = 0;
	if (s->mode == SPECULATE_FIXED)
		return speculate_tokens[s->fixed] <= room ? s->fixed : 0;
	if (others)
		return others->seconds[0] > 0 ? best_width_beside(s, room, others, tokens_a_second) : 0;
	return s->measured[0] ? best_width(s, room, tokens_a_second) : 0;
}
