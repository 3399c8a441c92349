/* tests/runtime/plan_check.c - see plan_check.h. */
#include "tests/runtime/plan_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/runtime/plan_memory.h"
#include "tests/runtime/plan_checker.h"

uint64_t plan_address(const void *p) { return (uint64_t)(uintptr_t)p; }
uint32_t plan_bits_of(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

void plan_complain(struct checker *c, const char *format, ...)
{
	char text[KEY_TEXT_MAX];
	va_list args;

	if (c->wrong)
		return;
	c->wrong = true;
	int n = snprintf(c->why->text, sizeof c->why->text, "launch %u, %s: ", c->launch,
	                 c->launch < c->p->n_ops
	                         ? key_text(&c->p->kernel[c->p->op[c->launch].kernel].key, text, sizeof text)
	                         : "behind the last");
	va_start(args, format);
	vsnprintf(c->why->text + n, sizeof c->why->text - (size_t)n, format, args);
	va_end(args);
}

void plan_require(struct checker *c, bool ok, const char *what)
{
	if (!ok)
		plan_complain(c, "wrong %s", what);
}

/* ---- stages */

/* Groups of a stage run in any order, or at the same time. */
static void check_races(struct checker *c)
{
	for (unsigned i = 0; i < c->accesses; i++)
		for (unsigned j = 0; c->access[i].write && j < c->accesses; j++) {
			const struct access *a = &c->access[i], *b = &c->access[j];
			if (a->group == b->group || a->end <= b->begin || b->end <= a->begin)
				continue;
			c->launch = a->launch;
			plan_complain(c, "%ss what launch %u of the same phase writes", b->write ? "write" : "read",
			              b->launch);
		}
}

static void apply_from(struct checker *c, unsigned first)
{
	for (unsigned i = first; i < c->accesses; i++)
		if (!c->wrong && c->access[i].write &&
		    !plan_memory_write(&c->memory, c->access[i].begin, c->access[i].end, &c->access[i].content))
			plan_complain(c, "a buffer is in more pieces than expected");
}

static void do_chain(struct checker *c, uint32_t first, uint32_t end)
{
	const struct plan_op *l = c->p->op;
	int64_t steps = (l[first].end - l[first].begin) / l[first].fused_units;

	for (uint32_t i = first; i < end; i++) {
		c->launch = i;
		plan_require(c,
		             l[i].fused_units && l[i].begin == 0 && l[i].end == steps * l[i].fused_units &&
		                     !l[i].uneven && !l[i].serial,
		             "chain");
	}
	for (int64_t step = 0; step < steps && !c->wrong; step++)
		for (uint32_t i = first; i < end; i++) {
			unsigned before = c->accesses;
			do_units(c, i, (uint32_t)step, step * l[i].fused_units, (step + 1) * l[i].fused_units);
			apply_from(c, before);
		}
}

static void do_command(struct checker *c, uint32_t first, uint32_t end, bool chains)
{
	const struct plan_op *l = c->p->op;

	c->accesses = 0;
	if (chains && l[first].fused_units && end - first > 1)
		do_chain(c, first, end);
	else
		for (uint32_t i = first; i < end && !c->wrong; i++) {
			/* A device hands out the units of such a launch one by one, and nothing beside them. */
			do_units(c, i, i, l[i].begin, l[i].end);
			plan_require(c, end - first == 1 || !l[i].uneven, "phase: units that differ in cost share it");
		}
	if (!c->wrong)
		check_races(c);
	if (!(chains && l[first].fused_units && end - first > 1))
		apply_from(c, 0);
}

/* The keys and values of all layers, the logits, and what the last layer makes of all tokens. */
static void check_end(struct checker *c)
{
	uint64_t rows = logit_rows(c->p), stride = numerics_pad(c->s->spec.vocab) * 4;

	c->accesses = 0;
	c->launch = (uint32_t)c->p->n_ops;
	for (uint32_t i = 0; i < PLAN_LAYERS; i++) {
		uint64_t k_bytes = c->s->kv.page_bytes / PLAN_LAYERS / 2, base = i * 2 * k_bytes;
		if (c->s->mixer[i] != MIXER_ATTENTION)
			continue;
		if (c->s->spec.latent.rank)
			touch_latent_cache(c, false, i, base);
		else
			touch_cache(c, false, i, base, base + k_bytes, 0, c->s->spec.kv_heads);
	}
	read_plain(c, LOGITS, 0, PLAIN_FLOATS, stride, plan_address(c->s->buffers.logits), c->p->tokens - rows, rows);
	if (c->p->logits == PLAN_ALL_NORMED)
		read_plain(c, OUTPUT_INPUT, 0, PLAIN_FLOATS, numerics_pad(c->s->spec.hidden) * 4,
		           plan_address(plan_normed(&c->s->buffers)), 0, c->p->tokens);
	read_plain(c, STREAM, 2 * PLAN_LAYERS, PLAIN_FLOATS, numerics_pad(c->s->spec.hidden) * 4,
	           plan_address(plan_space_stream(c->s)), 0, c->p->tokens);
}

static void check_parts(struct checker *c)
{
	const struct plan *p = c->p;
	size_t phase = 0;

	c->launch = (uint32_t)p->n_ops;
	plan_require(c,
	             p->n_sections == 1 + PLAN_LAYERS + (p->logits != PLAN_NO_LOGITS) && p->section[0] == 0 &&
	                     p->section[p->n_sections] == p->n_ops,
	             "parts");
	for (size_t i = 0; i <= p->n_sections && !c->wrong; i++) {
		while (phase < p->n_stages && p->stage[phase] < p->section[i])
			phase++;
		plan_require(c, p->stage[phase] == p->section[i], "parts: one begins inside a phase");
	}
}

static bool in_order(const struct plan *p, const struct plan_space *s, const struct plan_options *opt,
                     struct plan_check_report *why, bool phases)
{
	static struct checker c;

	plan_memory_clear(&c.memory, s);
	c.p = p;
	c.s = s;
	c.opt = opt;
	c.why = why;
	c.wrong = false;
	check_parts(&c);
	plan_require(&c, p->n_stages > 0 && p->stage[0] == 0 && p->stage[p->n_stages] == p->n_ops, "phases");
	for (uint32_t first = 0, end, i = 0; first < p->n_ops && !c.wrong; first = end, i++) {
		for (end = first + 1; end < p->n_ops && !p->op[end - 1].barrier;)
			end++;
		if (phases) {
			end = p->stage[i + 1];
			plan_require(&c, end > first && end <= p->n_ops, "phases");
		}
		if (c.wrong)
			break;
		do_command(&c, first, end, phases);
	}
	if (!c.wrong)
		check_end(&c);
	return !c.wrong;
}

bool plan_check(const struct plan *p, const struct plan_space *s, const struct plan_options *opt,
                struct plan_check_report *why)
{
	return in_order(p, s, opt, why, true) && in_order(p, s, opt, why, false);
}
