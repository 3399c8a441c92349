/* encoders/rdna.c - the RDNA encoder's interface: the table, the growing buffer, labels.
 *
 * Owns: names and generations, and where bytes go. Never judges an operand (rdna_check.c), never lays out bits
 * (rdna_form.c, rdna_plain.c), never knows an instruction by name (rdna.def).
 */
#include "encoders/rdna_form.h"

#include <stdlib.h>

#define F(mask) (RDNA_F_NEG(mask) | RDNA_F_ABS(mask))
#define N(mask) RDNA_F_NEG(mask)
#define SEL(mask) RDNA_F_SEL(mask)
#define CLAMP RDNA_F_CLAMP
#define OMOD RDNA_F_OMOD
#define DPP RDNA_F_DPP
#define SHORT RDNA_F_SHORT
#define MIX RDNA_F_MIX
#define READS_VCC RDNA_F_READS_VCC
#define BUS_1 RDNA_F_BUS_1
#define TWO RDNA_F_TWO
#define FROM_11_5 RDNA_F_FROM_11_5
#define NO RDNA_NO_OPCODE

const struct rdna_row rdna_rows[RDNA_OP_COUNT] = {
#define RDNA(id, enc, names, sig, facts, op10, op11, op12) { names, sig, facts, { op10, op11, op12 }, RDNA_E_##enc },
#define RDNA_DUAL(...)
#include "encoders/rdna.def"
#undef RDNA
#undef RDNA_DUAL
};

#define RDNA(...)
#define RDNA_DUAL(id, opcode, second_only) [RDNA_##id] = true,
const bool rdna_dual_rows[RDNA_OP_COUNT] = {
#include "encoders/rdna.def"
};
#undef RDNA_DUAL
#define RDNA_DUAL(id, opcode, second_only) [RDNA_##id] = { second_only, opcode },
/* By instruction: its opcode as half of a dual one. */
static const struct {
	bool second_only;
	uint8_t opcode;
} rdna_duals[RDNA_OP_COUNT] = {
#include "encoders/rdna.def"
};
#undef RDNA
#undef RDNA_DUAL

/* A place that waits for a label: a branch's 16 bits, or a literal that is the distance of two labels. */
struct rdna_fixup {
	size_t at;
	int32_t to, from;
	enum rdna_op op;
};

enum rdna_gen rdna_gen_of(const char *target)
{
	static const struct {
		char name[8];
		uint8_t gen;
	} targets[] = { { "gfx1030", RDNA_GFX10_3 }, { "gfx1031", RDNA_GFX10_3 }, { "gfx1032", RDNA_GFX10_3 },
		        { "gfx1033", RDNA_GFX10_3 }, { "gfx1034", RDNA_GFX10_3 }, { "gfx1035", RDNA_GFX10_3 },
		        { "gfx1036", RDNA_GFX10_3 }, { "gfx1100", RDNA_GFX11 },   { "gfx1101", RDNA_GFX11 },
		        { "gfx1102", RDNA_GFX11 },   { "gfx1103", RDNA_GFX11 },   { "gfx1150", RDNA_GFX11_5 },
		        { "gfx1151", RDNA_GFX11_5 }, { "gfx1200", RDNA_GFX12 },   { "gfx1201", RDNA_GFX12 } };

	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
		if (strcmp(target, targets[i].name) == 0)
			return targets[i].gen;
	return RDNA_GEN_COUNT;
}

unsigned rdna_opcode(enum rdna_op op, enum rdna_gen gen)
{
	const struct rdna_row *row = &rdna_rows[op];

	if (gen == RDNA_GFX11 && (row->facts & RDNA_F_FROM_11_5))
		return RDNA_NO_OPCODE;
	return row->opcode[gen == RDNA_GFX10_3 ? 0 : gen == RDNA_GFX12 ? 2 : 1];
}

bool rdna_has(enum rdna_op op, enum rdna_gen gen)
{
	return op < RDNA_OP_COUNT && gen < RDNA_GEN_COUNT && rdna_opcode(op, gen) != RDNA_NO_OPCODE;
}

/* The names of one row follow one another after slashes; a static table would say each twice, so they are cut out on
 * demand. */
const char *rdna_op_name(enum rdna_op op, enum rdna_gen gen)
{
	static _Thread_local char name[64];
	unsigned skip = gen == RDNA_GFX10_3 ? 0 : gen == RDNA_GFX12 ? 2 : 1;

	if (op >= RDNA_OP_COUNT)
		return "none";
	const char *p = rdna_rows[op].names, *slash;
	while (skip-- && (slash = strchr(p, '/')))
		p = slash + 1;
	size_t n = strcspn(p, "/");
	memcpy(name, p, n);
	name[n] = 0;
	return name;
}

int rdna_dual_opcode(enum rdna_op op, enum rdna_gen gen, bool *second_only)
{
	if (op >= RDNA_OP_COUNT || !rdna_dual_rows[op] || gen == RDNA_GFX10_3 || !rdna_has(op, gen))
		return -1;
	if (second_only)
		*second_only = rdna_duals[op].second_only;
	return rdna_duals[op].opcode;
}

uint16_t rdna_waitcnt(enum rdna_gen gen, int vm, int exp, int lgkm)
{
	unsigned v = vm < 0 || vm > 63 ? 63 : (unsigned)vm, e = exp < 0 || exp > 7 ? 7 : (unsigned)exp;
	unsigned l = lgkm < 0 || lgkm > 63 ? 63 : (unsigned)lgkm;

	if (gen == RDNA_GFX10_3)
		return (uint16_t)((v & 15) | e << 4 | l << 8 | (v >> 4) << 14);
	return (uint16_t)(e | l << 4 | v << 10);
}

/* --- the buffer */

static void rdna_fail(struct rdna *r, enum rdna_op op, const char *why)
{
	if (r->error)
		return;
	r->error = why;
	r->error_op = op;
}

void rdna_init(struct rdna *r, enum rdna_gen gen)
{
	*r = (struct rdna){ .gen = gen, .error_op = RDNA_OP_COUNT };
	if (gen >= RDNA_GEN_COUNT)
		rdna_fail(r, RDNA_OP_COUNT, "the generation is not one of enum rdna_gen");
}

void rdna_free(struct rdna *r)
{
	free(r->code);
	free(r->label);
	free(r->fixup);
	*r = (struct rdna){ .error = "the encoder has been freed", .error_op = RDNA_OP_COUNT };
}

/* Room for n more elements; the arrays double, so their sizes are read off their counts. */
static bool rdna_grow(struct rdna *r, void **array, size_t count, size_t element)
{
	if (count & (count - 1) || (count && count < 16))
		return true;
	if (count == 0 && *array)
		return true;
	void *p = realloc(*array, (count ? 2 * count : 16) * element);
	if (!p) {
		rdna_fail(r, RDNA_OP_COUNT, "there is not enough memory for the code");
		return false;
	}
	*array = p;
	return true;
}

static void rdna_widen(struct rdna *r, size_t n)
{
	size_t capacity = 2 * r->capacity + n + 4096;
	uint8_t *code = realloc(r->code, capacity);

	if (!code) {
		rdna_fail(r, RDNA_OP_COUNT, "there is not enough memory for the code");
		return;
	}
	r->code = code;
	r->capacity = capacity;
}

/* Where the next n bytes go; NULL: there is an error. */
static inline uint8_t *rdna_room(struct rdna *r, size_t n)
{
	if (r->capacity - r->size < n && !r->error)
		rdna_widen(r, n);
	if (r->error)
		return NULL;
	r->size += n;
	return r->code + r->size - n;
}

void rdna_bytes(struct rdna *r, const void *p, size_t n)
{
	uint8_t *to = n ? rdna_room(r, n) : NULL;

	if (to)
		memcpy(to, p, n);
}

static void rdna_words(struct rdna *r, const uint32_t *w, unsigned n)
{
	uint8_t *b = rdna_room(r, 4 * n);

	for (unsigned i = 0; b && i < n; i++, b += 4) {
		uint32_t word = w[i]; /* a byte stored may be one of w's, for all that compilers know */
		b[0] = (uint8_t)word;
		b[1] = (uint8_t)(word >> 8);
		b[2] = (uint8_t)(word >> 16);
		b[3] = (uint8_t)(word >> 24);
	}
}

static void rdna_add_fixup(struct rdna *r, size_t at, int32_t to, int32_t from, enum rdna_op op)
{
	if (to < 0 || (size_t)to >= r->n_labels || (from >= 0 && (size_t)from >= r->n_labels)) {
		rdna_fail(r, op, "a label must come from rdna_label");
		return;
	}
	if (!rdna_grow(r, (void **)&r->fixup, r->n_fixups, sizeof *r->fixup))
		return;
	r->fixup[r->n_fixups++] = (struct rdna_fixup){ at, to, from, op };
}

/* --- instructions */

static const char *rdna_match(enum rdna_gen gen, const struct rdna_ins *ins, struct rdna_match *m)
{
	static const struct rdna_match nothing = {
		.branch = -1
	}; /* copied in vectors, where a loop of stores would take longer than the check */

	if (ins->op >= RDNA_OP_COUNT)
		return "the instruction is not in the table";
	*m = nothing;
	m->row = &rdna_rows[ins->op];
	m->ins = ins;
	m->gen = gen;
	m->op = ins->op;
	m->opcode = rdna_opcode(ins->op, gen);
	if (m->opcode == RDNA_NO_OPCODE)
		return "the generation lacks the instruction";
	return rdna_check(m);
}

void rdna_put_imm(struct rdna *r, enum rdna_op op, int64_t v)
{
	uint32_t word = r->error ? 0 : rdna_encode_immediate(op, r->gen, v);

	if (word)
		rdna_words(r, &word, 1);
	else
		rdna_put(r, &(struct rdna_ins){ .op = op, .s = { rdna_imm(v) } });
}

void rdna_put_checked(struct rdna *r, const struct rdna_ins *ins)
{
	struct rdna_match m;
	uint32_t w[4];

	if (r->error)
		return;
	const char *why = rdna_match(r->gen, ins, &m);
	if (why) {
		rdna_fail(r, ins->op, why);
		return;
	}
	unsigned n = rdna_encode(&m, w);
	size_t at = r->size;
	rdna_words(r, w, n);
	if (m.branch >= 0)
		rdna_add_fixup(r, at, m.branch, -1, ins->op);
	if (m.distance)
		rdna_add_fixup(r, at + 4 * (n - 1), m.to, m.from, ins->op);
}

bool rdna_put_plain(struct rdna *r, enum rdna_op op, const struct rdna_plain *p)
{
	uint32_t w[4];
	unsigned n = r->error ? 0 : rdna_encode_plain(op, r->gen, p, w);

	if (n)
		rdna_words(r, w, n);
	return n;
}

void rdna_put(struct rdna *r, const struct rdna_ins *ins)
{
	struct rdna_plain p;

	if (!rdna_plain_of(&p, ins) || !rdna_put_plain(r, ins->op, &p))
		rdna_put_checked(r, ins);
}

static void rdna_name_half(struct rdna_half *h, enum rdna_op op)
{
	bool second_only = false;
	int opcode = rdna_dual_opcode(op, h->gen, &second_only);

	h->second_only = second_only;
	h->opcode = (uint8_t)opcode;
	if (opcode < 0)
		h->error = "the instruction cannot be half of a dual instruction";
}

void rdna_half_of(struct rdna_half *h, enum rdna_gen gen, const struct rdna_ins *ins)
{
	struct rdna_plain p;
	struct rdna_match m;
	const char *why;

	if (rdna_plain_of(&p, ins) && rdna_plain_half(h, ins->op, gen, &p))
		return;
	if ((why = rdna_match(gen, ins, &m))) {
		*h = (struct rdna_half){ .error = why };
		return;
	}
	rdna_find_half(h, &m);
	rdna_name_half(h, ins->op);
}

const char *rdna_halves_refused(const struct rdna_half *x, const struct rdna_half *y)
{
	if (x->error || y->error)
		return x->error ? x->error : y->error;
	if (x->second_only)
		return "the instruction can only be the second half of a dual instruction";
	return rdna_check_dual(x, y);
}

bool rdna_put_halves(struct rdna *r, const struct rdna_half *x, const struct rdna_half *y)
{
	uint32_t w[4];

	if (r->error || rdna_halves_refused(x, y))
		return false;
	rdna_words(r, w, rdna_encode_dual(x, y, w));
	return true;
}

void rdna_put_dual(struct rdna *r, const struct rdna_ins *x, const struct rdna_ins *y)
{
	struct rdna_half hx, hy;

	if (r->error)
		return;
	rdna_half_of(&hx, r->gen, x);
	rdna_half_of(&hy, r->gen, y);
	if (!rdna_put_halves(r, &hx, &hy))
		rdna_fail(r, hx.error || hx.second_only ? x->op : y->op, rdna_halves_refused(&hx, &hy));
}

/* --- labels */

int rdna_label(struct rdna *r)
{
	if (r->error || !rdna_grow(r, (void **)&r->label, r->n_labels, sizeof *r->label))
		return -1;
	r->label[r->n_labels] = -1;
	return (int)r->n_labels++;
}

void rdna_bind(struct rdna *r, int label)
{
	if (r->error)
		return;
	if (label < 0 || (size_t)label >= r->n_labels)
		rdna_fail(r, RDNA_OP_COUNT, "a label must come from rdna_label");
	else if (r->label[label] >= 0)
		rdna_fail(r, RDNA_OP_COUNT, "a label can be bound only once");
	else
		r->label[label] = (int64_t)r->size;
}

void rdna_align(struct rdna *r, unsigned bytes)
{
	if (bytes < 4 || bytes & (bytes - 1))
		rdna_fail(r, RDNA_OP_COUNT, "an alignment must be a power of two, 4 at least");
	while (!r->error && r->size % 4)
		rdna_bytes(r, "", 1);
	while (!r->error && r->size % bytes)
		rdna_put0(r, RDNA_S_CODE_END);
}

static void rdna_resolve(struct rdna *r, const struct rdna_fixup *f)
{
	int64_t to = r->label[f->to], from = f->from < 0 ? (int64_t)f->at + 4 : r->label[f->from];
	int64_t distance = to - from;
	unsigned bytes = f->from < 0 ? 2 : 4;

	if (to < 0 || from < 0) {
		rdna_fail(r, f->op, "a label is used but never bound");
		return;
	}
	if (f->from < 0) {
		if (distance % 4) {
			rdna_fail(r, f->op, "a branch's target must be a multiple of 4 bytes away");
			return;
		}
		distance /= 4;
		if (distance < INT16_MIN || distance > INT16_MAX) {
			rdna_fail(r, f->op, "a branch's target must be within 32768 words");
			return;
		}
	}
	for (unsigned i = 0; i < bytes; i++)
		r->code[f->at + i] = (uint8_t)((uint64_t)distance >> 8 * i);
}

bool rdna_finish(struct rdna *r)
{
	for (size_t i = 0; i < r->n_fixups && !r->error; i++)
		rdna_resolve(r, &r->fixup[i]);
	r->n_fixups = 0;
	return !r->error;
}
