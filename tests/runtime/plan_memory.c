/* tests/runtime/plan_memory.c - see plan_memory.h. */
#include "tests/runtime/plan_memory.h"

#include <stdio.h>
#include <string.h>

static const char *const value_names[] = {
	"nothing",
	"the residual stream",
	"attention's input",
	"queries",
	"keys",
	"values",
	"rotated queries",
	"cached keys",
	"cached values",
	"attention's result",
	"the FFN's input",
	"the gate",
	"the gated FFN",
	"the output's input",
	"logits",
	"the router's logits",
	"the chosen experts",
	"their shares",
	"places of slots",
	"groups of slots",
	"slots' inputs",
	"slots' gates",
	"slots' gated FFN",
	"slots' results",
	"the shared expert's gate",
	"the shared expert's result",
	"the stream without the shared expert",
	"queries of a low rank",
	"normed queries of a low rank",
	"what rotates of queries",
	"what does not rotate of queries",
	"attention's latent result",
	"the convolution's input",
	"what that is multiplied by",
	"the mixer's gate",
	"the convolution's result",
	"the heads' first rates",
	"the heads' second rates",
	"the mixer's result",
	"the normed mixer's result",
	"the gated mixer's result",
	"unscaled embeddings",
	"the mixer's product",
	"the FFN's product",
	"the experts' sum",
	"the shared expert's share",
	"unscaled logits",
	"unbounded logits",
	"the queries' gate",
	"attention's result before its gate",
	"queries before their norm",
	"keys before their norm",
	"a product of the tokens' own",
	"a row of the tokens' own",
	"the layers' shares of the tokens' own",
	"the stream before a token's own",
	"the gate of a token's own",
	"a token's own through its gate",
	"what comes of a token's own",
	"the unscaled stream",
	"the router's input",
	"the experts' input",
	"the dense layer's product",
	"the dense layer's normed result",
	"the results of experts and dense layer",
	"records of chunks"
};
static const char *const form_names[] = { "f32",         "int8",          "scales of int8",  "turned f32",
	                                  "turned int8", "turned scales", "narrowed floats", "a cache",
	                                  "records" };


const char *plan_form_name(enum form f) { return form_names[f]; }

const char *plan_content_text(const struct content *c, char out[PLAN_CONTENT_TEXT])
{
	int n = snprintf(out, PLAN_CONTENT_TEXT, "%s %u as %s", value_names[c->value], c->of, form_names[c->form]);

	if (c->width)
		snprintf(out + n, PLAN_CONTENT_TEXT - (size_t)n, ", tiles of %u from token %u, panels of %u, flags %u",
		         c->width, c->phase, c->panel, c->flags);
	return out;
}

void plan_memory_clear(struct plan_memory *m, const struct plan_space *s)
{
	m->s = s;
	for (unsigned i = 0; i < s->areas; i++)
		m->held[i].n = 0;
}

static uint64_t area_of(uint64_t at) { return (at >> PLAN_AREA_BITS) - 1; }

bool plan_memory_inside(const struct plan_memory *m, uint64_t begin, uint64_t end)
{
	uint64_t area = area_of(begin), offset = begin & ((1ull << PLAN_AREA_BITS) - 1);
	return area < m->s->areas && begin <= end && end - begin <= m->s->bytes[area] &&
	       offset <= m->s->bytes[area] - (end - begin);
}

const struct segment *plan_memory_at(const struct plan_memory *m, uint64_t at)
{
	uint64_t area = area_of(at);

	for (unsigned i = 0; area < m->s->areas && i < m->held[area].n; i++) {
		const struct segment *s = &m->held[area].segment[i];
		if (s->begin <= at && at < s->end)
			return s;
	}
	return NULL;
}

bool plan_memory_holds(const struct plan_memory *m, uint64_t begin, uint64_t end, const struct content *c,
                       const struct segment **found)
{
	while (begin < end) {
		*found = plan_memory_at(m, begin);
		if (!*found || memcmp(&(*found)->content, c, sizeof *c) != 0)
			return false;
		begin = (*found)->end;
	}
	return true;
}

static bool add(struct held *h, uint64_t begin, uint64_t end, const struct content *c)
{
	if (begin >= end)
		return true;
	if (h->n == PLAN_SEGMENTS_MAX)
		return false;
	h->segment[h->n++] = (struct segment){ begin, end, *c };
	return true;
}

bool plan_memory_write(struct plan_memory *m, uint64_t begin, uint64_t end, const struct content *c)
{
	struct held *h = &m->held[area_of(begin)];
	bool ok = true;

	for (unsigned i = 0; i < h->n;) {
		struct segment s = h->segment[i];
		if (s.end <= begin || end <= s.begin) {
			i++;
			continue;
		}
		h->segment[i] = h->segment[--h->n];
		ok = ok && add(h, s.begin, begin, &s.content) && add(h, end, s.end, &s.content);
	}
	return ok && add(h, begin, end, c);
}
