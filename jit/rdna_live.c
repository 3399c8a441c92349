/* jit/rdna_live.c - where each word of each virtual RDNA register lives, over counted loops.
 *
 * A word's life runs from its register's first write to the word's last use. A read that a write before an open loop may feed makes the word live to
 * the end of that loop, for it goes round its back. A write inside a loop that has ended feeds nothing for sure: the loop may not have run.
 */
#include "jit/rdna_live.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/array.h"

enum { MAX_DEPTH = 64 };

struct walk {
	const struct rdna_lir *l;
	struct rdna_live *v;
	uint32_t at;
	uint32_t *sure;                                  /* by word: the latest write that is on every path to here */
	struct { uint32_t word, sure; } *undo; size_t n_undo, undo_capacity;
	struct { uint32_t start, undo; } loop[MAX_DEPTH]; unsigned depth;
	bool failed;
};

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
	while (w->loop[d].start <= w->sure[word])
		d++;
	extend(w, word, w->v->loop_end[w->loop[d].start]);
}

static inline void read_word(struct walk *w, uint32_t word)
{
	extend(w, word, w->at);
	if (w->depth && w->loop[w->depth - 1].start > w->sure[word])
		around_loops(w, word);
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

static inline void write_word(struct walk *w, uint32_t word)
{
	extend(w, word, w->at);
	if (w->depth && (w->sure[word] == RDNA_LIVE_NEVER || w->sure[word] < w->loop[w->depth - 1].start))
		remember_sure(w, word);
	w->sure[word] = w->at;
}

static inline void each_word(struct walk *w, const struct rdna_lir_operand *o, void (*f)(struct walk *w, uint32_t word))
{
	if (o->kind == RDNA_LIR_VIRTUAL)
		for (uint32_t word = w->v->first_word[o->reg] + o->sub, end = word + o->n; word < end; word++)
			f(w, word);
}

static inline void read_operand(void *user, const struct rdna_lir_operand *o, bool written)
{
	if (!written)
		each_word(user, o, read_word);
}

static inline void write_operand(struct walk *w, const struct rdna_lir_operand *o)
{
	if (o->kind != RDNA_LIR_VIRTUAL)
		return;
	if (w->v->start[o->reg] == RDNA_LIVE_NEVER)
		w->v->start[o->reg] = w->at;
	each_word(w, o, write_word);
}

static void to_loop_end(struct walk *w, uint32_t word) { extend(w, word, w->v->loop_end[w->at]); }

/* The count is compared and the index counted on at the loop's end, so both keep their registers until then. */
static void structure(struct walk *w, const struct rdna_lir_ins *i)
{
	if (i->op == RDNA_LIR_LOOP) {
		assert(w->depth < MAX_DEPTH);
		w->loop[w->depth].start = w->at;
		w->loop[w->depth++].undo = (uint32_t)w->n_undo;
		each_word(w, &i->s[0], to_loop_end);
		each_word(w, &i->d[0], to_loop_end);
	} else if (i->op == RDNA_LIR_ENDLOOP) {
		for (uint32_t first = w->loop[--w->depth].undo; w->n_undo > first; w->n_undo--)
			w->sure[w->undo[w->n_undo - 1].word] = w->undo[w->n_undo - 1].sure;
	}
}

static bool find_loops(struct rdna_live *v, const struct rdna_lir *l)
{
	uint32_t open[MAX_DEPTH];
	unsigned depth = 0;
	v->loop_end = calloc(l->n_ins + 1, sizeof *v->loop_end);
	for (uint32_t k = 0; v->loop_end && k < l->n_ins; k++)
		if (l->ins[k].op == RDNA_LIR_LOOP)
			open[depth++] = k;
		else if (l->ins[k].op == RDNA_LIR_ENDLOOP)
			v->loop_end[open[--depth]] = k;
	return v->loop_end;
}

static bool room(struct walk *w, const struct rdna_lir *l)
{
	struct rdna_live *v = w->v;
	v->first_word = malloc((l->n_regs + 1) * sizeof *v->first_word);
	v->start = malloc(l->n_regs * sizeof *v->start);
	if (!v->first_word || !v->start || !find_loops(v, l))
		return false;
	memset(v->start, 0xff, l->n_regs * sizeof *v->start);
	v->first_word[0] = 0;
	for (size_t r = 0; r < l->n_regs; r++)
		v->first_word[r + 1] = v->first_word[r] + l->reg[r].n;
	v->n_words = v->first_word[l->n_regs];
	v->end = malloc((v->n_words + 1) * sizeof *v->end);
	w->sure = malloc((v->n_words + 1) * sizeof *w->sure);
	if (!v->end || !w->sure)
		return false;
	memset(v->end, 0xff, (v->n_words + 1) * sizeof *v->end);
	memset(w->sure, 0xff, (v->n_words + 1) * sizeof *w->sure);
	return true;
}

bool rdna_live_find(struct rdna_live *v, const struct rdna_lir *l)
{
	struct walk w = { .l = l, .v = v };
	*v = (struct rdna_live){0};
	bool ok = room(&w, l);
	for (w.at = 0; ok && w.at < l->n_ins; w.at++) {
		const struct rdna_lir_ins *i = &l->ins[w.at];
		rdna_lir_visit(i, read_operand, &w);
		if (rdna_lir_reads_dst(i))
			each_word(&w, &i->d[0], read_word);
		if (i->op >= RDNA_OP_COUNT)
			structure(&w, i);
		write_operand(&w, &i->d[0]);
		write_operand(&w, &i->d[1]);
		ok = !w.failed;
	}
	free(w.sure);
	free(w.undo);
	if (!ok)
		rdna_live_free(v);
	return ok;
}

void rdna_live_free(struct rdna_live *v)
{
	free(v->first_word);
	free(v->start);
	free(v->end);
	free(v->loop_end);
	*v = (struct rdna_live){0};
}
