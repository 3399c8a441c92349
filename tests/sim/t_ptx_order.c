/* tests/sim/t_ptx_order.c - blocks of one launch that touch the same memory: what nothing orders traps by every seed,
 * and what is ordered, or relaxed on both sides, runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/ptx.h"

enum { WORDS = 256, SEEDS = 60 };

/* The word of each of a block's 64 threads; the counter behind them. */
#define PUT "st.global.b32 [%d1], %r0;\n"
#define PUT_RELAXED "st.relaxed.gpu.global.b32 [%d1], %r0;\n"
#define GET "ld.global.b32 %r2, [%d1];\n"
#define GET_RELAXED "ld.relaxed.gpu.global.b32 %r2, [%d1];\n"
#define ALL "bar.sync 0;\n"
#define FENCE "@%p0 fence.acq_rel.gpu;\n"
#define ADD(order) "@%p0 red." order ".gpu.global.add.u32 [%d0+512], 1;\n"
#define TELL ADD("release")
/* Until the counter is not 0. */
#define POLL(order) \
	"P:\nld." order \
	".gpu.global.u32 %r3, [%d0+512];\nsetp.eq.s32 %p1, %r3, 0;\nvote.sync.any.pred %p2, %p1, -1;\n" \
	"@%p2 bra P;\n"
#define HEAR POLL("acquire")
/* Says so behind the counter, and acquires once that is heard. */
#define SAY "@%p0 st.relaxed.gpu.global.b32 [%d0+516], 1;\n"
#define HEAR_LATER \
	"P:\nld.relaxed.gpu.global.u32 %r3, [%d0+516];\nsetp.eq.s32 %p1, %r3, 0;\nvote.sync.any.pred %p2, %p1, -1;\n" \
	"@%p2 bra P;\nld.acquire.gpu.global.u32 %r3, [%d0+512];\n"
/* The first warp of the two. */
#define FIRST "@!%p3 bra F;\n"
#define END_FIRST "F:\n"

#define RACES "and nothing orders the two"
static const struct {
	const char *name, *one, *other /* block */, *trap; /* NULL: it runs */
} cases[] = {
	{ "only one writes", PUT, "", NULL },
	{ "both read", GET, GET, NULL },
	{ "a block reads what it wrote", PUT ALL GET, "", NULL },
	{ "a weak store and a weak load", PUT, GET, RACES },
	{ "two weak stores", PUT, PUT, RACES },
	{ "a weak store and a relaxed load", PUT, GET_RELAXED, RACES },
	{ "a relaxed store and a weak load", PUT_RELAXED, GET, RACES },
	{ "relaxed on both sides", PUT_RELAXED, GET_RELAXED, NULL },
	{ "two relaxed stores", PUT_RELAXED, PUT_RELAXED, NULL },
	{ "a relaxed store of other width", "@%p0 st.relaxed.gpu.global.b64 [%d0], %d0;\n", GET_RELAXED, RACES },
	{ "release and acquire", PUT ALL TELL, HEAR ALL GET, NULL },
	{ "an acquire by each", PUT ALL TELL, HEAR GET, NULL },
	{ "no barrier before the release", PUT TELL, HEAR ALL GET, RACES },
	{ "the store behind the release", ALL TELL PUT, HEAR ALL GET, RACES },
	{ "the same lane's store behind it", ALL TELL "@%p0 st.global.b32 [%d0], %r0;\n", HEAR ALL GET, RACES },
	{ "the load before the acquire", PUT ALL TELL, GET HEAR ALL, RACES },
	{ "no barrier behind the acquire", PUT ALL TELL, FIRST HEAR END_FIRST GET, RACES },
	{ "one warp acquires for all", PUT ALL TELL, FIRST HEAR END_FIRST ALL GET, NULL },
	{ "a relaxed poll", PUT ALL TELL, POLL("relaxed") ALL GET, RACES },
	{ "a relaxed poll and a fence", PUT ALL TELL, POLL("relaxed") "fence.acq_rel.gpu;\n" ALL GET, NULL },
	{ "a fence before the poll", PUT ALL TELL, "fence.acq_rel.gpu;\n" POLL("relaxed") ALL GET, RACES },
	{ "a relaxed count", PUT ALL ADD("relaxed"), HEAR ALL GET, RACES },
	{ "a fence and a relaxed count", PUT ALL FENCE ADD("relaxed"), HEAR ALL GET, NULL },
	{ "a fence of another lane", PUT ALL "@!%p0 fence.acq_rel.gpu;\n" ADD("relaxed"), HEAR ALL GET, RACES },
	{ "a fence behind the count", PUT ALL ADD("relaxed") FENCE, HEAR ALL GET, RACES },
	{ "a release heard of later", PUT ALL TELL SAY, HEAR_LATER ALL GET, NULL },
	{ "a store ends what the release told", PUT ALL TELL "@%p0 st.relaxed.gpu.global.b32 [%d0+512], 2;\n" SAY,
	  HEAR_LATER ALL GET, RACES },
	{ "a count goes on with it", PUT ALL TELL ADD("relaxed") SAY, HEAR_LATER ALL GET, NULL },
	{ "an awaited word orders nothing else", PUT "@%p0 st.relaxed.gpu.global.b32 [%d0+512], 1;\n",
	  POLL("relaxed") ALL GET, RACES },
	{ "what was read is written", GET ALL TELL, HEAR ALL PUT, NULL },
	{ "what is read is written", GET, PUT, RACES },
	{ "what was read is written too early", GET TELL, HEAR ALL PUT, RACES },
	{ "a copy to shared memory", PUT, "@%p0 cp.async.ca.shared.global [%d4], [%d0], 16;\n", RACES },
	{ "a copy behind an acquire", PUT ALL TELL, HEAR "@%p0 cp.async.ca.shared.global [%d4], [%d0], 16;\n", NULL },
	{ "a relaxed load and a weak store", GET_RELAXED, PUT, RACES },
	{ "halves of a word", "st.global.b16 [%d1], %h0;\n", "st.global.b16 [%d1+2], %h0;\n", NULL },
	{ "the same half", "st.global.b16 [%d1+2], %h0;\n", "st.global.b16 [%d1+2], %h0;\n", RACES },
	{ "a half and the word", "st.global.b16 [%d1+2], %h0;\n", GET, RACES },
	{ "bytes of a word", "st.global.b8 [%d1+1], %r0;\n", "ld.global.u8 %r2, [%d1+2];\n", NULL },
	{ "the second of two words", "@%p0 ld.global.b64 %d2, [%d0];\n", "@%p0 st.global.b32 [%d0+4], %r0;\n", RACES },
	{ "warps of a block", "st.global.b32 [%d3], %r0;\n" GET, "", RACES },
	{ "warps of a block that met", "st.global.b32 [%d3], %r0;\n" ALL GET, "", NULL },
	{ "an atomic and a weak load", ADD("relaxed"), "ld.global.b32 %r2, [%d0+512];\n", RACES },
	{ "atomics", ADD("relaxed"), ADD("relaxed"), NULL },
};

static void write_text(char *out, size_t size, const char *one, const char *other)
{
	size_t n = (size_t)snprintf(
		out, size,
		".version 8.0\n.target sm_80\n.address_size 64\n"
		".visible .entry test(.param .u64 arg)\n.maxntid 64, 1, 1\n{\n.reg .b32 %%r<8>;\n.reg .b64 %%d<8>;\n"
		".reg .b16 %%h<2>;\n.reg .pred %%p<8>;\nmov.u32 %%r0, %%tid.x;\nld.param.u64 %%d0, [arg];\n"
		"mov.b32 {%%h0, %%h1}, %%r0;\nmul.wide.u32 %%d1, %%r0, 4;\nadd.s64 %%d1, %%d0, %%d1;\n"
		"mov.b64 %%d4, 0;\nxor.b32 %%r4, %%r0, 32;\nmul.wide.u32 %%d3, %%r4, 4;\nadd.s64 %%d3, %%d0, %%d3;\n"
		"setp.eq.s32 %%p0, %%r0, 0;\nsetp.lt.s32 %%p3, %%r0, 32;\nmov.u32 %%r1, %%ctaid.x;\n"
		"setp.eq.s32 %%p4, %%r1, 0;\n@%%p4 bra ONE;\n");

	snprintf(out + n, size - n, "%sret;\nONE:\n%sret;\n}\n", other, one);
}

static void run_case(const char *name, const char *one, const char *other, const char *trap, bool cooperative)
{
	static uint32_t memory[WORDS];
	struct ptx_memory *m = ptx_memory_open();
	uint64_t arg = (uint64_t)(uintptr_t)memory;
	void *params[] = { &arg };
	struct error err = { 0 };
	char text[4096];

	write_text(text, sizeof text, one, other);
	struct ptx_text *t = ptx_text_read(text, 80, &err);
	if (!t)
		fail_msg("%s\n%s", text, err.text);
	assert_true(m && ptx_memory_add(m, memory, sizeof memory));
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct ptx_run run = { .blocks = 2,
			               .threads = 64,
			               .shared_bytes = 64,
			               .params = params,
			               .seed = seed,
			               .cooperative = cooperative };
		memset(memory, 0, sizeof memory);
		err = (struct error){ 0 };
		bool ok = ptx_text_run(t, m, &run, &err);
		if (ok != !trap || (!ok && !strstr(err.text, trap)))
			fail_msg("%s, seed %u: expected: %s, got: %s", name, (unsigned)seed, trap ? trap : "it runs",
			         ok ? "it runs" : err.text);
	}
	ptx_text_free(t);
	ptx_memory_close(m);
}

static void test_order(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *trap = cases[i].trap;
		run_case(cases[i].name, cases[i].one, cases[i].other, trap, true);
		/* The other block's part in the first one's stead, where no label is there twice: the same. */
		run_case(cases[i].name, cases[i].other, cases[i].one, trap, true);
	}
}

/* Who did what, and where. */
static void test_sentence(void **state)
{
	run_case("", PUT, GET, "block ", true);
	run_case("", PUT, GET, ", line ", true);
	run_case("", PUT, GET, "in this launch, and nothing orders the two (address 0x", true);
}

/* What blocks of other launches do is not told: they need not run at once. */
static void test_ordinary(void **state) { run_case("ordinary", PUT, GET, NULL, false); }

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_order), cmocka_unit_test(test_sentence),
		                            cmocka_unit_test(test_ordinary) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
