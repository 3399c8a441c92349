/* jit/rdna_live.c - where each word of each virtual RDNA register lives, over counted loops; and, on the way, what each instruction names.
 *
 * A word's life runs from its register's first write to the word's last use. A read that a write before an open loop may feed makes the word live to
 * the end of that loop, for it goes round its back. A write inside a loop that has ended feeds nothing for sure: the loop may not have run.
 */
#include "jit/rdna_live.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/array.h"

enum { MAX_DEPTH = 64, MOST_USES = 8 /* of an instruction: all its operands, one of them twice */, USUAL_USES = 3 };

struct walk {
	const struct rdna_lir *l;
	struct rdna_live *v;
	uint32_t at;
	uint32_t *sure;                                  /* by word: the latest write that is on every path to here */
	struct { uint32_t word, sure; } *undo; size_t n_undo, undo_capacity;
	struct { uint32_t start, undo; } loop[MAX_DEPTH]; unsigned depth;
	uint32_t begun;                                  /* where the innermost open loop begins, plus one; 0: none is open */
	bool failed;
};

/* --- uses */

static inline struct rdna_use *note(struct rdna_use *first, struct rdna_use *u, const struct rdna_live *v, const struct rdna_lir_operand *o, bool written)
{
	u->reg = o->reg;
	u->word = v->first_word[o->reg] + o->sub;
	u->n = o->n;
	u->times = 1;
	u->written = u->takes = written;
	for (struct rdna_use *e = first; e < u; e++)
		if (e->reg == o->reg) {
			e->times += e->times != 0;
			u->times = 0;
			u->takes &= !e->written;
		}
	return u + 1;
}

static inline uint8_t marks_of_row(uint32_t row)
{
	return (uint8_t)((row & RDNA_IS_FIXED ? RDNA_MARK_FIXED : 0) | (row & RDNA_READS_VCC ? RDNA_MARK_MACHINE : 0) |
	                 (row & RDNA_READS_SCC ? RDNA_MARK_READS_SCC : 0) | (row & RDNA_WRITES_SCC ? RDNA_MARK_WRITES_SCC : 0));
}

/* Those of one instruction, from `first` on, where there is room for all; returns where they end. */
static inline struct rdna_use *note_all(struct rdna_use *first, const struct rdna_live *v, const struct rdna_lir_ins *i, uint8_t *marks)
{
	struct rdna_use *u = first;
	uint8_t m = marks_of_row(rdna_lir_row(i->op));
	for (unsigned k = 0; k < 4; k++)
		if (i->s[k].kind == RDNA_LIR_VIRTUAL)
			u = note(first, u, v, &i->s[k], false);
		else if (i->s[k].kind == RDNA_LIR_FIXED)
			m |= RDNA_MARK_MACHINE | (i->s[k].reg == RDNA_SCC ? RDNA_MARK_READS_SCC : 0);
	if (i->saddr.kind == RDNA_LIR_VIRTUAL)
		u = note(first, u, v, &i->saddr, false);
	else if (i->saddr.kind == RDNA_LIR_FIXED)
		m |= RDNA_MARK_MACHINE;
	if (i->d[0].kind == RDNA_LIR_VIRTUAL && rdna_lir_reads_dst(i))
		u = note(first, u, v, &i->d[0], false);
	for (unsigned k = 0; k < 2; k++)
		if (i->d[k].kind == RDNA_LIR_VIRTUAL)
			u = note(first, u, v, &i->d[k], true);
		else if (i->d[k].kind == RDNA_LIR_FIXED)
			m |= RDNA_MARK_MACHINE;
	*marks = m;
	return u;
}

/* --- lives */

/* NEVER is less than every position. */
static inline void extend(struct walk *w, uint32_t word, uint32_t to)
{
	uint32_t *end = &w->v->end[word];
	if ((int32_t)*end < (int32_t)to)
		*end = to;
}

/* The outermost open loop that begins behind the latest sure write is what the word lives to the end of. */
static void around_loops(struct walk *w, uint32_t word)
{
	unsigned d = 0;
	if (w->sure[word] == RDNA_LIVE_NEVER)            /* nobody can have meant that: the verifier will say so */
		return;
	while (w->loop[d].start <= w->sure[word])
		d++;
	extend(w, word, w->v->loop_end[w->loop[d].start]);
}

static void remember_sure(struct walk *w, uint32_t word)
{
	if (!array_grow((void **)&w->undo, &w->undo_capacity, w->n_undo + 1, sizeof *w->undo)) {
		w->failed = true;
		return;
	}
	w->undo[w->n_undo].word = word;
	w->undo[w->n_undo++].sure = w->sure[word];
}

/* Inside a loop what a write before it may feed goes around it. */
static inline void read_words(struct walk *w, const struct rdna_use *u)
{
	uint32_t word = u->word, end = word + u->n;
	do {
		extend(w, word, w->at);
		if (w->sure[word] + 1 < w->begun)        /* NEVER + 1 is 0 */
			around_loops(w, word);
	} while (++word < end);
}

static inline void write_words(struct walk *w, const struct rdna_use *u)
{
	uint32_t word = u->word, end = word + u->n;
	if (w->v->start[u->reg] == RDNA_LIVE_NEVER)
		w->v->start[u->reg] = w->at;
	do {
		extend(w, word, w->at);
		if (w->sure[word] + 1 < w->begun)
			remember_sure(w, word);
		w->sure[word] = w->v->written[word] = w->at;
	} while (++word < end);
}

/* The count is compared and the index counted on at the loop's end, so all that a loop names keeps its register until then. */
static void structure(struct walk *w, const struct rdna_lir_ins *i, const struct rdna_use *from, const struct rdna_use *to)
{
	if (i->op == RDNA_LIR_LOOP) {
		assert(w->depth < MAX_DEPTH);
		w->loop[w->depth].start = w->at;
		w->loop[w->depth++].undo = (uint32_t)w->n_undo;
		w->begun = w->at + 1;
		for (const struct rdna_use *u = from; u < to; u++)
			for (uint32_t word = u->word; word < u->word + u->n; word++)
				extend(w, word, w->v->loop_end[w->at]);
	} else if (i->op == RDNA_LIR_ENDLOOP) {
		for (uint32_t first = w->loop[--w->depth].undo; w->n_undo > first; w->n_undo--)
			w->sure[w->undo[w->n_undo - 1].word] = w->undo[w->n_undo - 1].sure;
		w->begun = w->depth ? w->loop[w->depth - 1].start + 1 : 0;
	}
}

static inline void step(struct walk *w, const struct rdna_lir_ins *i)
{
	struct rdna_live *v = w->v;
	const struct rdna_use *from = v->use + v->n_uses, *to = note_all(v->use + v->n_uses, v, i, &v->marks[w->at]), *u = from;
	v->use_from[w->at] = (uint32_t)v->n_uses;
	v->n_uses = (size_t)(to - v->use);
	for (; u < to && !u->written; u++)
		read_words(w, u);
	if (i->op >= RDNA_OP_COUNT)
		structure(w, i, from, to);
	for (; u < to; u++)
		write_words(w, u);
}

/* --- the walk */

static void find_loops(struct rdna_live *v, const struct rdna_lir *l)
{
	uint32_t open[MAX_DEPTH];
	unsigned depth = 0;
	for (uint32_t k = 0; k < l->n_ins; k++)
		if (l->ins[k].op == RDNA_LIR_LOOP)
			open[depth++] = k;
		else if (l->ins[k].op == RDNA_LIR_ENDLOOP)
			v->loop_end[open[--depth]] = k;
}

/* One piece for all arrays but the uses, which nobody has counted. */
static bool room(struct walk *w, const struct rdna_lir *l)
{
	struct rdna_live *v = w->v;
	size_t words = 1, regs = l->n_regs, ins = l->n_ins + 1;
	for (size_t r = 0; r < regs; r++)
		words += l->reg[r].n;
	uint32_t *at = v->memory = malloc((2 * regs + 1 + 3 * words + 2 * ins) * sizeof *at + ins);
	if (!at)
		return false;
	v->n_words = words - 1;
	v->start = at;
	v->end = v->start + regs;
	w->sure = v->end + words;
	v->written = w->sure + words;
	v->first_word = v->written + words;
	v->use_from = v->first_word + regs + 1;
	v->loop_end = v->use_from + ins;
	v->marks = (uint8_t *)(v->loop_end + ins);
	memset(v->start, 0xff, (regs + 2 * words) * sizeof *at);
	memset(v->written, 0, words * sizeof *at);
	v->first_word[0] = 0;
	for (size_t r = 0; r < regs; r++)
		v->first_word[r + 1] = v->first_word[r] + l->reg[r].n;
	return true;
}

bool rdna_live_find(struct rdna_live *v, const struct rdna_lir *l)
{
	struct walk w = { .l = l, .v = v };
	*v = (struct rdna_live){0};
	bool ok = room(&w, l);
	if (ok)
		find_loops(v, l);
	ok = ok && array_grow((void **)&v->use, &v->use_capacity, USUAL_USES * l->n_ins + MOST_USES, sizeof *v->use);
	for (; ok && w.at < l->n_ins; w.at++) {
		if (v->n_uses + MOST_USES > v->use_capacity)
			ok = array_grow((void **)&v->use, &v->use_capacity, v->n_uses + MOST_USES, sizeof *v->use);
		if (ok)
			step(&w, &l->ins[w.at]);
		ok = ok && !w.failed;
	}
	if (ok) {
		v->use_from[l->n_ins] = (uint32_t)v->n_uses;
		v->marks[l->n_ins] = RDNA_MARK_FIXED;
	} else {
		rdna_live_free(v);
	}
	free(w.undo);
	return ok;
}

void rdna_live_free(struct rdna_live *v)
{
	free(v->memory);
	free(v->use);
	*v = (struct rdna_live){0};
}
