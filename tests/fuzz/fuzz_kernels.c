/* tests/fuzz/fuzz_kernels.c - arbitrary bytes as what the compiler keeps and reads: a stored object, a file of
 * schedules, the text of a key, the text of a kernel. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir.h"
#include "jit/store/record.h"
#include "jit/target.h"
#include "jit/store/tune.h"
#include "tests/fuzz/fuzz.h"
#include "tests/jit/stored_sum.h"

static volatile uint64_t sink;

static void unpack(const uint8_t *record, const uint8_t *body)
{
	struct object o;

	if (record_unpack(&o, record, body) != RECORD_FOUND)
		return;
	if (o.code_bytes == 0 || o.code_bytes > RECORD_MAX_CODE || o.pool_offset > o.code_bytes)
		abort();
	for (uint32_t i = 0; i < o.code_bytes; i++)
		sink += o.code[i];
	object_free(&o);
}

/* The length of the body is what is there; the sum is tried as it is, and made right. */
void fuzz_record(const uint8_t *p, size_t n)
{
	uint8_t record[RECORD_BYTES], none = 0;

	if (n < RECORD_BYTES)
		return;
	const uint8_t *body = n > RECORD_BYTES ? p + RECORD_BYTES : &none;
	memcpy(record, p, sizeof record);
	record_put32(record + RECORD_AT_BODY, (uint32_t)(n - RECORD_BYTES));
	unpack(record, body);
	record_put64(record + 88, stored_sum(body, n - RECORD_BYTES, stored_sum(record, 88, RECORD_VERSION)));
	unpack(record, body);
}

static void see(const struct tune_result *r, void *user)
{
	char text[KEY_TEXT_MAX];

	(void)user;
	if (!(r->gain >= 1 && r->gain < 100) || r->samples < 1 || !*key_text(&r->key, text, sizeof text))
		abort();
}

/* Behind a head that fits, unless the bytes begin like one. */
void fuzz_tune(const uint8_t *p, size_t n)
{
	static char name[40], head[300];
	struct error err = { 0 };

	if (!head[0]) {
		char processor[64];
		uint64_t hash = 0xcbf29ce484222325u;
		target_cpu_name(processor, sizeof processor);
		for (const char *c = processor; *c; c++)
			hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
		snprintf(name, sizeof name, "tuned-%016" PRIx64 ".txt", hash);
		snprintf(head, sizeof head, "jitrun schedules 2\nprocessor %s\ncodegen %016" PRIx64 "\n", processor,
		         key_codegen_x86);
	}
	size_t before = n && p[0] == 'j' ? 0 : strlen(head);
	uint8_t *all = malloc(before + n + 1);
	if (!all)
		return;
	memcpy(all, head, before);
	if (n)
		memcpy(all + before, p, n);
	fuzz_file(0, name, all, before + n);
	free(all);
	struct tune *t = tune_open(fuzz_directory(), &err);
	if (!t)
		abort();
	tune_each(t, see, NULL);
	tune_close(t);
}

/* A text that is a key is the one that the key writes; the text of any key can be written. */
void fuzz_key(const uint8_t *p, size_t n)
{
	char text[KEY_TEXT_MAX + 8], again[KEY_TEXT_MAX], differences[KEY_DIFFERENCES_MAX];
	struct key k, any = { 0 };
	size_t length = n < sizeof text - 1 ? n : sizeof text - 1;

	if (n)
		memcpy(text, p, length);
	text[length] = 0;
	if (key_parse(&k, text) && strcmp(key_text(&k, again, sizeof again), text) != 0)
		abort();
	memcpy(&any, p, n < sizeof any ? n : sizeof any);
	if (strlen(key_text(&any, again, sizeof again)) >= sizeof again ||
	    strlen(key_differences(&any, &k, differences, sizeof differences)) >= sizeof differences)
		abort();
	sink += key_hash(&any) + key_distance(&any, &k);
}

static char *printed(const struct ir *ir)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		abort();
	ir_print(ir, f);
	fclose(f);
	return text;
}

/* What is well formed comes back from its own text. */
void fuzz_ir(const uint8_t *p, size_t n)
{
	struct error err = { 0 };
	struct ir ir, back;
	char *text = malloc(n + 1);

	if (!text)
		return;
	if (n)
		memcpy(text, p, n);
	text[n] = 0;
	bool ok = ir_parse(&ir, text, &err);
	if (ok == (err.text[0] != 0))
		abort();
	if (ok && ir_verify(&ir, &err)) {
		char *once = printed(&ir);
		if (!ir_parse(&back, once, &err))
			abort();
		char *twice = printed(&back);
		if (strcmp(once, twice) != 0)
			abort();
		ir_free(&back);
		free(once);
		free(twice);
	}
	if (ok)
		ir_free(&ir);
	free(text);
}
