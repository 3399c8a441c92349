/* tests/jit/t_regalloc.c - the register allocator on machine instructions written by hand.
 *
 * What random kernels cannot single out: that nothing is spilled without need, that copies vanish, that constants cost
 * no slot, and that the checker of allocations notices a wrong one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "jit/x86/regalloc.h"

static const uint8_t vec_order[32] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static const uint8_t mask_order[3] = { 1, 2, 3 };
static const uint8_t gpr_order[8] = { X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_RAX, X86_R8, X86_R9, X86_RBX };

static struct lir_ins *add(struct lir *l, enum lir_form form, enum x86_op op, uint32_t dst, uint32_t a, uint32_t b,
                           uint32_t c)
{
	struct lir_ins *i = lir_add(l, form, op);
	i->wd = i->ws = lir_facts[form].dst == LIR_GPR || lir_facts[form].a == LIR_GPR ? X86_GPR64 : X86_YMM;
	i->dst = dst;
	i->a = a;
	i->b = b;
	i->c = c;
	return i;
}

static uint32_t vec(struct lir *l) { return lir_reg(l, LIR_VEC); }

static uint32_t address(struct lir *l)
{
	uint32_t p = lir_reg(l, LIR_GPR);
	add(l, LIR_ENTRY, X86_MOV, p, 0, 0, 0)->imm = X86_RDI;
	return p;
}

static uint32_t load(struct lir *l, uint32_t p, int32_t disp)
{
	uint32_t v = vec(l);
	struct lir_ins *i = add(l, LIR_MOV, X86_VMOVUPS, v, LIR_MEM, 0, 0);
	i->mem = LIR_AT_BASE;
	i->base = p;
	i->disp = disp;
	return v;
}

static void store(struct lir *l, uint32_t p, uint32_t v, int32_t disp)
{
	struct lir_ins *i = add(l, LIR_STORE, X86_VMOVUPS, 0, v, 0, 0);
	i->mem = LIR_AT_BASE;
	i->base = p;
	i->disp = disp;
}

static uint32_t constant(struct lir *l, uint32_t bits)
{
	uint32_t lane[8], v = vec(l);
	for (unsigned k = 0; k < 8; k++)
		lane[k] = bits;
	struct lir_ins *i = add(l, LIR_CONST, X86_VMOVUPS, v, 0, 0, 0);
	i->mem = LIR_AT_POOL;
	i->disp = (int32_t)lir_pool(l, lane);
	return v;
}

/* Opens a counted loop; returns its counter. */
static uint32_t loop(struct lir *l)
{
	uint32_t n = lir_reg(l, LIR_GPR);
	add(l, LIR_SCONST, X86_MOV, n, 0, 0, 0)->imm = 4;
	add(l, LIR_LOOP, X86_TEST, 0, 0, 0, 0);
	return n;
}

static void endloop(struct lir *l, uint32_t n)
{
	add(l, LIR_SOPI, X86_ADD, n, n, 0, 0)->imm = -1;
	add(l, LIR_ENDLOOP, X86_JNE, 0, n, 0, 0);
}

static struct regalloc_result allocate(struct lir *l, unsigned vecs, unsigned gprs)
{
	struct regalloc_rules rules = { .order = { NULL, vec_order, gpr_order, mask_order },
		                        .count = { 0, vecs, gprs, 3 } };
	struct regalloc_result r = { 0 };
	struct error err = { 0 };
	if (!lir_verify(l, &err) || !regalloc(l, &rules, &r, &err) || !lir_verify(l, &err))
		fail_msg("%s", err.text);
	return r;
}

static unsigned count(const struct lir *l, enum lir_form form)
{
	unsigned n = 0;
	for (size_t k = 0; k < l->n_ins; k++)
		n += l->ins[k].form == form;
	return n;
}

/* n accumulators round a loop, each adding a loaded value. */
static void build_accumulators(struct lir *l, unsigned n)
{
	uint32_t acc[32];
	lir_init(l, 8);
	uint32_t p = address(l);
	for (unsigned k = 0; k < n; k++)
		add(l, LIR_IDIOM, X86_VXORPS, acc[k] = vec(l), 0, 0, 0);
	uint32_t c = loop(l), x = load(l, p, 0);
	for (unsigned k = 0; k < n; k++)
		add(l, LIR_FMA, X86_VFMADD231PS, acc[k], x, x, acc[k]);
	endloop(l, c);
	for (unsigned k = 0; k < n; k++)
		store(l, p, acc[k], 32 * (int32_t)k);
}

static void test_full_house_needs_no_spill(void **state)
{
	for (unsigned n = 3; n <= 15; n += 4) {
		struct lir l;
		build_accumulators(&l, n);
		struct regalloc_result r = allocate(&l, n + 1, 4);
		assert_int_equal(r.spills, 0);
		assert_int_equal(r.rounds, 1);
		assert_int_equal(__builtin_popcount(r.used[LIR_VEC]), n + 1);
		lir_free(&l);
		build_accumulators(&l, n + 2);
		r = allocate(&l, n + 1 > 4 ? n + 1 : 4, 4);
		assert_true(r.spills_in_inner_loops > 0 && r.spills > r.spills_in_inner_loops);
		assert_true(l.vec_slots > 0);
		lir_free(&l);
	}
}

/* What is not used in the loop is what goes to memory, outside the loop. */
static void test_spills_leave_the_loop(void **state)
{
	struct lir l;
	uint32_t idle[6], busy[4];
	lir_init(&l, 8);
	uint32_t p = address(&l);
	for (unsigned k = 0; k < 6; k++)
		idle[k] = load(&l, p, 32 * (int32_t)k);
	for (unsigned k = 0; k < 4; k++)
		busy[k] = load(&l, p, 256 + 32 * (int32_t)k);
	uint32_t c = loop(&l);
	for (unsigned k = 0; k < 4; k++)
		add(&l, LIR_OP3C, X86_VADDPS, busy[k], busy[k], busy[(k + 1) % 4], 0);
	endloop(&l, c);
	for (unsigned k = 0; k < 6; k++)
		store(&l, p, idle[k], 32 * (int32_t)k);
	for (unsigned k = 0; k < 4; k++)
		store(&l, p, busy[k], 256 + 32 * (int32_t)k);
	struct regalloc_result r = allocate(&l, 5, 4);
	assert_true(r.spills > 0);
	assert_int_equal(r.spills_in_inner_loops, 0);
	lir_free(&l);
}

static void test_copies_vanish(void **state)
{
	struct lir l;
	lir_init(&l, 8);
	uint32_t p = address(&l), x = load(&l, p, 0), y = load(&l, p, 32), copy = vec(&l), sum = vec(&l);
	add(&l, LIR_MOV, X86_VMOVAPS, copy, x, 0, 0);
	add(&l, LIR_FMA, X86_VFMADD231PS, sum, y, y, copy);
	store(&l, p, sum, 0);
	allocate(&l, 8, 4);
	assert_int_equal(l.phys[copy], l.phys[x]);
	assert_int_equal(l.phys[sum], l.phys[copy]);
	assert_int_equal(l.phys[p], X86_RDI);
	lir_free(&l);
}

/* Too many constants: they become memory operands or are loaded again, no slot is made and nothing is stored. */
static void test_constants_cost_no_slot(void **state)
{
	struct lir l;
	uint32_t k[12], v;
	lir_init(&l, 8);
	uint32_t p = address(&l);
	v = load(&l, p, 0);
	for (unsigned j = 0; j < 12; j++)
		k[j] = constant(&l, 0x3f800000 + j);
	uint32_t c = loop(&l);
	for (unsigned j = 0; j < 12; j++)
		add(&l, LIR_OP3C, X86_VADDPS, v, v, k[j], 0);
	for (unsigned j = 0; j < 12; j++)
		add(&l, LIR_OP3, X86_VSUBPS, v, k[j], v, 0);
	endloop(&l, c);
	store(&l, p, v, 0);
	struct regalloc_result r = allocate(&l, 4, 4);
	assert_int_equal(r.spills, 0);
	assert_int_equal(l.vec_slots, 0);
	assert_int_equal(count(&l, LIR_STORE), 1);
	unsigned in_place = 0;
	for (size_t j = 0; j < l.n_ins; j++)
		in_place += l.ins[j].form == LIR_OP3C && l.ins[j].mem == LIR_AT_POOL;
	assert_true(in_place >= 8);
	lir_free(&l);
}

static void test_gather_registers_differ(void **state)
{
	struct lir l;
	lir_init(&l, 8);
	uint32_t p = address(&l), index = load(&l, p, 0), mask = vec(&l), got = vec(&l);
	add(&l, LIR_IDIOM, X86_VPCMPEQD, mask, 0, 0, 0);
	struct lir_ins *g = add(&l, LIR_GATHER, X86_VPGATHERDD, got, 0, index, mask);
	g->mem = LIR_AT_BASE;
	g->base = p;
	store(&l, p, got, 0);
	allocate(&l, 4, 4);
	assert_true(l.phys[got] != l.phys[index] && l.phys[got] != l.phys[mask] && l.phys[index] != l.phys[mask]);
	lir_free(&l);
}

/* A variable written again before each read is not carried around the loop, one that is read first is. */
static void test_values_around_loops(void **state)
{
	struct lir l;
	lir_init(&l, 8);
	uint32_t p = address(&l), carried = load(&l, p, 0), local = vec(&l);
	uint32_t c = loop(&l);
	add(&l, LIR_OP2, X86_VSQRTPS, local, carried, 0, 0);
	store(&l, p, local, 64);
	uint32_t late = load(&l, p, 96);
	add(&l, LIR_MOV, X86_VMOVAPS, carried, late, 0, 0);
	endloop(&l, c);
	struct regalloc_result r = allocate(&l, 4, 4);
	assert_int_equal(r.spills, 0);
	assert_true(l.phys[carried] != l.phys[local] && l.phys[carried] != l.phys[late]);
	assert_int_equal(l.phys[local], l.phys[late]);
	lir_free(&l);
}

/* A write in a loop that may not run does not end the need for the value before it. */
static void test_unsure_writes(void **state)
{
	struct lir l;
	lir_init(&l, 8);
	uint32_t p = address(&l), carried = load(&l, p, 0), outer = loop(&l), inner = loop(&l), fresh = load(&l, p, 32);
	add(&l, LIR_OP2, X86_VSQRTPS, carried, fresh, 0, 0);
	endloop(&l, inner);
	store(&l, p, carried, 64);
	uint32_t late = load(&l, p, 96);
	store(&l, p, late, 128);
	endloop(&l, outer);
	allocate(&l, 4, 4);
	assert_true(l.phys[carried] != l.phys[late]);
	lir_free(&l);
}

static void test_checker_notices(void **state)
{
	struct error err = { 0 };
	struct lir l;
	build_accumulators(&l, 6);
	allocate(&l, 8, 4);
	uint32_t first = l.ins[1].dst, second = l.ins[2].dst;
	l.phys[second] = l.phys[first];
	assert_false(lir_verify(&l, &err));
	assert_non_null(strstr(err.text, "another value"));
	lir_free(&l);

	/* A value dead after its use in the first pass would be missing in the second. */
	err = (struct error){ 0 };
	lir_init(&l, 8);
	uint32_t p = address(&l), before = load(&l, p, 0), c = loop(&l);
	store(&l, p, before, 32);
	uint32_t temporary = load(&l, p, 64);
	store(&l, p, temporary, 96);
	endloop(&l, c);
	allocate(&l, 4, 4);
	assert_true(lir_verify(&l, &err));
	l.phys[temporary] = l.phys[before];
	assert_false(lir_verify(&l, &err));
	lir_free(&l);

	err = (struct error){ 0 };
	lir_init(&l, 8);
	uint32_t q = address(&l), n = loop(&l), inside = load(&l, q, 0);
	endloop(&l, n);
	store(&l, q, inside, 0);
	assert_false(lir_verify(&l, &err));
	assert_non_null(strstr(err.text, "before it is written"));
	lir_free(&l);
}

/* Appends a branch that goes by p where it goes by anything. */
static void branch(struct lir *l, enum lir_form form, uint32_t p)
{
	add(l, form, X86_JE, 0, form == LIR_IF || form == LIR_BREAK ? p : 0, 0, 0);
}

/* A write in one part of an if does not end the need for the value before it; what one part makes may take the place
 * of what the other one has made. */
static void test_ifs(void **state)
{
	struct lir l;
	lir_init(&l, 8);
	uint32_t p = address(&l), carried = load(&l, p, 0), outer = loop(&l);
	branch(&l, LIR_IF, p);
	uint32_t fresh = load(&l, p, 32);
	add(&l, LIR_OP2, X86_VSQRTPS, carried, fresh, 0, 0);
	branch(&l, LIR_ELSE, p);
	uint32_t other = load(&l, p, 64);
	store(&l, p, other, 64);
	branch(&l, LIR_ENDIF, p);
	store(&l, p, carried, 96);
	branch(&l, LIR_BREAK, p);
	uint32_t late = load(&l, p, 96);
	store(&l, p, late, 128);
	endloop(&l, outer);
	store(&l, p, carried, 160);
	struct regalloc_result r = allocate(&l, 4, 4);
	assert_int_equal(r.spills, 0);
	assert_true(l.phys[carried] != l.phys[late] && l.phys[carried] != l.phys[fresh] &&
	            l.phys[carried] != l.phys[other]);
	assert_int_equal(l.phys[fresh], l.phys[other]);
	struct error err = { 0 };
	l.phys[other] = l.phys[carried]; /* on one way to where it is read */
	assert_false(lir_verify(&l, &err));
	assert_non_null(strstr(err.text, "another value"));
	lir_free(&l);
}

/* What the first part writes is not what the second one reads, which goes round the loop. */
static void test_parts_apart(void **state)
{
	struct lir l;
	lir_init(&l, 8);
	uint32_t p = address(&l), carried = load(&l, p, 0), outer = loop(&l);
	branch(&l, LIR_IF, p);
	uint32_t fresh = load(&l, p, 32);
	add(&l, LIR_OP2, X86_VSQRTPS, carried, fresh, 0, 0);
	branch(&l, LIR_ELSE, p);
	store(&l, p, carried, 96);
	branch(&l, LIR_ENDIF, p);
	uint32_t late = load(&l, p, 96);
	store(&l, p, late, 128);
	endloop(&l, outer);
	allocate(&l, 4, 4);
	assert_true(l.phys[carried] != l.phys[late]);
	lir_free(&l);
}

static void refuse_branches(const enum lir_form *form, const char *what)
{
	struct error err = { 0 };
	struct lir l;
	lir_init(&l, 8);
	uint32_t p = address(&l);
	for (unsigned k = 0; form[k]; k++)
		if (form[k] == LIR_LOOP)
			loop(&l);
		else
			add(&l, form[k], X86_JE, 0, form[k] == LIR_ELSE || form[k] == LIR_ENDIF ? 0 : p, 0, 0);
	assert_false(lir_verify(&l, &err));
	if (!strstr(err.text, what))
		fail_msg("found: %s, expected: %s", err.text, what);
	lir_free(&l);
}

static void test_broken_nesting(void **state)
{
	refuse_branches((const enum lir_form[]){ LIR_ELSE, 0 }, "an if that is not open");
	refuse_branches((const enum lir_form[]){ LIR_ENDIF, 0 }, "end of an if that is not open");
	refuse_branches((const enum lir_form[]){ LIR_IF, LIR_ELSE, LIR_ELSE, 0 }, "an if that is not open");
	refuse_branches((const enum lir_form[]){ LIR_IF, LIR_ENDLOOP, 0 }, "end of a loop that is not open");
	refuse_branches((const enum lir_form[]){ LIR_LOOP, LIR_ENDIF, 0 }, "end of an if that is not open");
	refuse_branches((const enum lir_form[]){ LIR_IF, LIR_BREAK, LIR_ENDIF, 0 }, "a break outside of loops");
	refuse_branches((const enum lir_form[]){ LIR_LOOP, LIR_IF, 0 }, "a loop or an if stays open");
}

static void test_general_registers(void **state)
{
	struct lir l;
	uint32_t s[10];
	lir_init(&l, 8);
	uint32_t p = address(&l), sum = lir_reg(&l, LIR_GPR);
	for (unsigned k = 0; k < 10; k++) {
		struct lir_ins *i = add(&l, LIR_SMOV, X86_MOV, s[k] = lir_reg(&l, LIR_GPR), LIR_MEM, 0, 0);
		i->mem = LIR_AT_BASE;
		i->base = p;
		i->disp = 8 * (int32_t)k;
	}
	add(&l, LIR_SCONST, X86_MOV, sum, 0, 0, 0);
	uint32_t c = loop(&l);
	for (unsigned k = 0; k < 10; k++)
		add(&l, LIR_SOPC, X86_ADD, sum, sum, s[k], 0);
	endloop(&l, c);
	struct lir_ins *i = add(&l, LIR_SSTORE, X86_MOV, 0, sum, 0, 0);
	i->mem = LIR_AT_BASE;
	i->base = p;
	struct regalloc_result r = allocate(&l, 4, 4);
	assert_true(l.gpr_slots > 0 && r.spills_in_inner_loops > 0);
	assert_int_equal(l.vec_slots, 0);
	assert_true(__builtin_popcount(r.used[LIR_GPR]) <= 4);
	lir_free(&l);
}

/* A sum of products may take the register of what it adds to, never that of a factor. */
static void test_dot_registers_differ(void **state)
{
	for (unsigned alive = 0; alive < 2; alive++) {
		struct lir l;
		lir_init(&l, 16);
		uint32_t p = address(&l), a = load(&l, p, 0), b = load(&l, p, 64), c = load(&l, p, 128), sum = vec(&l);
		add(&l, LIR_DOT, X86_VPDPBUSD, sum, a, b, c);
		store(&l, p, sum, 0);
		if (alive)
			store(&l, p, c, 64);
		struct regalloc_result r = allocate(&l, 4, 4);
		assert_int_equal(r.spills, 0);
		assert_true(l.phys[sum] != l.phys[a] && l.phys[sum] != l.phys[b]);
		assert_int_equal(l.phys[sum] == l.phys[c], !alive);
		struct error err = { 0 };
		l.phys[sum] = l.phys[a];
		assert_false(lir_verify(&l, &err));
		assert_non_null(strstr(err.text, "must differ"));
		lir_free(&l);
	}
}

/* Masks have registers of their own, are saved whole when those run out, and constant ones are made again. */
static void test_masks(void **state)
{
	struct lir l;
	uint32_t mask[5];
	lir_init(&l, 16);
	uint32_t p = address(&l), x = load(&l, p, 0), y = load(&l, p, 64), all = lir_reg(&l, LIR_MASK);
	add(&l, LIR_MIDIOM, X86_KXNORW, all, 0, 0, 0);
	for (unsigned k = 0; k < 5; k++)
		add(&l, LIR_MCMPI, X86_VCMPPS, mask[k] = lir_reg(&l, LIR_MASK), x, y, 0)->imm = k;
	for (unsigned k = 0; k < 5; k++) {
		uint32_t both = lir_reg(&l, LIR_MASK), z = vec(&l);
		add(&l, LIR_MOP, X86_KANDW, both, mask[k], all, 0);
		add(&l, LIR_MBLEND, X86_VBLENDMPS, z, x, y, both);
		store(&l, p, z, 64 * (int32_t)k);
	}
	struct regalloc_result r = allocate(&l, 4, 4);
	assert_true(r.spills > 0 && l.gpr_slots > 0);
	assert_int_equal(l.vec_slots, 0);
	assert_true((r.used[LIR_MASK] & ~0xeu) == 0);
	assert_true(count(&l, LIR_MSAVE) > 0 && count(&l, LIR_MMOV) > 0 && count(&l, LIR_MIDIOM) > 1);
	lir_free(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_house_needs_no_spill),
		cmocka_unit_test(test_spills_leave_the_loop),
		cmocka_unit_test(test_copies_vanish),
		cmocka_unit_test(test_constants_cost_no_slot),
		cmocka_unit_test(test_gather_registers_differ),
		cmocka_unit_test(test_values_around_loops),
		cmocka_unit_test(test_unsure_writes),
		cmocka_unit_test(test_checker_notices),
		cmocka_unit_test(test_ifs),
		cmocka_unit_test(test_parts_apart),
		cmocka_unit_test(test_broken_nesting),
		cmocka_unit_test(test_general_registers),
		cmocka_unit_test(test_dot_registers_differ),
		cmocka_unit_test(test_masks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
