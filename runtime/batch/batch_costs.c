#include "runtime/batch/batch_costs.h"

#include <stdbool.h>
#include <stddef.h>

#define FADE 4.0 /* each pass moves the mean of its width by such a part */
#define HOPE 0.6 /* of what more tokens take in proportion, where that was never measured */
enum { KNOWN = 2 /* the first pass of a width makes kernels, and touches new memory */ };

static unsigned width_of(uint32_t tokens)
{
	unsigned w = 0;

	while (w + 1 < BATCH_COSTS_WIDTHS && tokens >> (w + 1))
		w++;
	return w;
}

/* More tokens take no longer in proportion than fewer do: so a width that was slow once is tried again. */
static double in_proportion(const struct batch_costs *c, uint32_t tokens, double seconds)
{
	for (unsigned w = 0; w < BATCH_COSTS_WIDTHS && c->width[w].tokens <= tokens; w++) {
		if (c->width[w].seen < KNOWN)
			continue;
		double max = c->width[w].seconds * tokens / c->width[w].tokens;
		seconds = max < seconds ? max : seconds;
	}
	return seconds;
}

/* hope: of what tokens behind the widest that was seen take in proportion. */
static double predict(const struct batch_costs *c, uint32_t tokens, double hope)
{
	int below = -1, above = -1;

	for (int w = 0; w < BATCH_COSTS_WIDTHS && above < 0; w++) {
		if (c->width[w].seen < KNOWN)
			continue;
		if (c->width[w].tokens >= tokens)
			above = w;
		else
			below = w;
	}
	if (below < 0)
		return above < 0 ? 0 : c->width[above].seconds;
	double from = c->width[below].tokens, seconds = c->width[below].seconds;
	if (above < 0)
		return seconds * (1 + hope * (tokens / from - 1));
	double part = (tokens - from) / (c->width[above].tokens - from);
	return in_proportion(c, tokens, seconds + (c->width[above].seconds - seconds) * part);
}

void batch_costs_took(struct batch_costs *c, uint32_t tokens, double seconds)
{
	unsigned w = width_of(tokens);
	double part = c->width[w].seen < KNOWN ? 1 : 1 / FADE, should = predict(c, tokens, 1);

	if (c->width[w].seen >= KNOWN && should > 0)
		c->late += (seconds / should - c->late) / 2;
	c->width[w].seen++;
	c->width[w].tokens += (tokens - c->width[w].tokens) * part;
	c->width[w].seconds += (seconds - c->width[w].seconds) * part;
}

double batch_costs_of(const struct batch_costs *c, uint32_t tokens) { return predict(c, tokens, 1); }

double batch_costs_hoped(const struct batch_costs *c, uint32_t tokens)
{
	for (unsigned w = 0; w <= width_of(tokens); w++)
		if (c->width[w].seen >= KNOWN)
			return predict(c, tokens, HOPE);
	return 0;
}

uint32_t batch_costs_fit(const struct batch_costs *c, uint32_t beside, uint32_t max, double seconds)
{
	uint32_t n = 0;

	seconds /= c->late > 1 ? c->late : 1;
	while (n < max && batch_costs_of(c, beside + n + 1) <= seconds)
		n++;
	return n;
}
