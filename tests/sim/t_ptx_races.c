/* tests/sim/t_ptx_races.c - lanes and warps that touch the same shared bytes: what must trap does, with its sentence,
 * and does not where they met in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/ptx.h"

#define STORE "st.shared.b32 [own], %r0;\n"
#define LOAD(where) "ld.shared.b32 %r1, [" where "];\n"
#define MEET "bar.warp.sync 4294967295;\n"
#define BARRIER "bar.sync 0;\n"

/* Own is the lane's word, other its neighbour's in the same warp, across its neighbour's in the next one. */
static const struct {
	const char *body, *trap; /* NULL: it runs */
} cases[] = {
	{ STORE LOAD("own") STORE, NULL },
	{ STORE LOAD("other"), "another lane stored that shared byte since the lanes met" },
	{ STORE MEET LOAD("other"), NULL },
	{ STORE MEET LOAD("other") STORE, "another lane read that shared byte since the lanes met" },
	{ STORE MEET LOAD("other") MEET STORE, NULL },
	{ STORE BARRIER LOAD("other") BARRIER STORE, NULL },
	{ STORE BARRIER STORE LOAD("across"), "that shared byte, with no barrier between" },
	{ STORE BARRIER LOAD("across") STORE, "that shared byte, with no barrier between" },
	{ STORE BARRIER LOAD("across") MEET STORE, "that shared byte, with no barrier between" },
	{ STORE BARRIER LOAD("across") BARRIER STORE, NULL },
	/* What another block wrote before is not there. */
	{ "setp.eq.u32 %p0, %r3, 0;\n@%p0 bra READ;\n" STORE "READ:\n" LOAD("own"),
	  "a shared byte is read that nothing wrote" },
};

/* The text with the places' registers in their names' stead. */
static void write_text(char *out, size_t size, const char *body)
{
	static const char *const names[][2] = { { "own", "%d0" }, { "other", "%d1" }, { "across", "%d2" } };
	size_t n = (size_t)snprintf(
		out, size,
		".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 128 .b8 memory[];\n"
		".visible .entry test(.param .u64 arg)\n.maxntid 64, 1, 1\n{\n.reg .b32 %%r<4>;\n"
		".reg .b64 %%d<8>;\n.reg .pred %%p<1>;\nmov.u32 %%r3, %%ctaid.x;\nmov.u32 %%r0, %%tid.x;\nmov.u64 "
		"%%d3, memory;\n"
		"mul.wide.u32 %%d0, %%r0, 4;\nadd.s64 %%d0, %%d0, %%d3;\n"
		"xor.b32 %%r2, %%r0, 1;\nmul.wide.u32 %%d1, %%r2, 4;\nadd.s64 %%d1, %%d1, %%d3;\n"
		"xor.b32 %%r2, %%r0, 32;\nmul.wide.u32 %%d2, %%r2, 4;\nadd.s64 %%d2, %%d2, %%d3;\n");

	while (*body) {
		size_t k = 0;
		while (k < 3 && strncmp(body, names[k][0], strlen(names[k][0])) != 0)
			k++;
		n += (size_t)snprintf(out + n, size - n, "%.*s", k < 3 ? 16 : 1, k < 3 ? names[k][1] : body);
		body += k < 3 ? strlen(names[k][0]) : 1;
	}
	snprintf(out + n, size - n, "\nret;\n}\n");
}

static void test_races(void **state)
{
	struct ptx_memory *m = ptx_memory_open();

	assert_non_null(m);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (uint64_t seed = 0; seed < 8; seed++) {
			char text[2048];
			uint64_t arg = 0;
			void *params[] = { &arg };
			struct ptx_run run = {
				.blocks = 4, .threads = 64, .shared_bytes = 256, .params = params, .seed = seed
			};
			struct error err = { 0 };
			write_text(text, sizeof text, cases[i].body);
			struct ptx_text *t = ptx_text_read(text, 80, &err);
			if (!t)
				fail_msg("%s\n%s", text, err.text);
			bool ok = ptx_text_run(t, m, &run, &err);
			if (ok != !cases[i].trap || (!ok && !strstr(err.text, cases[i].trap)))
				fail_msg("%s\nexpected: %s, got: %s", cases[i].body,
				         cases[i].trap ? cases[i].trap : "it runs", ok ? "it runs" : err.text);
			ptx_text_free(t);
		}
	ptx_memory_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_races) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
