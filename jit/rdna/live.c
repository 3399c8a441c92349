/* jit/rdna/live.c - where each word of each virtual RDNA register lives, over loops and ifs; and, on the way, what each
 * instruction names.
 *
 * A word's life runs from its register's first write to the word's last use. A read that a write before an open loop
 * may feed makes the word live to the end of that loop, for it goes round its back. A write inside a loop that has
 * ended, or inside a part of an if, feeds nothing behind it for sure: it may not have run.
 */
#include "jit/ir/ir.h"
#include "jit/rdna/live.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { MAX_USES = 8 /* of an instruction: all its operands, one of them twice */, USUAL_USES = 3 };

struct walk {
	const struct rdna_lir *l;
	struct rdna_live *v;
	uint32_t at;
	uint32_t scc; /* the latest instruction that wrote it */
	struct {
		uint32_t word, sure;
	} * undo;
	size_t n_undo, undo_capacity;
	struct {
		uint32_t start, undo;
		bool loop;
	} block[IR_LOWERED_DEPTH]; /* loops and parts of ifs that are open */
	unsigned depth;
	uint32_t begun;   /* where the innermost open loop begins; 0: none is open, or nothing stands before it */
	uint32_t entered; /* the same of blocks */
	bool failed;
};

/* --- lives */

/* NEVER is less than every position. */
static inline void extend(struct rdna_word *word, uint32_t to)
{
	if ((int32_t)word->end < (int32_t)to)
		word->end = to;
}

/* The outermost open loop that begins behind the latest sure write is what the word lives to the end of. */
static void around_loops(const struct walk *w, struct rdna_word *word)
{
	unsigned d = 0;
	while (!w->block[d].loop || w->block[d].start <= word->sure)
		d++;
	extend(word, w->v->loop_end[w->block[d].start]);
}

static inline void remember_sure(struct walk *w, const struct rdna_word *word)
{
	if (w->n_undo == w->undo_capacity &&
	    !array_grow((void **)&w->undo, &w->undo_capacity, w->n_undo + 1, sizeof *w->undo)) {
		w->failed = true;
		return;
	}
	w->undo[w->n_undo].word = (uint32_t)(word - w->v->word);
	w->undo[w->n_undo++].sure = word->sure;
}

static inline struct rdna_life *note(const struct walk *w, struct rdna_use *u, const struct rdna_lir_operand *o,
                                     bool written)
{
	uint32_t reg = o->reg;
	struct rdna_life *r = &w->v->reg[reg];
	*u = (struct rdna_use){
		.reg = reg, .word = r->first_word + o->sub, .n = o->n, .written = written, .takes = written
	};
	r->uses++;
	return r;
}

/* Inside a loop what a write before it may feed goes around it. What was never written is less than no loop's
 * beginning: nobody can mean to read it. */
static inline struct rdna_use *read_operand(struct walk *w, struct rdna_use *u, const struct rdna_lir_operand *o)
{
	note(w, u, o, false);
	struct rdna_word *word = &w->v->word[u->word], *end = word + u->n;
	do {
		extend(word, w->at);
		if (word->sure < w->begun)
			around_loops(w, word);
	} while (++word < end);
	return u + 1;
}

static inline struct rdna_use *write_operand(struct walk *w, struct rdna_use *u, const struct rdna_lir_operand *o)
{
	struct rdna_life *r = note(w, u, o, true);
	struct rdna_word *word = &w->v->word[u->word], *end = word + u->n;
	uint32_t *written = &w->v->written[u->word];
	if (r->start == RDNA_LIVE_NEVER)
		r->start = w->at;
	do {
		extend(word, w->at);
		if (word->sure < w->entered)
			remember_sure(w, word);
		word->sure = *written++ = w->at;
	} while (++word < end);
	return u + 1;
}

static void enter(struct walk *w, bool loop)
{
	assert(w->depth < IR_LOWERED_DEPTH);
	w->block[w->depth].start = w->at;
	w->block[w->depth].loop = loop;
	w->block[w->depth++].undo = (uint32_t)w->n_undo;
	w->entered = w->at;
	w->begun = loop ? w->at : w->begun;
}

/* The writes of the innermost block are not sure behind it. */
static void undo_writes(struct walk *w)
{
	for (uint32_t first = w->block[w->depth - 1].undo; w->n_undo > first; w->n_undo--)
		w->v->word[w->undo[w->n_undo - 1].word].sure = w->undo[w->n_undo - 1].sure;
}

static void leave(struct walk *w)
{
	undo_writes(w);
	w->depth--;
	w->entered = w->depth ? w->block[w->depth - 1].start : 0;
	w->begun = 0;
	for (unsigned d = 0; d < w->depth; d++)
		w->begun = w->block[d].loop ? w->block[d].start : w->begun;
}

static void structure(struct walk *w, unsigned op)
{
	switch (op) {
	case RDNA_LIR_LOOP: enter(w, true); break;
	case RDNA_LIR_IF: enter(w, false); break;
	case RDNA_LIR_ELSE:
		undo_writes(w);
		w->block[w->depth - 1].start = w->entered = w->at;
		break;
	case RDNA_LIR_ENDLOOP:
	case RDNA_LIR_ENDIF: leave(w); break;
	default: break;
	}
}

/* The count is compared and the index counted on at the loop's end, so all that a loop names keeps its register until
 * then. */
static void keep_through_loop(struct walk *w, const struct rdna_use *from, const struct rdna_use *to)
{
	for (const struct rdna_use *u = from; u < to; u++)
		for (uint32_t word = u->word; word < u->word + u->n; word++)
			extend(&w->v->word[word], w->v->loop_end[w->at]);
}

static inline void follow_scc(struct walk *w, unsigned marks)
{
	if (marks & RDNA_MARK_READS_SCC)
		w->v->marks[w->scc] |= RDNA_MARK_SCC_WANTED;
	if (marks & RDNA_MARK_WRITES_SCC)
		w->scc = w->at;
}

static inline struct rdna_use *read_operands(struct walk *w, const struct rdna_lir_ins *i, struct rdna_use *u,
                                             unsigned *marks)
{
	for (unsigned k = 0; k < 4; k++)
		if (i->s[k].kind == RDNA_LIR_VIRTUAL)
			u = read_operand(w, u, &i->s[k]);
		else if (i->s[k].kind == RDNA_LIR_FIXED)
			*marks |= RDNA_MARK_MACHINE | (i->s[k].reg == RDNA_SCC ? RDNA_MARK_READS_SCC : 0);
	if (i->saddr.kind == RDNA_LIR_VIRTUAL)
		u = read_operand(w, u, &i->saddr);
	else if (i->saddr.kind == RDNA_LIR_FIXED)
		*marks |= RDNA_MARK_MACHINE;
	if (i->d[0].kind == RDNA_LIR_VIRTUAL && rdna_lir_reads_dst(i))
		u = read_operand(w, u, &i->d[0]);
	return u;
}

static inline struct rdna_use *write_operands(struct walk *w, const struct rdna_lir_ins *i, struct rdna_use *u,
                                              unsigned *marks)
{
	for (unsigned k = 0; k < 2; k++)
		if (i->d[k].kind == RDNA_LIR_VIRTUAL)
			u = write_operand(w, u, &i->d[k]);
		else if (i->d[k].kind == RDNA_LIR_FIXED)
			*marks |= RDNA_MARK_MACHINE;
	if (i->d[1].kind == RDNA_LIR_VIRTUAL && i->d[0].kind == RDNA_LIR_VIRTUAL)
		u[-1].takes = i->d[0].reg != i->d[1].reg;
	return u;
}

/* from: where its uses go. Returns where they end. */
static inline struct rdna_use *step(struct walk *w, const struct rdna_lir_ins *i, struct rdna_use *from)
{
	unsigned marks = rdna_lir_row(i->op) &
	                 (RDNA_MARK_FIXED | RDNA_MARK_READS_SCC | RDNA_MARK_WRITES_SCC | RDNA_MARK_MACHINE);
	struct rdna_use *u = read_operands(w, i, from, &marks);
	if (i->op >= RDNA_OP_COUNT)
		structure(w, i->op);
	u = write_operands(w, i, u, &marks);
	if (i->op == RDNA_LIR_LOOP)
		keep_through_loop(w, from, u);
	w->v->marks[w->at] = (uint16_t)marks;
	if (marks & (RDNA_MARK_READS_SCC | RDNA_MARK_WRITES_SCC))
		follow_scc(w, marks);
	return u;
}

/* --- the walk */

static void find_loops(struct rdna_live *v, const struct rdna_lir *l)
{
	uint32_t open[IR_LOWERED_DEPTH];
	unsigned depth = 0;
	for (uint32_t k = 0; k < l->n_ins; k++) {
		if (l->ins[k].op < RDNA_OP_COUNT)
			continue;
		if (l->ins[k].op == RDNA_LIR_LOOP)
			open[depth++] = k;
		else if (l->ins[k].op == RDNA_LIR_ENDLOOP)
			v->loop_end[open[--depth]] = k;
	}
}

/* One allocation for all arrays but the uses, which nobody has counted. */
static bool room(struct rdna_live *v, const struct rdna_lir *l)
{
	size_t words = 0, regs = l->n_regs, ins = l->n_ins + 1;
	for (size_t r = 0; r < regs; r++)
		words += l->reg[r].n;
	v->memory = malloc(regs * (sizeof *v->reg + sizeof *v->named) + words * (sizeof *v->word + sizeof *v->written) +
	                   ins * (2 * sizeof(uint32_t) + sizeof *v->marks));
	if (!v->memory)
		return false;
	v->n_words = words;
	v->reg = v->memory;
	v->word = (struct rdna_word *)(v->reg + regs);
	v->written = (uint32_t *)(v->word + words);
	v->use_from = v->written + words;
	v->loop_end = v->use_from + ins;
	v->marks = (uint16_t *)(v->loop_end + ins);
	v->named = v->marks + ins;
	return true;
}

static void begin(struct rdna_live *v, const struct rdna_lir *l)
{
	uint32_t words = 0;
	for (size_t r = 0; r < l->n_regs; r++) {
		v->reg[r] = (struct rdna_life){ .first_word = words, .start = RDNA_LIVE_NEVER };
		words += l->reg[r].n;
	}
	memset(v->word, 0xff, words * sizeof *v->word);
	memset(v->written, 0, words * sizeof *v->written);
}

/* What is known of registers once it is known of their words. */
static void gather(struct rdna_live *v, const struct rdna_lir *l)
{
	const struct rdna_word *word = v->word;
	for (size_t r = 0; r < l->n_regs; r++) {
		unsigned named = 0, bit = 1;
		uint32_t last = 0;
		if (l->reg[r].n == 1 && word->end != RDNA_LIVE_NEVER) {
			v->named[r] = 1;
			v->reg[r].end = word++->end;
			continue;
		}
		for (const struct rdna_word *end = word + l->reg[r].n; word < end; word++, bit <<= 1) {
			if (word->end == RDNA_LIVE_NEVER)
				continue;
			named |= bit;
			last = last < word->end ? word->end : last;
		}
		v->named[r] = (uint16_t)named;
		v->reg[r].end = last;
	}
}

static bool follow(struct walk *w)
{
	const struct rdna_lir *l = w->l;
	struct rdna_live *v = w->v;
	const struct rdna_use *full = NULL; /* beyond it there may be no room for one more instruction's */
	struct rdna_use *u = NULL;
	for (const struct rdna_lir_ins *i = l->ins; w->at < l->n_ins; i++, w->at++) {
		if (u >= full) {
			size_t n = (size_t)(u - v->use);
			if (!array_grow((void **)&v->use, &v->use_capacity,
			                n + MAX_USES + USUAL_USES * (l->n_ins - w->at), sizeof *v->use))
				return false;
			u = v->use + n;
			full = v->use + v->use_capacity - MAX_USES + 1;
		}
		v->use_from[w->at] = (uint32_t)(u - v->use);
		u = step(w, i, u);
	}
	v->n_uses = (size_t)(u - v->use);
	v->use_from[l->n_ins] = (uint32_t)v->n_uses;
	v->marks[l->n_ins] = RDNA_MARK_FIXED;
	return !w->failed;
}

bool rdna_live_find(struct rdna_live *v, const struct rdna_lir *l)
{
	struct walk w = { .l = l, .v = v };
	*v = (struct rdna_live){ 0 };
	bool ok = room(v, l);
	if (ok) {
		begin(v, l);
		find_loops(v, l);
		ok = follow(&w);
	}
	if (ok)
		gather(v, l);
	else
		rdna_live_free(v);
	free(w.undo);
	return ok;
}

void rdna_live_free(struct rdna_live *v)
{
	free(v->memory);
	free(v->use);
	*v = (struct rdna_live){ 0 };
}
