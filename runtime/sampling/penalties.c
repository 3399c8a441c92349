#include "runtime/sampling/penalties.h"

void penalties_bias(struct candidates *c, const jit_logit_bias *bias, size_t n)
{
	bool all = candidates_all(c);

	for (size_t b = 0; b < n; b++)
		if (all && bias[b].id >= 0 && bias[b].id < c->n)
			c->logit[bias[b].id] += bias[b].bias;
	for (int32_t i = 0; !all && n && i < c->n; i++)
		for (size_t b = 0; b < n; b++)
			if (bias[b].id == c->id[i])
				c->logit[i] += bias[b].bias;
	if (n)
		c->sorted = false;
}

static float penalised(const struct penalties *p, float logit, int32_t count)
{
	float scaled = logit > 0 ? logit / p->repeat : logit * p->repeat;

	return scaled - ((float)count * p->frequency + p->presence);
}

void penalties_apply(struct candidates *c, const struct penalties *p, const int32_t *text, size_t n, int32_t *tally)
{
	size_t from = p->window <= 0 ? n : n > (size_t)p->window ? n - (size_t)p->window : 0;

	if (from == n || (p->repeat == 1 && p->frequency == 0 && p->presence == 0))
		return;
	for (size_t t = from; t < n; t++)
		tally[text[t]]++;
	for (int32_t i = 0; !candidates_all(c) && i < c->n; i++)
		if (tally[c->id[i]])
			c->logit[i] = penalised(p, c->logit[i], tally[c->id[i]]);
	for (size_t t = from; t < n; t++) {
		int32_t id = text[t];
		if (tally[id] && candidates_all(c) && id < c->n)
			c->logit[id] = penalised(p, c->logit[id], tally[id]);
		tally[id] = 0;
	}
	c->sorted = false;
}
