/* tests/jit/rdna_lir_random.c - see rdna_lir_run.h. */
#include "tests/jit/rdna_lir_run.h"

#include <stdlib.h>
#include <string.h>

/* --- the run */

struct run {
	const struct rdna_lir *l;
	uint32_t *first_word;
	uint64_t *word, machine[512], scc, memory[4], trace;
	uint64_t sum; /* of what the present instruction reads */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= h >> 29;
	return h * UINT64_C(0xbf58476d1ce4e5b9) ^ h >> 32;
}

static uint64_t *cell_of(struct run *r, const struct rdna_lir_operand *o, unsigned k)
{
	if (o->kind == RDNA_LIR_FIXED)
		return &r->machine[o->reg + k];
	if (r->l->allocated)
		return &r->machine[r->l->reg[o->reg].phys + o->sub + k];
	return &r->word[r->first_word[o->reg] + o->sub + k];
}

static void read_operand(void *user, const struct rdna_lir_operand *o, bool written)
{
	struct run *r = user;
	if (written)
		return;
	bool constant = o->kind == RDNA_LIR_CONST; /* whether registers are virtual must not tell */
	r->sum = mix(r->sum, (uint64_t)constant << 32 | (uint64_t)o->mods << 8 | o->n);
	if (constant)
		r->sum = mix(r->sum, o->value);
	else if (o->kind == RDNA_LIR_FIXED && o->reg == RDNA_SCC)
		r->sum = mix(r->sum, r->scc);
	else
		for (unsigned k = 0; k < o->n; k++)
			r->sum = mix(r->sum, *cell_of(r, o, k));
}

static void write_operand(void *user, const struct rdna_lir_operand *o, bool written)
{
	struct run *r = user;
	for (unsigned k = 0; written && k < o->n; k++) {
		r->sum = mix(r->sum, k + 1);
		*cell_of(r, o, k) = r->sum;
	}
}

/* A plain copy gives just what it reads, so that it may be left out where it changes nothing. */
static bool run_copy(struct run *r, const struct rdna_lir_ins *i)
{
	bool copies = i->op == RDNA_V_MOV_B32 || i->op == RDNA_S_MOV_B32 || i->op == RDNA_S_MOV_B64;
	if (!copies || i->s[0].kind == RDNA_LIR_CONST || i->s[0].mods || i->dpp.kind)
		return false;
	uint64_t value[2];
	for (unsigned k = 0; k < i->d[0].n; k++)
		value[k] = *cell_of(r, &i->s[0], k);
	for (unsigned k = 0; k < i->d[0].n; k++)
		*cell_of(r, &i->d[0], k) = value[k];
	return true;
}

static void run_one(struct run *r, const struct rdna_lir_ins *i)
{
	if (run_copy(r, i))
		return;
	unsigned facts = rdna_lir_facts(i->op);
	const struct rdna_lir_operand vcc = rdna_lir_fixed(RDNA_VCC_LO, 1), scc = rdna_lir_fixed(RDNA_SCC, 1);
	r->sum = mix(mix(i->op, (uint32_t)i->offset), i->exec);
	rdna_lir_visit(i, read_operand, r);
	if (rdna_lir_reads_dst(i))
		read_operand(r, &i->d[0], false);
	if (facts & RDNA_READS_VCC)
		read_operand(r, &vcc, false);
	if (facts & RDNA_READS_SCC)
		read_operand(r, &scc, false);
	if (i->memory == RDNA_MEM_GLOBAL || i->memory == RDNA_MEM_LDS) {
		r->sum = mix(r->sum, r->memory[i->memory]);
		if (i->stores)
			r->memory[i->memory] = r->sum;
	}
	if (facts & RDNA_IS_FIXED)
		r->trace = mix(mix(mix(r->trace, r->sum), r->memory[RDNA_MEM_GLOBAL]), r->memory[RDNA_MEM_LDS]);
	if (facts & RDNA_WRITES_SCC)
		r->scc = mix(r->sum, 77);
	rdna_lir_visit(i, write_operand, r);
}

/* Of a LOOP its ENDLOOP, of an IF its ELSE or ENDIF, of an ELSE its ENDIF. */
static size_t end_of(const struct rdna_lir *l, size_t at)
{
	const bool is_if = l->ins[at].op == RDNA_LIR_IF;

	for (unsigned depth = 1;;) {
		unsigned op = l->ins[++at].op;
		depth += op == RDNA_LIR_LOOP || op == RDNA_LIR_IF;
		depth -= op == RDNA_LIR_ENDLOOP || op == RDNA_LIR_ENDIF;
		if (!depth || (depth == 1 && is_if && op == RDNA_LIR_ELSE))
			return at;
	}
}

static bool run_from(struct run *r, size_t at, size_t to);

/* Counts of any size would take for ever: a register's is 0 to 3. */
static void run_loop(struct run *r, size_t at, size_t end)
{
	const struct rdna_lir_ins *i = &r->l->ins[at];
	uint64_t count = i->s[0].kind == RDNA_LIR_CONST ? i->s[0].value : *cell_of(r, &i->s[0], 0) % 4;

	for (uint64_t k = 0; k < count; k++) {
		if (i->d[0].kind)
			*cell_of(r, &i->d[0], 0) = k;
		r->scc = 0;
		if (run_from(r, at + 1, end))
			return;
	}
}

/* Every other number is a condition that holds. */
static bool holds(struct run *r, const struct rdna_lir_ins *i) { return *cell_of(r, &i->s[0], 0) & 1; }

/* Whether a break left the loop that from..to-1 is in. */
static bool run_from(struct run *r, size_t at, size_t to)
{
	const struct rdna_lir *l = r->l;
	for (; at < to; at++) {
		const struct rdna_lir_ins *i = &l->ins[at];
		size_t end;
		r->scc = rdna_lir_branches(i->op) ? 0 : r->scc;
		switch (i->op) {
		case RDNA_LIR_LOOP:
			run_loop(r, at, end_of(l, at));
			at = end_of(l, at);
			break;
		case RDNA_LIR_IF:
			end = end_of(l, at);
			if (!holds(r, i)) {
				at = end; /* on behind ELSE, or ENDIF */
				break;
			}
			if (run_from(r, at + 1, end))
				return true;
			at = l->ins[end].op == RDNA_LIR_ELSE ? end_of(l, end) : end;
			break;
		case RDNA_LIR_ENDIF: break;
		case RDNA_LIR_BREAK:
			if (holds(r, i))
				return true;
			break;
		default: run_one(r, i); break;
		}
	}
	return false;
}

struct rdna_lir_outcome rdna_lir_run(const struct rdna_lir *l)
{
	struct run r = { .l = l, .first_word = calloc(l->n_regs + 1, sizeof *r.first_word) };
	struct rdna_lir_outcome out = { 0 };
	for (size_t k = 0; k < l->n_regs; k++)
		r.first_word[k + 1] = r.first_word[k] + l->reg[k].n;
	uint32_t words = r.first_word[l->n_regs];
	r.word = calloc(words + 1, sizeof *r.word);
	for (unsigned k = 0; k < 512; k++)
		r.machine[k] = mix(k, 5);
	run_from(&r, 0, l->n_ins);
	out.visible = mix(mix(r.trace, r.memory[RDNA_MEM_GLOBAL]), r.memory[RDNA_MEM_LDS]);
	for (uint32_t k = 0; !l->allocated && k < words; k++)
		out.registers = mix(out.registers, r.word[k]);
	free(r.first_word);
	free(r.word);
	return out;
}

void rdna_lir_copy(struct rdna_lir *to, const struct rdna_lir *from)
{
	*to = *from;
	to->ins = malloc((from->n_ins + 1) * sizeof *to->ins);
	to->reg = malloc((from->n_regs + 1) * sizeof *to->reg);
	to->ins_capacity = from->n_ins + 1;
	to->regs_capacity = from->n_regs + 1;
	memcpy(to->ins, from->ins, from->n_ins * sizeof *to->ins);
	memcpy(to->reg, from->reg, from->n_regs * sizeof *to->reg);
}

/* --- programs */

enum { MAX = 4000 };

struct value {
	uint32_t reg;
	uint8_t sub, n, cls;
	bool variable;
};

struct maker {
	struct rdna_lir *l;
	uint32_t random;
	struct value value[MAX];
	unsigned n_values;               /* whole registers that are written on every path to here */
	unsigned scope[8], depth, loops; /* of blocks that are open */
	uint8_t kind[8];                 /* RDNA_LIR_LOOP, RDNA_LIR_IF, RDNA_LIR_ELSE, less RDNA_OP_COUNT */
};

static uint32_t draw(struct maker *m, uint32_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 17;
	m->random ^= m->random << 5;
	return (m->random >> 8) % below;
}

static void know(struct maker *m, uint32_t reg, bool variable)
{
	if (m->n_values < MAX)
		m->value[m->n_values++] = (struct value){ reg, 0, m->l->reg[reg].n, m->l->reg[reg].cls, variable };
}

/* Some n words of a known register, mostly of a recent one; the first registers made are of every kind. */
static struct rdna_lir_operand some(struct maker *m, unsigned cls, unsigned n)
{
	unsigned window = draw(m, 4) ? 24 : m->n_values;
	for (unsigned tries = 0;; tries++) {
		unsigned back = draw(m, tries > 40 || window > m->n_values ? m->n_values : window);
		const struct value *v = &m->value[m->n_values - 1 - back];
		if (v->cls != cls || v->n < n)
			continue;
		unsigned step = cls == RDNA_CLASS_VGPR || n == 1 ? 1 : n == 2 ? 2 : 4;
		return rdna_lir_words(v->reg, draw(m, (v->n - n) / step + 1) * step, n);
	}
}

static struct rdna_lir_operand any(struct maker *m, unsigned cls)
{
	return draw(m, 5) ? some(m, cls, 1) : rdna_lir_imm(draw(m, 100));
}

/* A destination: a new register, or a variable's words. */
static struct rdna_lir_operand fresh(struct maker *m, unsigned cls, unsigned n)
{
	if (!draw(m, 3))
		for (unsigned tries = 0; tries < 20; tries++) {
			const struct value *v = &m->value[draw(m, m->n_values)];
			if (v->variable && v->cls == cls && v->n == n)
				return rdna_lir_r(m->l, v->reg);
		}
	uint32_t reg = rdna_lir_new(m->l, (enum rdna_class)cls, n);
	return rdna_lir_r(m->l, reg);
}

static void done(struct maker *m, struct rdna_lir_operand d)
{
	for (unsigned k = 0; k < m->n_values; k++)
		if (m->value[k].reg == d.reg)
			return;
	know(m, d.reg, !draw(m, 3));
}

static struct rdna_lir_ins *put(struct maker *m, unsigned op, struct rdna_lir_operand d, struct rdna_lir_operand a,
                                struct rdna_lir_operand b, struct rdna_lir_operand c)
{
	struct rdna_lir_ins *i = rdna_lir_add(m->l, op);
	i->d[0] = d;
	i->s[0] = a;
	i->s[1] = b;
	i->s[2] = c;
	return i;
}

static const struct rdna_lir_operand none;

static void make_vector(struct maker *m)
{
	struct rdna_lir_operand d = fresh(m, RDNA_CLASS_VGPR, 1),
				a = any(m, draw(m, 3) ? RDNA_CLASS_VGPR : RDNA_CLASS_SGPR);
	struct rdna_lir_operand b = some(m, RDNA_CLASS_VGPR, 1), c = some(m, RDNA_CLASS_VGPR, 1);
	switch (draw(m, 6)) {
	case 0: put(m, RDNA_V_MOV_B32, d, a, none, none); break;
	case 1: put(m, RDNA_V_ADD_F32, d, a, b, none); break;
	case 2: put(m, RDNA_V_FMA_F32, d, a, b, c); break;
	case 3: put(m, RDNA_V_RCP_F32, d, a, none, none); break;
	case 4: put(m, RDNA_V_CNDMASK_B32, d, a, b, some(m, RDNA_CLASS_SGPR, 1)); break;
	default: put(m, RDNA_V_FMAC_F32, c, a, b, none); return;
	}
	done(m, d);
}

/* A matrix product adds to its addend in place, or not; it may not read its destination as a factor. */
static void make_wide(struct maker *m)
{
	unsigned n = draw(m, 3) ? 2 : 8;
	struct rdna_lir_operand d = rdna_lir_r(m->l, rdna_lir_new(m->l, RDNA_CLASS_VGPR, n)), a, b, c;
	if (n == 2) {
		put(m, RDNA_V_LSHLREV_B64, d, any(m, RDNA_CLASS_VGPR), some(m, RDNA_CLASS_VGPR, 2), none);
	} else if (m->l->gen == RDNA_GFX11) {
		a = some(m, RDNA_CLASS_VGPR, 4);
		b = some(m, RDNA_CLASS_VGPR, 4);
		c = some(m, RDNA_CLASS_VGPR, 8);
		if (draw(m, 2) && c.reg != a.reg && c.reg != b.reg)
			d = c;
		put(m, RDNA_V_WMMA_I32_16X16X16_IU8, d, a, b, c);
	} else {
		for (unsigned k = 0; k < n; k++)
			put(m, RDNA_V_MOV_B32, rdna_lir_words(d.reg, k, 1), some(m, RDNA_CLASS_VGPR, 1), none, none);
	}
	done(m, d);
}

static void make_division(struct maker *m)
{
	struct rdna_lir_operand d = fresh(m, RDNA_CLASS_VGPR, 1),
				t = rdna_lir_r(m->l, rdna_lir_new(m->l, RDNA_CLASS_VGPR, 1));
	struct rdna_lir_operand a = some(m, RDNA_CLASS_VGPR, 1), b = some(m, RDNA_CLASS_VGPR, 1);
	put(m, RDNA_V_DIV_SCALE_F32, t, a, b, a)->d[1] = rdna_lir_fixed(RDNA_VCC_LO, 1);
	put(m, RDNA_V_DIV_FMAS_F32, d, t, a, b);
	done(m, d);
}

static void make_mask(struct maker *m)
{
	struct rdna_lir_operand d = fresh(m, RDNA_CLASS_SGPR, 1);
	put(m, RDNA_V_CMP_LT_F32, d, any(m, RDNA_CLASS_VGPR), some(m, RDNA_CLASS_VGPR, 1), none);
	done(m, d);
}

/* Sums of 64 bits through scc; selections; what leaves scc behind that nobody reads. */
static void make_scalar(struct maker *m)
{
	struct rdna_lir_operand d;
	switch (draw(m, 4)) {
	case 0:
		d = rdna_lir_r(m->l, rdna_lir_new(m->l, RDNA_CLASS_SGPR, 2));
		put(m, RDNA_S_ADD_CO_U32, rdna_lir_words(d.reg, 0, 1), any(m, RDNA_CLASS_SGPR),
		    some(m, RDNA_CLASS_SGPR, 1), none);
		put(m, RDNA_S_ADD_CO_CI_U32, rdna_lir_words(d.reg, 1, 1), any(m, RDNA_CLASS_SGPR),
		    some(m, RDNA_CLASS_SGPR, 1), none);
		break;
	case 1:
		d = fresh(m, RDNA_CLASS_SGPR, 1);
		put(m, RDNA_S_CMP_LT_I32, none, any(m, RDNA_CLASS_SGPR), some(m, RDNA_CLASS_SGPR, 1), none);
		put(m, RDNA_S_CSELECT_B32, d, some(m, RDNA_CLASS_SGPR, 1), some(m, RDNA_CLASS_SGPR, 1), none);
		break;
	case 2:
		d = fresh(m, RDNA_CLASS_SGPR, 1);
		put(m, RDNA_S_AND_B32, d, any(m, RDNA_CLASS_SGPR), some(m, RDNA_CLASS_SGPR, 1), none);
		break;
	default:
		d = fresh(m, RDNA_CLASS_SGPR, 2);
		put(m, draw(m, 2) ? RDNA_S_MOV_B64 : RDNA_S_NOT_B64, d, some(m, RDNA_CLASS_SGPR, 2), none, none);
	}
	done(m, d);
}

static void make_load(struct maker *m)
{
	static const uint16_t scalar[] = { RDNA_S_LOAD_B32, RDNA_S_LOAD_B64, RDNA_S_LOAD_B128, RDNA_S_LOAD_B256,
		                           RDNA_S_LOAD_B512 };
	static const uint16_t global[] = { RDNA_GLOBAL_LOAD_B32, RDNA_GLOBAL_LOAD_B64, RDNA_GLOBAL_LOAD_B128 };
	static const uint16_t lds[] = { RDNA_DS_LOAD_B32, RDNA_DS_LOAD_B64, RDNA_DS_LOAD_B128 };
	unsigned size = draw(m, 3), kind = draw(m, 3);
	size += kind == 0 && !draw(m, 6) ? 2 : 0;
	struct rdna_lir_operand d = fresh(m, kind ? RDNA_CLASS_VGPR : RDNA_CLASS_SGPR, 1u << size);
	struct rdna_lir_operand address = kind ? some(m, RDNA_CLASS_VGPR, 1) : some(m, RDNA_CLASS_SGPR, 2),
				base = some(m, RDNA_CLASS_SGPR, 2);
	bool known = false;
	for (unsigned k = 0; k < m->n_values; k++)
		known |= m->value[k].reg == d.reg;
	struct rdna_lir_ins *i =
		put(m,
	            kind == 0   ? scalar[size]
	            : kind == 1 ? global[size]
	                        : lds[size],
	            d, address, none, none);
	i->offset = (int32_t)draw(m, 64) * 4;
	if (kind == 1)
		i->saddr = base;
	if (kind && known && draw(m, 2))
		i->exec = 0xff;
	else if (kind && known && draw(m, 2))
		i->s[3] = some(m, RDNA_CLASS_SGPR, 1);
	if (kind < 2 && draw(m, 2))
		i->memory = RDNA_MEM_CONST;
	done(m, d);
}

static void make_store(struct maker *m)
{
	static const uint16_t global[] = { RDNA_GLOBAL_STORE_B32, RDNA_GLOBAL_STORE_B64, RDNA_GLOBAL_STORE_B128 };
	static const uint16_t lds[] = { RDNA_DS_STORE_B32, RDNA_DS_STORE_B64, RDNA_DS_STORE_B128 };
	unsigned size = draw(m, 3);
	bool to_lds = draw(m, 2);
	struct rdna_lir_operand address = some(m, RDNA_CLASS_VGPR, 1), data = some(m, RDNA_CLASS_VGPR, 1u << size),
				base = some(m, RDNA_CLASS_SGPR, 2);
	struct rdna_lir_ins *i = put(m, to_lds ? lds[size] : global[size], none, address, data, none);
	if (!to_lds)
		i->saddr = base;
	i->exec = draw(m, 3) ? 0 : 1;
	if (!i->exec && !draw(m, 3))
		i->s[3] = some(m, RDNA_CLASS_SGPR, 1);
}

static void make_barrier(struct maker *m) { put(m, RDNA_S_BARRIER, none, none, none, none); }

static void enter(struct maker *m, unsigned op)
{
	m->kind[m->depth] = (uint8_t)(op - RDNA_OP_COUNT);
	m->scope[m->depth++] = m->n_values;
}

static void make_loop(struct maker *m)
{
	if (m->depth == 8 || m->loops == 4)
		return;
	struct rdna_lir_operand count = draw(m, 2) ? rdna_lir_imm(draw(m, 4)) : some(m, RDNA_CLASS_SGPR, 1);
	m->loops++;
	enter(m, RDNA_LIR_LOOP);
	struct rdna_lir_operand index = draw(m, 3) ? rdna_lir_r(m->l, rdna_lir_new(m->l, RDNA_CLASS_SGPR, 1)) : none;
	put(m, RDNA_LIR_LOOP, index, count, none, none);
	if (index.kind)
		know(m, index.reg, false);
}

static void make_if(struct maker *m)
{
	if (m->depth == 8)
		return;
	put(m, RDNA_LIR_IF, none, some(m, RDNA_CLASS_SGPR, 1), none, none);
	enter(m, RDNA_LIR_IF);
}

/* A break, or the second part of an if, where either can stand. */
static void make_iteration(struct maker *m)
{
	uint8_t *kind = m->depth ? &m->kind[m->depth - 1] : NULL;
	if (kind && *kind == RDNA_LIR_IF - RDNA_OP_COUNT) {
		put(m, RDNA_LIR_ELSE, none, none, none, none);
		*kind = RDNA_LIR_ELSE - RDNA_OP_COUNT;
		m->n_values = m->scope[m->depth - 1];
	} else if (m->loops) {
		put(m, RDNA_LIR_BREAK, none, some(m, RDNA_CLASS_SGPR, 1), none, none);
	}
}

static void end_block(struct maker *m)
{
	if (!m->depth)
		return;
	bool loop = m->kind[m->depth - 1] == RDNA_LIR_LOOP - RDNA_OP_COUNT;
	put(m, loop ? RDNA_LIR_ENDLOOP : RDNA_LIR_ENDIF, none, none, none, none);
	m->n_values = m->scope[--m->depth];
	m->loops -= loop;
}

static void begin(struct maker *m)
{
	struct rdna_lir_operand pair = rdna_lir_r(m->l, rdna_lir_new(m->l, RDNA_CLASS_SGPR, 2));
	put(m, RDNA_S_LOAD_B64, pair, rdna_lir_fixed(RDNA_ABI_ARG, 2), none, none);
	done(m, pair);
	for (unsigned size = 1; size <= 8; size *= 2) {
		struct rdna_lir_operand d = rdna_lir_r(m->l, rdna_lir_new(m->l, RDNA_CLASS_VGPR, size));
		for (unsigned k = 0; k < size; k++)
			put(m, RDNA_V_MOV_B32, rdna_lir_words(d.reg, k, 1), rdna_lir_imm(size + k), none, none);
		know(m, d.reg, true);
	}
}

/* How often a draw of 43 gives each. */
static const struct {
	unsigned below;
	void (*make)(struct maker *m);
} ways[] = { { 18, make_vector }, { 20, make_wide }, { 22, make_division },  { 24, make_mask },
	     { 30, make_scalar }, { 34, make_load }, { 37, make_store },     { 38, make_barrier },
	     { 39, make_loop },   { 40, make_if },   { 41, make_iteration }, { 43, end_block } };

void rdna_lir_make(struct rdna_lir *l, enum rdna_gen gen, unsigned length, uint32_t seed)
{
	static _Thread_local struct maker m;
	rdna_lir_init(l, gen);
	m = (struct maker){ .l = l, .random = seed * 2654435761u | 1 };
	begin(&m);
	while (l->n_ins < length) {
		unsigned what = draw(&m, 43), k = 0;
		while (what >= ways[k].below)
			k++;
		ways[k].make(&m);
	}
	while (m.depth)
		end_block(&m);
	make_store(&m);
}
