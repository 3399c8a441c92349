/* tests/kernels/signature_trial.c - see signature_trial.h. */
#include "tests/kernels/signature_trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jit/ir/ir.h"
#include "tests/kernels/signature_state.h"
#include "tests/kernels/watched.h"

static void complain(struct state *s, const char *what, const char *where, uint64_t byte)
{
	char key[KEY_TEXT_MAX];

	if (s->wrong)
		return;
	s->wrong = true;
	snprintf(s->text, 512,
	         "%s, units %" PRId64 "..%" PRId64 " of %" PRId64 ", %" PRIu64 " columns from %" PRIu64
	         ": %s %s, byte %" PRId64,
	         key_text(&s->t->key, key, sizeof key), s->begin, s->end, s->t->units, s->t->columns, s->t->position,
	         what, where, (int64_t)byte);
}

/* ---- what rows say, and lies about it */

static void lie_about(struct kernel_use *use, enum trial_lie lie)
{
	const bool touches = use->access & KERNEL_UPDATE;

	if (lie == LIE_ABSENT)
		use->access = 0;
	if (lie == LIE_READ && use->access & KERNEL_WRITE)
		use->access |= KERNEL_READ;
	if (lie == LIE_WRITTEN && use->access & KERNEL_READ)
		use->access |= KERNEL_WRITE;
	if (lie == LIE_DATAFLOW && touches)
		use->access ^= KERNEL_DATAFLOW;
	for (unsigned i = 0; i < KERNEL_SPANS && use->span[i].bytes; i++) {
		use->span[i].bytes += lie == LIE_LONG ? 1 : lie == LIE_SHORT ? UINT64_MAX : 0;
		use->span[i].at += lie == LIE_SHIFTED ? 4 : 0;
	}
}

static struct kernel_use use_of(const struct state *s, unsigned slot, int64_t unit)
{
	struct kernel_use use = kernel_unit(&s->t->key, s->arg, slot, unit);

	if (s->lies && s->lies->slot == slot)
		lie_about(&use, s->lies->lie);
	return use;
}

/* ---- judging */

static struct area *area_at(struct state *s, uint64_t at)
{
	for (unsigned i = 0; i < s->areas; i++)
		if (at - (uint64_t)(uintptr_t)s->area[i].at < s->area[i].room)
			return &s->area[i];
	return NULL;
}

static void say(struct state *s, uint64_t at, uint64_t bytes, uint8_t what)
{
	struct area *a = area_at(s, at);

	for (uint64_t i = 0; a && i < bytes; i++) {
		const uint64_t byte = at - (uint64_t)(uintptr_t)a->at + i;
		if (byte < a->room)
			a->says[byte] |= what;
	}
}

/* Elements that have members count as read when one of these is. */
static void read_whole(struct state *s, uint64_t at, uint64_t bytes, uint8_t element)
{
	const struct area *a = area_at(s, at);

	for (uint64_t i = 0; a && i + element <= bytes; i += element) {
		uint8_t *did = a->did + (at - (uint64_t)(uintptr_t)a->at) + i, some = 0;
		for (unsigned j = 0; j < element; j++)
			some |= did[j] & (DID_READ | DID_DATAFLOW_READ | DID_PLAIN_READ);
		for (unsigned j = 0; j < element; j++)
			did[j] |= some;
	}
}

/* Each piece of memory that a use has. */
static void each_part(struct state *s, unsigned slot, struct kernel_use use,
                      void (*part)(struct state *s, uint64_t at, uint64_t bytes, uint8_t what), uint8_t what)
{
	const bool paged = use.layout == KERNEL_PAGES;

	for (unsigned i = 0; i < KERNEL_SPANS && use.span[i].bytes; i++) {
		const struct kernel_span *p = &use.span[i];
		const uint64_t n = trial_count(s, use, p);
		for (uint64_t page = 0; page < (paged ? s->pages : 1); page++)
			for (uint64_t j = 0; j < n; j++)
				part(s,
				     (paged ? (uint64_t)(uintptr_t)s->area[s->first_page + page].at : 0) +
				             s->arg[slot] + p->at + j * p->stride,
				     p->bytes, what);
	}
}

static void say_slot(struct state *s, unsigned slot, int64_t unit)
{
	const struct kernel_use use = use_of(s, slot, unit);
	const bool some = use.access & KERNEL_SOME, dataflow = use.access & KERNEL_DATAFLOW;
	const uint8_t what =
		(uint8_t)((use.access & KERNEL_READ
	                           ? SAYS_READ | (some ? SAYS_SOME_READ : 0) | (dataflow ? SAYS_DATAFLOW_READ : 0)
	                           : 0) |
	                  (use.access & KERNEL_WRITE
	                           ? SAYS_WRITE | (some ? SAYS_SOME_WRITE : 0) | (dataflow ? SAYS_DATAFLOW_WRITE : 0)
	                           : 0));
	if (what)
		each_part(s, slot, use, say, what);
}

static void see_members(struct state *s, unsigned slot, int64_t unit)
{
	const struct kernel_use use = use_of(s, slot, unit);

	if (use.access & KERNEL_READ && (use.type == KERNEL_BLOCK || use.type == KERNEL_GROUP))
		each_part(s, slot, use, read_whole, (uint8_t)kernel_type_bytes((enum kernel_type)use.type));
}

/* Bytes that this run wrote itself are no input. */
static bool see(void *context, const struct watched_access *x)
{
	struct state *s = context;
	const uint64_t slots = (uint64_t)(uintptr_t)s->arg;
	struct area *a = area_at(s, x->at);

	if (x->at >= slots && x->at + x->bytes <= slots + s->args * 8 && !x->write)
		return true;
	const uint64_t byte = a ? x->at - (uint64_t)(uintptr_t)a->at : 0;
	if (!a || byte + x->bytes > a->room) {
		complain(s, x->write ? "writes" : "reads", "outside of its arguments' memory: address", x->at);
		return false;
	}
	for (uint64_t i = byte; i < byte + x->bytes; i++)
		if (x->write)
			a->did[i] |= DID_WRITE | (x->dataflow ? DID_DATAFLOW_WRITE : 0);
		else if (!(a->did[i] & DID_WRITE))
			a->did[i] |= DID_READ | (x->dataflow ? DID_DATAFLOW_READ : DID_PLAIN_READ);
	return true;
}

static void judge_byte(struct state *s, const struct area *a, uint64_t i)
{
	const unsigned says = a->says[i], did = a->did[i];

	if (did & DID_WRITE && !(says & SAYS_WRITE))
		complain(s, "writes", a->name, i);
	if (says & SAYS_WRITE && !(says & SAYS_SOME_WRITE) && !(did & DID_WRITE))
		complain(s, "does not write", a->name, i);
	if (says & SAYS_READ && !(says & SAYS_SOME_READ) && !(did & DID_READ))
		complain(s, "does not read", a->name, i);
	if (did & DID_READ && says & SAYS_READ &&
	    (says & SAYS_DATAFLOW_READ ? did & DID_PLAIN_READ : did & DID_DATAFLOW_READ))
		complain(s, says & SAYS_DATAFLOW_READ ? "does not await" : "awaits", a->name, i);
	if (did & DID_WRITE && says & SAYS_WRITE && !(did & DID_DATAFLOW_WRITE) != !(says & SAYS_DATAFLOW_WRITE))
		complain(s, says & SAYS_DATAFLOW_WRITE ? "does not give" : "gives", a->name, i);
}

/* Other bytes wherever nothing is to be read. */
static void spoil(const struct state *s)
{
	for (unsigned i = 0; i < s->areas; i++)
		for (uint64_t j = 0; j < s->area[i].room; j++)
			if (!(s->area[i].says[j] & SAYS_READ))
				s->area[i].at[j] = (uint8_t)trial_draw(256);
}

static bool run_once(struct state *s, const struct ir *ir, int64_t begin, int64_t end, bool spoiled)
{
	for (unsigned i = 0; i < s->areas; i++) {
		memcpy(s->area[i].at, s->area[i].begun, s->area[i].room);
		if (!spoiled)
			memset(s->area[i].did, 0, s->area[i].room);
	}
	if (spoiled)
		spoil(s);
	if (!watched_run(ir, s->arg, begin, end, see, s))
		complain(s, "awaits a word that is", "not there", 0);
	return !s->wrong;
}

/* Whether byte i of what was written means something: not the pads of records, nor records of chunks that a column does
 * not see. */
static bool means_something(const struct state *s, const struct area *a, uint64_t i)
{
	const struct key *k = &s->t->key;
	const uint64_t record = template_attention_record(k->head_dim), within = i % record;

	if (k->kind != KEY_ATTENTION || !k->rows || (uint64_t)(uintptr_t)a->at != s->arg[ATTENTION_OUT])
		return true;
	const uint64_t rows = k->tile_n > 1 ? k->tile_n * k->heads : k->heads, group = k->heads / k->kv_heads,
		       column = k->tile_n > 1 ? i / record % rows / group % k->tile_n : 0, chunk = i / record / rows;
	const uint64_t position = s->t->position + column,
		       window = k->k && !(k->flags & KEY_LATENT) ? position % k->k + 1 : s->t->window;
	const bool seen = chunk * NUMERICS_CHUNK <= position &&
	                  (!(k->flags & KEY_WINDOW) || (chunk + 1) * NUMERICS_CHUNK + window > position + 1);
	return seen && (within < k->head_dim * 4 || (within >= record - 32 && within < record - 24));
}

/* Units begin .. end - 1. */
static void judge(struct state *s, const struct ir *ir, int64_t begin, int64_t end)
{
	s->begin = begin;
	s->end = end;
	for (unsigned i = 0; i < s->areas; i++)
		memset(s->area[i].says, 0, s->area[i].room);
	for (int64_t u = begin; u < end; u++)
		for (unsigned slot = 0; slot < s->args; slot++)
			say_slot(s, slot, u);
	if (!run_once(s, ir, begin, end, false))
		return;
	for (int64_t u = begin; u < end; u++)
		for (unsigned slot = 0; slot < s->args; slot++)
			see_members(s, slot, u);
	for (unsigned i = 0; i < s->areas; i++) {
		memcpy(s->area[i].result, s->area[i].at, s->area[i].room);
		for (uint64_t j = 0; j < s->area[i].room; j++)
			judge_byte(s, &s->area[i], j);
	}
	if (s->wrong || !run_once(s, ir, begin, end, true))
		return;
	for (unsigned i = 0; i < s->areas; i++)
		for (uint64_t j = 0; j < s->area[i].room; j++)
			if (s->area[i].did[j] & DID_WRITE && s->area[i].at[j] != s->area[i].result[j] &&
			    means_something(s, &s->area[i], j))
				complain(s, "depends on what it does not say it reads:", s->area[i].name, j);
}

static bool build(struct ir *ir, const struct trial *t)
{
	struct error err = { 0 };

	ir_init(ir, t->target->lanes);
	ir->waves = t->target->waves ? t->target->waves : 1;
	return template_build(ir, &t->key, t->target, &err) && ir_verify(ir, &err);
}

enum trial_end trial_run(const struct trial *t, const struct trial_lies *lies, char text[512])
{
	struct state s = { .t = t, .lies = lies, .text = text };
	struct ir ir;

	if (!build(&ir, t)) {
		ir_free(&ir);
		return TRIAL_REFUSED;
	}
	trial_make_launch(&s);
	const int64_t first = trial_draw((uint32_t)t->units), n = 1 + trial_draw((uint32_t)(t->units - first));
	if (trial_draw(2))
		judge(&s, &ir, first, first + n);
	else
		for (int64_t u = first; u < first + (n < 4 ? n : 4) && !s.wrong; u++)
			judge(&s, &ir, u, u + 1);
	trial_free(&s);
	ir_free(&ir);
	return s.wrong ? TRIAL_FAILED : TRIAL_PASSED;
}
