/* encoders/x86.c - the encoder's interface: operands, labels, the growing buffer.
 *
 * Owns: the buffer, and where labels are. Never lays out bytes (x86_form.c), never knows an instruction by name
 * (x86.def), never chooses one (x86_match.c).
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/x86_form.h"

/* --- operands */

static struct x86_operand x86_register(int cls, int reg)
{
	return (struct x86_operand){ .cls = (uint8_t)cls,
		                     .reg = reg >= 0 && reg < 0xff ? (uint8_t)reg : 0xff,
		                     .index = X86_NO_INDEX,
		                     .label = X86_NO_LABEL };
}

struct x86_operand x86_r32(int reg) { return x86_register(X86_GPR32, reg); }
struct x86_operand x86_r64(int reg) { return x86_register(X86_GPR64, reg); }
struct x86_operand x86_xmm(int reg) { return x86_register(X86_XMM, reg); }
struct x86_operand x86_ymm(int reg) { return x86_register(X86_YMM, reg); }
struct x86_operand x86_zmm(int reg) { return x86_register(X86_ZMM, reg); }
struct x86_operand x86_k(int reg) { return x86_register(X86_KREG, reg); }
struct x86_operand x86_tmm(int reg) { return x86_register(X86_TMM, reg); }

struct x86_operand x86_imm(int64_t v)
{
	return (struct x86_operand){ .cls = X86_IMM, .imm = v, .index = X86_NO_INDEX, .label = X86_NO_LABEL };
}

struct x86_operand x86_mem_index(int base, int index, int scale, int32_t disp)
{
	struct x86_operand o = x86_register(X86_MEM, base);

	o.index = index >= 0 && index < 0xff ? (uint8_t)index : X86_NO_INDEX;
	o.scale = scale >= 0 && scale <= 8 ? (uint8_t)scale : 0xff;
	o.disp = disp;
	return o;
}

struct x86_operand x86_mem(int base, int32_t disp) { return x86_mem_index(base, X86_NO_INDEX, 1, disp); }

struct x86_operand x86_mem_label(int label, int32_t disp)
{
	struct x86_operand o = x86_mem_index(X86_NO_BASE, X86_NO_INDEX, 1, disp);

	o.label = label;
	return o;
}

struct x86_operand x86_mem_broadcast(struct x86_operand mem)
{
	mem.broadcast = true;
	return mem;
}

/* --- the buffer */

struct x86_fixup {
	size_t at;  /* where the 4 bytes lie */
	size_t end; /* the distance counts from here: the end of the instruction */
	int32_t label, addend;
	enum x86_op op;
};

static void x86_fail(struct x86 *x, enum x86_op op, const char *why)
{
	if (x->error)
		return;
	x->error = why;
	x->error_op = op;
}

/* Makes *p hold at least n elements of the given size; false (and the error) when memory is out. */
static bool x86_grow(struct x86 *x, void **p, size_t have, size_t need, size_t size)
{
	size_t capacity = have ? have : 64;

	if (need <= have)
		return true;
	while (capacity < need)
		capacity *= 2;
	void *q = realloc(*p, capacity * size);
	if (!q) {
		x86_fail(x, X86_OP_COUNT, "out of memory");
		return false;
	}
	*p = q;
	return true;
}

/* Arrays of labels and fixups grow at powers of two from 64, so their capacity follows from their length. */
static bool x86_grow_one(struct x86 *x, void **p, size_t n, size_t size)
{
	if (n != 0 && (n < 64 || (n & (n - 1)) != 0))
		return true;
	return x86_grow(x, p, n, n + 1, size);
}

void x86_init(struct x86 *x) { memset(x, 0, sizeof *x); }

void x86_free(struct x86 *x)
{
	free(x->code);
	free(x->label);
	free(x->fixup);
	memset(x, 0, sizeof *x);
}

void x86_bytes(struct x86 *x, const void *p, size_t n)
{
	if (x->error || n == 0)
		return;
	if (n > (size_t)INT32_MAX - x->size) {
		x86_fail(x, X86_OP_COUNT, "the code must stay below 2 GiB");
		return;
	}
	void *code = x->code;
	if (!x86_grow(x, &code, x->capacity, x->size + n, 1))
		return;
	x->code = code;
	while (x->capacity < x->size + n)
		x->capacity = x->capacity ? x->capacity * 2 : 64;
	memcpy(x->code + x->size, p, n);
	x->size += n;
}

static void x86_add_fixup(struct x86 *x, enum x86_op op, const struct x86_code *code)
{
	void *fixup = x->fixup;

	if (code->label < 0 || (size_t)code->label >= x->n_labels) {
		x86_fail(x, op, "a label must come from x86_label");
		return;
	}
	if (!x86_grow_one(x, &fixup, x->n_fixups, sizeof *x->fixup))
		return;
	x->fixup = fixup;
	x->fixup[x->n_fixups++] = (struct x86_fixup){ x->size + (size_t)code->label_at, x->size + code->n, code->label,
		                                      code->addend, op };
}

void x86_ins(struct x86 *x, enum x86_op op, struct x86_operand a, struct x86_operand b, struct x86_operand c,
             struct x86_operand d)
{
	struct x86_operand o[4] = { a, b, c, d };
	struct x86_match m;
	struct x86_code code;
	const char *why;

	if (x->error)
		return;
	if ((unsigned)op >= X86_OP_COUNT) {
		x86_fail(x, X86_OP_COUNT, "the instruction is not in the table");
		return;
	}
	why = x86_match(x, op, o, &m);
	x->mask = 0;
	x->zeroing = false;
	if (why) {
		x86_fail(x, op, why);
		return;
	}
	x86_form_encode(&m, &code);
	if (code.label_at >= 0)
		x86_add_fixup(x, op, &code);
	x86_bytes(x, code.byte, code.n);
}

int x86_label(struct x86 *x)
{
	void *label = x->label;

	if (x->error || !x86_grow_one(x, &label, x->n_labels, sizeof *x->label))
		return 0;
	x->label = label;
	x->label[x->n_labels] = -1;
	return (int)x->n_labels++;
}

void x86_bind(struct x86 *x, int label)
{
	if (x->error)
		return;
	if (label < 0 || (size_t)label >= x->n_labels)
		x86_fail(x, X86_OP_COUNT, "a label must come from x86_label");
	else if (x->label[label] >= 0)
		x86_fail(x, X86_OP_COUNT, "a label can be bound only once");
	else
		x->label[label] = (int32_t)x->size;
}

void x86_align(struct x86 *x, unsigned bytes)
{
	/* the recommended multi-byte NOPs: nopw and nopl with longer and longer addresses */
	static const uint8_t nop[9][9] = {
		{ 0x90 },
		{ 0x66, 0x90 },
		{ 0x0f, 0x1f, 0x00 },
		{ 0x0f, 0x1f, 0x40, 0x00 },
		{ 0x0f, 0x1f, 0x44, 0x00, 0x00 },
		{ 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
		{ 0x0f, 0x1f, 0x80, 0, 0, 0, 0 },
		{ 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 },
		{ 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 }
	};

	if (bytes == 0 || (bytes & (bytes - 1)) != 0) {
		x86_fail(x, X86_OP_COUNT, "an alignment must be a power of two");
		return;
	}
	while (!x->error && x->size % bytes) {
		size_t gap = bytes - x->size % bytes, n = gap < 9 ? gap : 9;
		x86_bytes(x, nop[n - 1], n);
	}
}

bool x86_finish(struct x86 *x)
{
	for (size_t i = 0; i < x->n_fixups && !x->error; i++) {
		const struct x86_fixup *f = &x->fixup[i];
		if (x->label[f->label] < 0) {
			x86_fail(x, f->op, "a label is used but never bound");
			break;
		}
		int64_t distance = (int64_t)x->label[f->label] + f->addend - (int64_t)f->end;
		if (distance < INT32_MIN || distance > INT32_MAX) {
			x86_fail(x, f->op, "a label must lie within 2 GiB");
			break;
		}
		for (unsigned k = 0; k < 4; k++)
			x->code[f->at + k] = (uint8_t)((uint64_t)distance >> 8 * k);
	}
	x->n_fixups = 0;
	return !x->error;
}
