#include "runtime/speculate/ask.h"

#include <math.h>

#define BELIEF 3.0              /* tokens' worth of what is believed before anything was seen */
#define HOPED 0.6               /* of tokens that are right, before any was seen */
#define MEMORY (1.0 - 1.0 / 64) /* counts fade with each token of their class, and each asking of its size */
#define USUAL_TOKEN 0.1         /* what a token takes, in plain passes, before it was measured */
#define EARLY 8.0               /* each further measurement moves a mean by at least this part */
#define OUTLIER 2.0             /* a longer asking counts as this many times the mean */

double ask_chance(const struct ask *a, unsigned class)
{
	double believed = (class + 0.5) / ASK_CLASSES;

	return (a->right[class] + BELIEF * believed) / (a->right[class] + a->wrong[class] + BELIEF);
}

/* Of tokens of any likelihood. */
static double chance_of_any(const struct ask *a)
{
	double right = BELIEF * HOPED, all = BELIEF;

	for (unsigned c = 0; c < ASK_CLASSES; c++) {
		right += a->right[c];
		all += a->right[c] + a->wrong[c];
	}
	return right / all;
}

double ask_tokens(const struct ask *a, unsigned size, uint32_t n)
{
	const struct ask_size *z = &a->size[size];
	double each = chance_of_any(a), all = 1, hoped = 1;

	for (uint32_t i = 0; i < n; i++)
		hoped += all *= each;
	return (z->tokens + BELIEF * hoped) / (z->n + BELIEF);
}

double ask_seconds(const struct ask *a, unsigned size, uint32_t n, double pass, double plain)
{
	const struct ask_size *z = &a->size[size];
	double token = a->token_seconds > 0 ? a->token_seconds : USUAL_TOKEN * plain;

	return z->timed > 0 ? z->seconds / z->timed * z->trust : pass + n * token;
}

void ask_begin(struct ask *a, unsigned size, uint32_t n, double worth)
{
	a->now = size;
	a->wanted = n;
	a->n = 0;
	a->chance = 1;
	a->worth = worth;
	a->took = 0;
	a->timed = false;
}

static unsigned class_of(float likely)
{
	int c = likely > 0 ? (int)(likely * ASK_CLASSES) : 0;

	return c < ASK_CLASSES ? (unsigned)c : ASK_CLASSES - 1;
}

bool ask_take(struct ask *a, int32_t id, float likely)
{
	if (a->n == a->wanted || likely < a->o.min_p)
		return false;
	a->ids[a->n] = id;
	a->class[a->n] = (uint8_t)class_of(likely);
	a->chance *= ask_chance(a, a->class[a->n++]);
	return a->n < a->wanted && (a->worth <= 0 || a->chance * a->worth > a->token_seconds);
}

static void move(double *mean, double to)
{
	if (*mean > 0)
		*mean += ((to < OUTLIER * *mean ? to : OUTLIER * *mean) - *mean) / EARLY;
	else
		*mean = to;
}

void ask_end(struct ask *a, double seconds, uint32_t read, double read_seconds)
{
	a->requests++;
	a->proposed += a->n;
	a->seconds += seconds + read_seconds;
	a->took = seconds;
	if (a->n)
		move(&a->token_seconds, seconds / a->n);
	if (read)
		move(&a->read_seconds, read_seconds / read);
}

void ask_learn(struct ask *a, unsigned class, bool right)
{
	a->right[class] = a->right[class] * MEMORY + right;
	a->wrong[class] = a->wrong[class] * MEMORY + !right;
}

void ask_passed(struct ask *a, double seconds)
{
	a->took += seconds;
	a->timed = a->now != 0;
}

void ask_over(struct ask *a, uint32_t tokens)
{
	struct ask_size *z = &a->size[a->now];
	const double mean = z->timed > 0 ? OUTLIER * z->seconds / z->timed : a->took;
	const bool known = a->now && tokens;

	a->now = 0;
	if (!known)
		return;
	z->n = z->n * MEMORY + 1;
	z->tokens = z->tokens * MEMORY + tokens;
	if (!a->timed)
		return;
	z->timed = z->timed * MEMORY + 1;
	z->seconds = z->seconds * MEMORY + (a->took < mean ? a->took : mean);
	z->trust = 1;
}

void ask_age(struct ask *a, double by)
{
	for (unsigned z = 1; z < ASK_SIZES; z++)
		if (z != a->now)
			a->size[z].trust *= by;
}
