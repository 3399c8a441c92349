/* tests/sim/t_ptx_together.c - PTX with functions, and launches whose blocks wait for each other: what it computes, and
 * that what must be refused or trap does, with its sentence. Where NVIDIA's assembler is found (ptxas), it takes the
 * texts that are not to be refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/ptx.h"
#include "tests/support/shared.h"

enum { WORDS = 4096, SHARED = 1024, TEXT = 8192, MAX_SEEDS = 40 };

/* %r0 the thread, %r1 the block, %d0 the memory, %d1 its word of this thread, of 64 in a block. */
#define HEAD \
	".visible .entry test(.param .u64 arg)\n.maxntid 64, 1, 1\n{\n.reg .b32 %r<20>;\n.reg .b64 %d<20>;\n" \
	".reg .pred %p<8>;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nld.param.u64 %d0, [arg];\n" \
	"shl.b32 %r2, %r1, 6;\nadd.s32 %r2, %r2, %r0;\nmul.wide.u32 %d1, %r2, 4;\nadd.s64 %d1, %d0, %d1;\n"
#define TAIL "ret;\n}\n"
#define OUT "st.global.b32 [%d1], %r3;\n"

struct launch {
	uint32_t memory[WORDS];
	const char *trap; /* NULL: it runs */
	unsigned blocks, threads;
	bool cooperative;
	const char *entry;
};

static struct ptx_text *read_text(const char *body, struct error *err)
{
	static char text[TEXT];

	snprintf(text, sizeof text,
	         ".version 8.0\n.target sm_80\n.address_size 64\n"
	         ".extern .shared .align 128 .b8 memory[];\n%s",
	         body);
	return ptx_text_read(text, 80, err);
}

static void assemble(const char *body)
{
	static const char *const at[] = { "/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas", "/usr/local/bin/ptxas" };
	char path[] = "/tmp/t_ptx_together-XXXXXX", command[200];
	unsigned k = 0;

	while (k < 3 && access(at[k], X_OK) != 0)
		k++;
	if (k == 3 || test_quick())
		return;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *f = fdopen(fd, "w");
	fprintf(f,
	        ".version 8.0\n.target sm_80\n.address_size 64\n"
	        ".extern .shared .align 128 .b8 memory[];\n%s",
	        body);
	fclose(f);
	snprintf(command, sizeof command, "%s -arch=sm_80 -o /dev/null %s", at[k], path);
	if (system(command))
		fail_msg("the assembler refuses\n%s", body);
	unlink(path);
}

/* Runs it; what comes out must be the same, or trap, by every seed. */
static void launch(struct launch *l, const char *body)
{
	static uint32_t first[WORDS];
	struct error err = { 0 };
	struct ptx_text *t = read_text(body, &err);
	struct ptx_memory *m = ptx_memory_open();
	uint64_t arg = (uint64_t)(uintptr_t)l->memory;
	void *params[] = { &arg };

	if (!t)
		fail_msg("%s\n%s", body, err.text);
	assemble(body);
	assert_true(m && ptx_memory_add(m, l->memory, sizeof l->memory));
	memcpy(first, l->memory, sizeof first);
	for (uint64_t seed = 0; seed < MAX_SEEDS; seed++) {
		struct ptx_run run = { .entry = l->entry,
			               .blocks = l->blocks,
			               .threads = l->threads,
			               .shared_bytes = SHARED,
			               .params = params,
			               .cooperative = l->cooperative,
			               .seed = seed };
		memcpy(l->memory, first, sizeof first);
		err = (struct error){ 0 };
		bool ok = ptx_text_run(t, m, &run, &err);
		if (ok != !l->trap || (!ok && !strstr(err.text, l->trap)))
			fail_msg("%s\nseed %u, expected: %s, got: %s", body, (unsigned)seed,
			         l->trap ? l->trap : "it runs", ok ? "it runs" : err.text);
	}
	ptx_text_free(t);
	ptx_memory_close(m);
}

static void refused(const char *body, const char *why)
{
	struct error err = { 0 };
	struct ptx_text *t = read_text(body, &err);

	if (t || !strstr(err.text, why))
		fail_msg("%s\nexpected: %s, got: %s", body, why, t ? "it is read" : err.text);
}

static uint32_t id(uint32_t i) { return i; }

static void expect(const char *body, uint32_t (*want)(uint32_t i))
{
	static struct launch l;

	l = (struct launch){ .blocks = 2, .threads = 64 };
	for (uint32_t i = 0; i < WORDS; i++)
		l.memory[i] = i * 0x01234567u;
	for (l.cooperative = false;; l.cooperative = true) {
		launch(&l, body);
		for (uint32_t i = 0; i < 128; i++)
			if (l.memory[i] != want(i))
				fail_msg("%s\nword %u is %08x, expected %08x", body, i, l.memory[i], want(i));
		if (l.cooperative)
			break;
	}
}

/* --- functions */

#define TWICE \
	".func (.param .b32 back) twice(.param .b32 a)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r0, [a];\n" \
	"add.s32 %r1, %r0, %r0;\nst.param.b32 [back], %r1;\nret;\n}\n"
/* a + 2 b, the second word of c + 1 */
#define SUM \
	".func (.reg .b32 %out, .reg .b64 %more) sum(.reg .b32 %a, .reg .b32 %b, .reg .b64 %c)\n" \
	"{\n.reg .b32 %r<2>;\n{\n.param .b32 x, y;\nst.param.b32 [x+0], %b;\ncall.uni (y), twice, (x);\n" \
	"ld.param.b32 %r0, [y+0];\n}\nadd.s32 %out, %a, %r0;\nadd.s64 %more, %c, 1;\nret;\n}\n"

static uint32_t want_sum(uint32_t i) { return i % 64 + 2 * (i / 64) + 7 + (i % 64 + 2 * 5) + 1; }

static void test_calls(void **state)
{
	expect(TWICE SUM HEAD "call (%r3, %d2), sum, (%r0, %r1, 6);\ncall.uni (%r4, %d3), sum, (%r0, 5, %d2);\n"
	                      "cvt.u32.u64 %r5, %d2;\nadd.s32 %r3, %r3, %r4;\nadd.s32 %r3, %r3, %r5;\n"
	                      "sub.s64 %d3, %d3, %d2;\ncvt.u32.u64 %r5, %d3;\nadd.s32 %r3, %r3, %r5;\n" OUT TAIL,
	       want_sum);
	/* a function that stores, has no result and ends by a branch; a call that nobody takes */
	expect(".func keep(.reg .b64 %at, .reg .b32 %v);\n" HEAD
	       "setp.lt.s32 %p0, %r0, 0;\n@%p0 call keep, (%d0, 1);\ncall keep, (%d1, %r2);\n" TAIL
	       ".func keep(.reg .b64 %at, .reg .b32 %v)\n{\nst.global.b32 [%at], %v;\n"
	       "bra.uni DONE;\nDONE:\nret;\n}\n",
	       id);
}

static void test_registers(void **state)
{
	static struct launch l;

	/* What a function left in its registers the next call does not find. */
	l = (struct launch){ .blocks = 1, .threads = 32, .trap = "a register is read that nothing wrote" };
	launch(&l, ".func (.reg .b32 %o) f(.reg .b32 %a)\n{\n.reg .b32 %r<2>;\n.reg .pred %p<1>;\n"
	           "setp.eq.s32 %p0, %a, 1;\n@%p0 mov.b32 %r0, 3;\nmov.b32 %o, %r0;\nret;\n}\n" HEAD
	           "call (%r3), f, (1);\ncall (%r3), f, (2);\n" OUT TAIL);
	/* Nor does anything come back that it did not write. */
	launch(&l, ".func (.reg .b32 %o) f()\n{\nret;\n}\n" HEAD "call (%r3), f;\n" OUT TAIL);
	l.trap = "it runs beyond the function's end";
	launch(&l, ".func (.reg .b32 %o) f()\n{\nmov.b32 %o, 1;\n}\n" HEAD "call (%r3), f;\n" OUT TAIL);
	l.trap = "only some lanes do this";
	launch(&l, ".func f()\n{\nret;\n}\n" HEAD "setp.eq.s32 %p0, %r0, 1;\n@%p0 call f;\n" TAIL);
}

static void test_refused(void **state)
{
	refused(HEAD "call nobody;\n" TAIL, "a call of what was not declared");
	refused(".func f();\n" HEAD "call f;\n" TAIL, "a function without a body");
	refused(".func f()\n{\ncall f;\nret;\n}\n" HEAD "call f;\n" TAIL, "calls itself");
	refused(".func g();\n.func f()\n{\ncall g;\nret;\n}\n.func g()\n{\ncall f;\nret;\n}\n" HEAD "call f;\n" TAIL,
	        "functions that call themselves");
	refused(".func f(.reg .b32 %a)\n{\nret;\n}\n" HEAD "call f;\n" TAIL, "the arguments are wrong");
	refused(".func f(.reg .b32 %a)\n{\nret;\n}\n" HEAD "call f, (%r0, %r1);\n" TAIL, "too many, or too few");
	refused(".func f(.reg .b32 %a)\n{\nret;\n}\n" HEAD "call f, (%d0);\n" TAIL, "a register of another width");
	refused(".func f(.reg .b32 %a)\n{\nret;\n"
	        "}\n" HEAD "call (%r0), f, (%r0);\n" TAIL,
	        "a call of something else");
	refused(".func f(.reg .b32 %a);\n.func f(.reg .b64 %a)\n{\nret;\n}\n" HEAD TAIL, "was declared otherwise");
	refused(".func f()\n{\nret;\n}\n.func f()\n{\nret;\n}\n" HEAD TAIL, "is there already");
	refused(HEAD "{\n.reg .b32 %x;\nmov.b32 %x, 1;\n}\n"
	             "mov.b32 %x, 2;\n" TAIL,
	        "a register of another width, or none");
	refused(".func f()\n{\nL1:\nret;\n}\n" HEAD "bra.uni L1;\n" TAIL, "a label that is nowhere");
	refused(HEAD "bar.sync 1;\n" TAIL, "another barrier than 0");
	refused(HEAD "vote.sync.any.pred %p0, %p1, 1;\n" TAIL, "only some lanes");
}

static uint32_t want_choice(uint32_t i) { return i / 64 ? 30 : 10; }

static void test_choice(void **state)
{
	static struct launch l;

	expect(HEAD "shl.b32 %r4, %r1, 1;\nlist: .branchtargets A, B, C;\nbrx.idx.uni %r4, list;\n"
	            "A:\nmov.b32 %r3, 10;\nbra.uni D;\nB:\nmov.b32 %r3, 20;\nbra.uni D;\nC:\n"
	            "mov.b32 %r3, 30;\nD:\n" OUT TAIL,
	       want_choice);
	l = (struct launch){ .blocks = 1, .threads = 32, .trap = "beyond the list of labels" };
	launch(&l, HEAD "mov.b32 %r4, 1;\nlist: .branchtargets A;\nbrx.idx.uni %r4, list;\nA:\n" TAIL);
	l.trap = "lanes branch to different places";
	launch(&l, HEAD "list: .branchtargets A, A;\nbrx.idx %r0, list;\nA:\n" TAIL);
}

static void test_entries(void **state)
{
	static const char body[] = ".visible .entry other(.param .u64 arg, .param .u32 n)\n"
				   ".maxntid 32, 1, 1\n{\nret;\n}\n" HEAD "mov.b32 %r3, 5;\n" OUT TAIL;
	static struct launch l;
	struct error err = { 0 };
	struct ptx_text *t = read_text(body, &err);
	unsigned bytes[2] = { 0 };

	assert_non_null(t);
	assert_true(ptx_text_has(t, "test") && ptx_text_has(t, "other") && !ptx_text_has(t, "third"));
	assert_int_equal(ptx_text_params(t, "other", bytes, 2), 2);
	assert_true(bytes[0] == 8 && bytes[1] == 4);
	assert_int_equal(ptx_text_params(t, "test", bytes, 2), 1);
	ptx_text_free(t);
	l = (struct launch){ .blocks = 1, .threads = 64, .entry = "test" };
	launch(&l, body);
	assert_int_equal(l.memory[63], 5);
	l.entry = "third";
	l.trap = "is impossible";
	launch(&l, body);
}

/* --- instructions */

static uint32_t want_lane(uint32_t i) { return i % 32; }
static uint32_t want_votes(uint32_t i) { return (i % 64 < 32) * 1 + 4; }
static uint32_t want_halves(uint32_t i) { return i + 2 * 0x80000001u + 2; }
static uint32_t want_rest(uint32_t i) { return i % 7 * 2; }
static uint32_t want_four(uint32_t i) { return i % 4 == 3 ? i / 4 : i % 4 == 2 ? 7 : i % 4 == 1 ? i / 4 + 1 : 9; }

static void test_instructions(void **state)
{
	expect(HEAD "mov.u32 %r3, %laneid;\n" OUT TAIL, want_lane);
	/* some lane of the first warp alone is 3; all are below 64 */
	expect(HEAD "setp.eq.b32 %p0, %r0, 3;\nvote.sync.any.pred %p1, %p0, 0xffffffff;\nselp.b32 %r3, 1, 0, %p1;\n"
	            "vote.sync.all.pred %p1, %p0, 0xffffffff;\nselp.b32 %r4, 2, 0, %p1;\nadd.s32 %r3, %r3, %r4;\n"
	            "setp.lt.u32 %p0, %r0, 64;\nvote.sync.all.pred %p1, %p0, -1;\nselp.b32 %r4, 4, 0, %p1;\n"
	            "add.u32 %r3, %r3, %r4;\n" OUT TAIL,
	       want_votes);
	expect(HEAD "mov.b32 %r4, -2147483647;\nmov.b64 %d2, {%r2, %r4};\nmov.b64 {%r5, %r6}, %d2;\n"
	            "shr.u64 %d3, %d2, 32;\ncvt.u32.u64 %r7, %d3;\nadd.s32 %r3, %r5, %r6;\nadd.s32 %r3, %r3, %r7;\n"
	            "setp.ne.b64 %p0, %d2, %d3;\nselp.b64 %d4, 2, 0, %p0;\n"
	            "cvt.u32.u64 %r7, %d4;\nadd.s32 %r3, %r3, %r7;\n" OUT TAIL,
	       want_halves);
	expect(HEAD "rem.u32 %r3, %r2, 7;\nsetp.ge.s32 %p0, %r0, 0;\n"
	            "@%p0 shl.b32 %r3, %r3, 1;\n" OUT TAIL,
	       want_rest);
	/* every fourth thread four words, by one store */
	expect(HEAD "shl.b32 %r4, %r2, 4;\ncvt.u64.u32 %d2, %r4;\nadd.s64 %d2, %d0, %d2;\nadd.s32 %r5, %r2, 1;\n"
	            "mov.b32 %r6, 9;\nmov.b32 %r7, 7;\nsetp.lt.s32 %p0, %r2, 32;\n"
	            "@%p0 st.global.v4.b32 [%d2], {%r6, %r5, %r7, %r2};\n" TAIL,
	       want_four);
	expect(HEAD "nanosleep.u32 20;\nprefetch.global.L2 [%d1];\nfence.acq_rel.gpu;\nmov.b32 %r3, %r2;\n"
	            "st.relaxed.gpu.global.b32 [%d1], %r3;\nld.relaxed.gpu.global.b32 %r4, [%d1];\n" TAIL,
	       id);
}

static uint32_t want_count(uint32_t i) { return i < 64 ? i : 64 + (i - 64); }

/* Each lane takes a number from a counter and stores at it: each number comes once. */
static void test_atomics(void **state)
{
	static struct launch l;

	expect(HEAD "add.s64 %d2, %d0, 8192;\nmov.b32 %r4, 0;\nsub.s32 %r4, %r4, %r0;\n"
	            "st.global.b32 [%d1], %r2;\n" TAIL,
	       want_count);
	l = (struct launch){ .blocks = 3, .threads = 64, .cooperative = true };
	launch(&l, HEAD "atom.relaxed.gpu.global.add.u32 %r3, [%d0+16000], 1;\nmul.wide.u32 %d2, %r3, 4;\n"
	                "add.s64 %d2, %d0, %d2;\nmov.b32 %r5, 1;\nst.global.b32 [%d2], %r5;\n"
	                "red.relaxed.gpu.global.max.u32 [%d0+16004], %r2;\n"
	                "atom.global.cas.b32 %r4, [%d0+16008], 0, 77;\n"
	                "atom.relaxed.gpu.global.exch.b32 %r4, [%d0+16012], 78;\n"
	                "red.release.gpu.global.add.u32 [%d0+16016], 2;\n" TAIL);
	for (unsigned i = 0; i < 192; i++)
		assert_int_equal(l.memory[i], 1);
	assert_int_equal(l.memory[192], 0);
	assert_int_equal(l.memory[4000], 192);
	assert_int_equal(l.memory[4001], 191);
	assert_int_equal(l.memory[4002], 77);
	assert_int_equal(l.memory[4003], 78);
	assert_int_equal(l.memory[4004], 384);
}

/* --- blocks that wait for each other */

/* All blocks arrive at the counter and wait until %r9 have. */
#define ARRIVE(at) \
	"bar.sync 0;\nsetp.eq.s32 %p0, %r0, 0;\n@%p0 fence.acq_rel.gpu;\n" \
	"@%p0 red.release.gpu.global.add.u32 [%d0+" at "], 1;\n"
#define AWAIT(at, count, label) \
	"setp.lt.s32 %p1, %r0, 32;\n@!%p1 bra " label "E;\n" label ":\n" \
	"ld.acquire.gpu.global.u32 %r8, [%d0+" at "];\nsetp.lt.u32 %p1, %r8, " count ";\n" \
	"vote.sync.any.pred %p2, %p1, -1;\n@%p2 bra " label ";\n" label "E:\nbar.sync 0;\n"
/* The word of this thread in the next of four blocks. */
#define NEXT "add.s32 %r4, %r2, 64;\nand.b32 %r4, %r4, 255;\nmul.wide.u32 %d2, %r4, 4;\nadd.s64 %d2, %d0, %d2;\n"

static void test_barrier(void **state)
{
	static struct launch l;

	l = (struct launch){ .blocks = 4, .threads = 64, .cooperative = true };
	launch(&l, HEAD NEXT "mov.b32 %r3, %r2;\n" OUT ARRIVE("16000")
	                   AWAIT("16000", "4", "L") "ld.global.b32 %r3, [%d2];\n" ARRIVE("16000")
	                           AWAIT("16000", "8", "M") OUT TAIL);
	for (unsigned i = 0; i < 256; i++)
		assert_int_equal(l.memory[i], (i + 64) % 256);
	assert_int_equal(l.memory[4000], 8);
	l.memory[4000] = 0;
	l.trap = "the simulated kernel hangs";
	launch(&l, HEAD "mov.b32 %r3, %r2;\n" OUT ARRIVE("16000") AWAIT("16000", "5", "L") TAIL);
}

#define EMPTY "-1"
/* Waits until no lane's word is empty. */
#define WORD(label) \
	label ":\nld.relaxed.gpu.global.b32 %r3, [%d2];\nsetp.eq.b32 %p1, %r3, " EMPTY ";\n" \
	      "vote.sync.any.pred %p2, %p1, -1;\n@%p2 bra " label ";\n"

static void make_empty(struct launch *l, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		l->memory[i] = UINT32_MAX;
}

static void test_words(void **state)
{
	static struct launch l;

	/* From block to block: each takes the word of the block before, adds 1 and hands it on. */
	static const char chain[] = HEAD
		"mov.b32 %r3, %r0;\nsub.s32 %r4, %r2, 64;\nmul.wide.s32 %d2, %r4, 4;\nadd.s64 %d2, %d0, %d2;\n"
		"setp.eq.s32 %p3, %r1, 0;\n@%p3 bra FIRST;\n" WORD("L") "FIRST:\nadd.s32 %r3, %r3, 1;\n"
									"st.relaxed.gpu.global.b32 [%d1], %r3;\n" TAIL;
	l = (struct launch){ .blocks = 40, .threads = 64, .cooperative = true };
	make_empty(&l, 0, 40 * 64);
	launch(&l, chain);
	for (unsigned i = 0; i < 40 * 64; i++)
		assert_int_equal(l.memory[i], i % 64 + i / 64 + 1);
	/* The last block is not there, and all wait for the next one. */
	l.blocks = 3;
	make_empty(&l, 0, 40 * 64);
	l.trap = "hangs, 6 warps poll and 0 wait at barriers: block 0, warp 0 polls 0x";
	launch(&l, HEAD "add.s64 %d2, %d1, 256;\n" WORD("L") "st.relaxed.gpu.global.b32 [%d1], %r3;\n" TAIL);
	/* One lane's word is not given. */
	l.blocks = 1;
	make_empty(&l, 0, 40 * 64);
	l.trap = "\"ld.relaxed.gpu.global.b32 %r3, [%d2];\"";
	launch(&l, HEAD "mov.b64 %d2, %d1;\nsetp.ne.s32 %p0, %r0, 5;\n"
	                "@%p0 st.relaxed.gpu.global.b32 [%d1], %r0;\n" WORD("L") TAIL);
}

/* One block gives, in the order 0 to 63, what the other takes from 63 to 0, several times. */
static void test_swap(void **state)
{
	static struct launch l;

	l = (struct launch){ .blocks = 2, .threads = 32, .cooperative = true };
	launch(&l, HEAD
	       "setp.eq.s32 %p3, %r1, 0;\nmov.b32 %r10, 0;\nmov.b32 %r11, 0;\nAGAIN:\n"
	       "add.s32 %r10, %r10, 1;\n"
	       "@%p3 st.relaxed.gpu.global.b32 [%d0], %r10;\n"
	       "@!%p3 st.relaxed.gpu.global.b32 [%d0+4], %r10;\n"
	       "add.s64 %d2, %d0, 4;\nselp.b64 %d2, %d2, %d0, %p3;\nL:\n"
	       "ld.relaxed.gpu.global.b32 %r4, [%d2];\n"
	       "setp.lt.u32 %p1, %r4, %r10;\nvote.sync.any.pred %p2, %p1, -1;\n@%p2 bra L;\n"
	       "setp.lt.u32 %p1, %r10, 50;\n@%p1 bra AGAIN;\nmov.b32 %r3, %r10;\n"
	       "shl.b32 %r4, %r1, 2;\ncvt.u64.u32 %d3, %r4;\nadd.s64 %d3, %d3, %d0;\n"
	       "st.relaxed.gpu.global.b32 [%d3+8], %r3;\n" TAIL);
	assert_true(l.memory[2] == 50 && l.memory[3] == 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),   cmocka_unit_test(test_registers), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_choice),  cmocka_unit_test(test_entries),   cmocka_unit_test(test_instructions),
		cmocka_unit_test(test_atomics), cmocka_unit_test(test_barrier),   cmocka_unit_test(test_words),
		cmocka_unit_test(test_swap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
