/* language/tidy.c - a kernel's IR with less to do: what is there already is not computed again, and what a loop does
 * not change is computed before it.
 *
 * Owns: the second walk over what lower*.c wrote. No value changes, only where it is computed and how often. The
 * interpreter, which judges all targets, runs what was written at first. Rule for editors: only what is pure is moved,
 * and reads of arrays that no instance writes are joined, but never moved to where they might not have been.
 */
#include <stdlib.h>
#include <string.h>

#include "language/tidy.h"

enum { BUCKETS = 4096, VARIABLE = 255, MAX_WAITING = 16, MAX_EARLY = 16 };
static const uint32_t NONE = UINT32_MAX;

struct known {
	uint32_t ins, next, serial;
	uint8_t depth;
};
struct open {
	uint32_t ins, serial; /* of a loop: where it begins */
	unsigned vectors, scalars;
};
struct tidy {
	struct ir *ir;
	const struct jk_tidy_rules *rules;
	uint16_t *instead; /* by register */
	uint8_t *level;    /* by register: loops around what defines it */
	uint32_t *next, *before;
	uint32_t last, serial, n_known;
	uint32_t bucket[BUCKETS];
	struct known *known;
	struct open open[IR_MAX_DEPTH + 1]; /* 0: the kernel */
	uint8_t loop[IR_MAX_LOOP_DEPTH];    /* numbers in open */
	unsigned depth, loops;
	uint32_t waiting[MAX_WAITING]; /* stores, in their order */
	unsigned n_waiting;
	struct {
		uint32_t last,
			at; /* of reads that stand together: the last one, and how many were written before them */
		unsigned n;
	} early;
	uint32_t *since; /* by register: how many instructions had been written when it was */
	uint32_t written;
};

/* ---- the list that becomes the kernel */

static void append(struct tidy *t, uint32_t k)
{
	t->before[k] = t->last;
	t->next[k] = NONE;
	if (t->last != NONE)
		t->next[t->last] = k;
	t->last = k;
}

static void insert_behind(struct tidy *t, uint32_t at, uint32_t k)
{
	const uint32_t later = t->next[at];

	if (later == NONE) {
		append(t, k);
		return;
	}
	t->before[k] = at;
	t->next[k] = later;
	t->next[at] = k;
	t->before[later] = k;
}

static void insert_before(struct tidy *t, uint32_t at, uint32_t k)
{
	const uint32_t earlier = t->before[at];

	t->before[k] = earlier;
	t->next[k] = at;
	t->before[at] = k;
	if (earlier != NONE)
		t->next[earlier] = k;
}

/* ---- what is known */

static uint32_t hash_of(const struct ir_ins *i)
{
	uint64_t h = ((uint64_t)i->op << 8 | i->type) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)i->imm;

	h = (h ^ ((uint64_t)i->a << 48 | (uint64_t)i->b << 32 | (uint64_t)i->c << 16 | i->mask)) *
	    UINT64_C(0xff51afd7ed558ccd);
	return (uint32_t)((h ^ (h >> 31)) * UINT64_C(0xc4ceb9fe1a85ec53) >> 52);
}

static bool is_same(const struct ir_ins *a, const struct ir_ins *b)
{
	return a->op == b->op && a->type == b->type && a->a == b->a && a->b == b->b && a->c == b->c &&
	       a->mask == b->mask && a->imm == b->imm;
}

/* An instruction that gave the same, in a block that is still open; or NONE. */
static uint32_t find(const struct tidy *t, const struct ir_ins *i)
{
	for (uint32_t k = t->bucket[hash_of(i)]; k; k = t->known[k].next) {
		const struct known *e = &t->known[k];
		if (is_same(&t->ir->ins[e->ins], i) && e->depth <= t->depth && t->open[e->depth].serial == e->serial)
			return e->ins;
	}
	return NONE;
}

static void remember(struct tidy *t, uint32_t ins, unsigned depth)
{
	const uint32_t at = hash_of(&t->ir->ins[ins]);

	t->known[++t->n_known] = (struct known){ ins, t->bucket[at], t->open[depth].serial, (uint8_t)depth };
	t->bucket[at] = t->n_known;
}

/* ---- instructions */

static bool is_steady(const struct tidy *t, uint16_t reg)
{
	return t->rules->steady && t->rules->steady[reg / 64] >> reg % 64 & 1;
}

static unsigned level_of(const struct tidy *t, const struct ir_ins *i)
{
	const uint16_t from[] = { i->a, i->b, i->c, i->mask };
	unsigned level = 0;

	for (unsigned k = 0; k < 4; k++)
		if (from[k] && t->level[from[k]] > level)
			level = t->level[from[k]];
	return level;
}

static bool is_vector(unsigned type)
{
	return type == IR_TYPE_f32 || type == IR_TYPE_i32 || type == IR_TYPE_m || type == IR_TYPE_f64 ||
	       type == IR_TYPE_i64;
}

/* Whether there is a register left to keep it in while the loop runs. A constant is made again where it is wanted. */
static bool has_room(const struct tidy *t, const struct ir_ins *i, struct open *o)
{
	const unsigned type = t->ir->type[i->dst];
	unsigned *const count = is_vector(type) ? &o->vectors : &o->scalars;
	const unsigned takes = type == IR_TYPE_f64 || type == IR_TYPE_i64 ? 2 : 1;

	if (i->op == IR_const)
		return true;
	if (*count + takes > (is_vector(type) ? t->rules->vectors : t->rules->scalars))
		return false;
	*count += takes;
	return true;
}

/* ---- reads that stand together: a card's compiler does not move one to before a division, which has branches in it,
 * so that each would wait for memory by itself */

static bool is_there(const struct tidy *t, uint16_t reg)
{
	return t->level[reg] != VARIABLE && t->since[reg] <= t->early.at;
}

static void append_read(struct tidy *t, uint32_t k)
{
	const struct ir_ins *i = &t->ir->ins[k];
	const bool together = t->rules->early_reads && t->early.n && t->early.n < MAX_EARLY;

	if (together && is_there(t, i->a) && is_there(t, i->b) && is_there(t, i->c) && is_there(t, i->mask)) {
		insert_behind(t, t->early.last, k);
		t->early.last = k;
		t->early.n++;
		t->since[i->dst] = t->early.at;
		return;
	}
	append(t, k);
	if (together) /* what it depends on is read with the others */
		return;
	t->early.last = k;
	t->early.at = t->written;
	t->early.n = 1;
}

/* A value that depends on operands alone. */
static void value(struct tidy *t, uint32_t k, bool moves)
{
	const struct ir_ins *i = &t->ir->ins[k];
	const unsigned level = level_of(t, i);
	const uint32_t there = level == VARIABLE ? NONE : find(t, i);
	unsigned depth = t->depth;

	if (there != NONE) {
		t->instead[i->dst] = t->ir->ins[there].dst;
		return;
	}
	t->level[i->dst] = (uint8_t)t->loops;
	if (level == VARIABLE) {
		append(t, k);
		return;
	}
	if (moves && level < t->loops && t->rules->loops && has_room(t, i, &t->open[t->loop[level]])) {
		depth = t->loop[level] - 1u;
		t->level[i->dst] = (uint8_t)level;
		insert_before(t, t->open[t->loop[level]].ins, k);
	} else if (moves) {
		append(t, k);
	} else {
		append_read(t, k);
	}
	remember(t, k, depth);
}

static void enter(struct tidy *t, uint32_t k, bool loop)
{
	t->open[++t->depth] = (struct open){ .ins = k, .serial = ++t->serial };
	if (loop)
		t->loop[t->loops++] = (uint8_t)t->depth;
}

static void structure(struct tidy *t, uint32_t k)
{
	const struct ir_ins *i = &t->ir->ins[k];

	append(t, k);
	t->early.n = 0;
	switch (i->op) {
	case IR_loop:
		enter(t, k, true);
		t->level[i->dst] = (uint8_t)(t->ir->is_var[i->dst] ? VARIABLE : t->loops);
		break;
	case IR_if: enter(t, k, false); break;
	case IR_else: t->open[t->depth].serial = ++t->serial; break;
	case IR_endloop:
		t->loops--;
		t->depth--;
		break;
	case IR_endif: t->depth--; break;
	default: break;
	}
}

/* ---- stores, which keep a card's compiler from moving reads to before them: an iteration that is written several
 * times reads everything first, and waits for memory once */

static void store_waiting(struct tidy *t)
{
	for (unsigned w = 0; w < t->n_waiting; w++)
		append(t, t->waiting[w]);
	t->n_waiting = 0;
}

static bool reads_variable(const struct tidy *t, const struct ir_ins *i)
{
	return t->ir->is_var[i->a] || t->ir->is_var[i->b] || t->ir->is_var[i->c] || t->ir->is_var[i->mask];
}

/* Whether an instruction may stand before stores that wait, which read no variables. */
static bool may_pass(const struct tidy *t, const struct ir_ins *i)
{
	return i->dst && (ir_facts[i->op].effects == IR_PURE || (!t->ir->is_var[i->dst] && is_steady(t, i->dst)));
}

static bool waits(struct tidy *t, uint32_t k)
{
	const struct ir_ins *i = &t->ir->ins[k];

	if (!t->rules->late_stores)
		return false;
	if ((i->op == IR_store || i->op == IR_store_strided) && !reads_variable(t, i) && t->n_waiting < MAX_WAITING) {
		t->waiting[t->n_waiting++] = k;
		return true;
	}
	if (!may_pass(t, i))
		store_waiting(t);
	return false;
}

static void step(struct tidy *t, uint32_t k)
{
	struct ir_ins *i = &t->ir->ins[k];
	const bool is_var = i->dst && t->ir->is_var[i->dst];

	i->a = t->instead[i->a];
	i->b = t->instead[i->b];
	i->c = t->instead[i->c];
	i->mask = t->instead[i->mask];
	if (waits(t, k))
		return;
	t->written++;
	if (i->dst)
		t->since[i->dst] = t->written;
	if (ir_does(i->op, IR_BRANCHES)) {
		structure(t, k);
	} else if (i->dst && !is_var && ir_facts[i->op].effects == IR_PURE && i->op != IR_mov) {
		value(t, k, true);
	} else if (i->dst && !is_var && is_steady(t, i->dst)) {
		value(t, k, false);
	} else {
		append(t, k);
		if (i->dst)
			t->level[i->dst] = (uint8_t)(is_var ? VARIABLE : t->loops);
	}
}

static bool write_back(struct tidy *t)
{
	struct ir *ir = t->ir;
	struct ir_ins *ins = calloc(ir->n_ins + 1, sizeof *ins);
	uint32_t first = t->last;
	size_t n = 0;

	if (!ins)
		return false;
	while (first != NONE && t->before[first] != NONE)
		first = t->before[first];
	for (uint32_t k = first; k != NONE; k = t->next[k])
		ins[n++] = ir->ins[k];
	free(ir->ins);
	ir->ins = ins;
	ir->capacity = ir->n_ins + 1;
	ir->n_ins = n;
	return true;
}

bool jk_tidy(struct ir *ir, const struct jk_tidy_rules *rules)
{
	struct tidy *t = calloc(1, sizeof *t);
	const size_t n = ir->n_ins + 1;

	if (!t)
		return false;
	t->ir = ir;
	t->rules = rules;
	t->last = NONE;
	t->instead = malloc(ir->n_regs * sizeof *t->instead);
	t->level = calloc(ir->n_regs, 1);
	t->next = malloc(n * sizeof *t->next);
	t->before = malloc(n * sizeof *t->before);
	t->known = malloc((n + 1) * sizeof *t->known);
	t->since = calloc(ir->n_regs, sizeof *t->since);
	bool ok = t->instead && t->level && t->next && t->before && t->known && t->since;
	for (size_t r = 0; ok && r < ir->n_regs; r++) {
		t->instead[r] = (uint16_t)r;
		t->level[r] = ir->is_var[r] ? VARIABLE : 0;
	}
	for (uint32_t k = 0; ok && k < ir->n_ins; k++)
		step(t, k);
	store_waiting(t);
	ok = ok && write_back(t);
	free(t->instead);
	free(t->level);
	free(t->next);
	free(t->before);
	free(t->known);
	free(t->since);
	free(t);
	return ok;
}
