/* tests/runtime/t_abi.c - the structs of jitrun.h and jitrun_cards.h between callers and a library of other versions,
 * and the range of every number in them.
 *
 * Structs lie right before memory that cannot be touched, so that a byte read or written beyond the size ends the test.
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_answers.h"
#include "include/jitrun_cards.h"
#include "include/jitrun_options.h"
#include "include/jitrun_tokens.h"
#include "runtime/session/session.h"
#include "tests/runtime/abi_fields.h"
#include "tests/support/guarded.h"
#include "tests/support/shared.h"

static jit_model *model;
static jit_session *session, *on_card;
static struct guarded memory;

#include "tests/runtime/abi_chats.h" /* with `model` */

/* ---- every struct, and a call that takes it */

static int with_model(void *p, jit_error *err)
{
	jit_model *m = jit_model_open("/dev/null/model.gguf", p, err);

	assert_null(m);
	return err->code;
}

static int with_session(void *p, jit_error *err)
{
	jit_session *s = jit_session_open(model, p, err);

	jit_session_close(s);
	return s ? JIT_OK : err->code;
}

static int with_sampling(void *p, jit_error *err)
{
	jit_session *s = jit_session_open(model, &JIT_SESSION_OPTIONS(.context = 8, .threads = 1, .sampling = p), err);
	int status = jit_session_set_sampling(session, p, err);

	assert_int_equal(s != NULL, status == JIT_OK);
	jit_session_close(s);
	return status;
}

static int with_embedding(void *p, jit_error *err)
{
	static float row[1 << 14];
	const int32_t id = 3;
	jit_model_info info = JIT_MODEL_INFO();
	int status = jit_model_get_info(model, &info, err);

	assert_int_equal(status, JIT_OK);
	status = jit_session_embed(session, &id, 1, p, row, (size_t)info.hidden, err);
	return status == JIT_OK ? jit_session_rewind(session, 0, err) : status;
}

static int with_card(void *p, jit_error *err)
{
	return with_session(&JIT_SESSION_OPTIONS(.context = 8, .threads = 1, .card = p), err);
}

static int with_objects(void *p, jit_error *err) { return jit_write_objects("/dev/null/model.gguf", p, NULL, err); }

static int with_grammar(void *p, jit_error *err) { return jit_session_begin_grammar(session, p, err); }

static int fill_info(void *p, jit_error *err) { return jit_model_get_info(model, p, err); }
static int fill_metadata(void *p, jit_error *err) { return jit_model_metadata(model, 0, p, err); }
static int fill_token(void *p, jit_error *err)
{
	char bytes[8];

	return jit_model_token(model, 300, p, bytes, sizeof bytes, err);
}
static int fill_needs(void *p, jit_error *err)
{
	const uint64_t steady = 1;
	char path[1024];
	size_t size;
	const int status = jit_model_needs(source_path(path, "models/tale-q8_0.gguf"), NULL, p, err);

	memcpy(&size, p, sizeof size);
	if (status == JIT_OK && size >= offsetof(jit_needs, available_bytes) + sizeof steady)
		memcpy((uint8_t *)p + offsetof(jit_needs, available_bytes), &steady, sizeof steady);
	return status;
}
static int fill_defaults(void *p, jit_error *err) { return jit_model_sampling_defaults(model, p, err); }
static int fill_stats(void *p, jit_error *err) { return jit_session_get_stats(session, p, err); }

static int fill_objects(void *p, jit_error *err)
{
	int status = jit_write_objects("/dev/null/model.gguf", &JIT_OBJECTS_OPTIONS(.target = "gfx1100", .dir = "/tmp"),
	                               p, err);

	return status == JIT_ERROR_IO ? JIT_OK : status; /* so far it got with the struct */
}

#include "tests/runtime/abi_kernels.h"

static const struct sized {
	const char *type;
	size_t size;
	int (*call)(void *p, jit_error *err);
	const struct field *field; /* of options; NULL: results */
	size_t n_fields;
} structs[] = {
#define OPTIONS(type, call, fields) \
	{ \
#type, sizeof(type), call, fields, sizeof fields / sizeof *fields \
	}
#define RESULTS(type, call) \
	{ \
#type, sizeof(type), call, NULL, 0 \
	}
	OPTIONS(jit_model_options, with_model, model_fields),
	OPTIONS(jit_session_options, with_session, session_fields),
	OPTIONS(jit_sampling, with_sampling, sampling_fields),
	OPTIONS(jit_card_options, with_card, card_fields),
	OPTIONS(jit_draft_options, with_draft, draft_fields),
	OPTIONS(jit_embedding_options, with_embedding, embedding_fields),
	OPTIONS(jit_image_options, with_image, image_fields),
	OPTIONS(jit_objects_options, with_objects, objects_fields),
	OPTIONS(jit_chat_options, with_chat, chat_fields),
	OPTIONS(jit_answer_options, with_answer, answer_fields),
	OPTIONS(jit_forced_options, with_forced, forced_fields),
	OPTIONS(jit_grammar_options, with_grammar, grammar_fields),
	OPTIONS(jit_compute_options, with_compute, compute_fields),
	OPTIONS(jit_kernel_options, with_kernel, kernel_fields),
	OPTIONS(jit_graph_options, with_graph, graph_fields),
	OPTIONS(jit_train_options, with_train, train_fields),
	OPTIONS(jit_optimise_options, with_optimise, optimise_fields),
	OPTIONS(jit_work, with_work, work_fields),
	RESULTS(jit_optimise_state, fill_optimise),
	RESULTS(jit_adapter_info, fill_adapter),
	RESULTS(jit_image_info, fill_image),
	RESULTS(jit_tensor, fill_tensor),
	RESULTS(jit_executable_report, fill_executable),
	RESULTS(jit_specialisation, fill_special),
	RESULTS(jit_train_tensor, fill_train_tensor),
	RESULTS(jit_train_report, fill_train_report),
	RESULTS(jit_compute_info, fill_compute),
	RESULTS(jit_parameter, fill_parameter),
	RESULTS(jit_kernel_report, fill_report),
	RESULTS(jit_prediction, fill_prediction),
	RESULTS(jit_answer_event, fill_event),
	RESULTS(jit_forced_call, fill_forced),
	RESULTS(jit_sampling, fill_defaults),
	RESULTS(jit_metadata, fill_metadata),
	RESULTS(jit_token, fill_token),
	RESULTS(jit_needs, fill_needs),
	RESULTS(jit_chat, fill_chat),
	RESULTS(jit_model_info, fill_info),
	RESULTS(jit_device_info, fill_device),
	RESULTS(jit_session_stats, fill_stats),
	RESULTS(jit_card_stats, fill_card_stats),
	RESULTS(jit_draft_stats, fill_draft_stats),
	RESULTS(jit_objects, fill_objects),
};
enum { STRUCTS = sizeof structs / sizeof *structs, LONGER = 40, FILL = 0xa5 };

/* A struct of so many bytes, each `fill`, at the end of what may be touched. */
static uint8_t *position(size_t size, int fill)
{
	uint8_t bytes[4096];

	memset(bytes, fill, sizeof bytes);
	memcpy(bytes, &size, sizeof size);
	return memory.region + (guarded_copy(&memory, bytes, size) - memory.region);
}

static bool refused(const struct sized *t, void *p, const char *says)
{
	jit_error err = { 0 };
	int status = t->call(p, &err);

	return status == JIT_ERROR_ARGUMENT && strstr(err.message, t->type) == err.message && strstr(err.message, says);
}

static void check_taken(const struct sized *t, void *p)
{
	jit_error err = { 0 };

	t->call(p, &err);
	if (strncmp(err.message, t->type, strlen(t->type)) == 0)
		fail_msg("%s", err.message);
}

/* ---- sizes */

static void no_size_is_refused(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 9, 12, 4097, 4104, SIZE_MAX, SIZE_MAX - 7 };
	(void)state;

	for (size_t i = 0; i < STRUCTS; i++)
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			char says[64];
			uint8_t *p = position(structs[i].size, 0);
			memcpy(p, &sizes[k], sizeof sizes[k]);
			snprintf(says, sizeof says, "size is %zu; expected", sizes[k]);
			if (!refused(&structs[i], p, says))
				fail_msg("%s of size %zu is taken", structs[i].type, sizes[k]);
		}
}

static void older_options_are_shorter(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTS; i++)
		for (size_t n = sizeof(size_t); structs[i].field && n <= structs[i].size; n += sizeof(size_t))
			check_taken(&structs[i], position(n, 0));
	jit_error err = { 0 };
	jit_session_options o = JIT_SESSION_OPTIONS(.context = 77, .threads = 1);
	jit_session_stats stats = JIT_SESSION_STATS();
	o.size = offsetof(jit_session_options, batch);
	jit_session *s = jit_session_open(model, memcpy(position(o.size, 0), &o, o.size), &err);
	assert_non_null(s);
	assert_int_equal(jit_session_get_stats(s, &stats, &err), JIT_OK);
	assert_int_equal(stats.context, 77);
	assert_int_equal(stats.threads, 1);
	jit_session_close(s);
}

static void newer_options_end_in_zeros(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTS; i++) {
		const struct sized *t = &structs[i];
		if (!t->field)
			continue;
		check_taken(t, position(t->size + LONGER, 0));
		check_taken(t, position(4096, 0));
		for (size_t at = t->size; at < t->size + LONGER; at++) {
			char says[64];
			uint8_t *p = position(t->size + LONGER, 0);
			p[at] = (uint8_t)(1 + at);
			snprintf(says, sizeof says, "byte %zu is %zu", at, 1 + at);
			if (!refused(t, p, says))
				fail_msg("%s: byte %zu is not seen", t->type, at);
		}
	}
}

static void results_fill_what_there_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTS; i++) {
		const struct sized *t = &structs[i];
		uint8_t whole[1024], zero[4096] = { 0 };
		jit_error err = { 0 };
		if (t->field)
			continue;
		uint8_t *p = position(t->size, FILL);
		assert_int_equal(t->call(p, &err), JIT_OK);
		assert_memory_equal(p, &t->size, sizeof t->size);
		assert_true(t->size <= sizeof whole);
		memcpy(whole, p, t->size);
		for (size_t n = sizeof n; n <= t->size; n += sizeof n) {
			p = position(n, FILL);
			assert_int_equal(t->call(p, &err), JIT_OK);
			assert_memory_equal(p, &n, sizeof n);
			if (memcmp(p + sizeof n, whole + sizeof n, n - sizeof n) != 0)
				fail_msg("%s: the first %zu bytes are others than in a whole one", t->type, n);
		}
		for (size_t n = t->size; n <= 4096; n += n == t->size ? LONGER : 4096 - t->size - LONGER) {
			p = position(n, FILL);
			assert_int_equal(t->call(p, &err), JIT_OK);
			assert_memory_equal(p, &n, sizeof n);
			assert_memory_equal(p + sizeof n, whole + sizeof n, t->size - sizeof n);
			assert_memory_equal(p + t->size, zero, n - t->size);
		}
	}
}

/* ---- values */

/* Every byte of the struct belongs to a field of the table: a new one without a row is found. */
static void tables_are_complete(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTS; i++) {
		const struct sized *t = &structs[i];
		size_t at = sizeof(size_t);
		for (size_t k = 0; k < t->n_fields; k++) {
			const struct field *f = &t->field[k];
			size_t hole = f->offset - at;
			if (f->offset < at || (hole && (hole != 4 || f->offset % 8)))
				fail_msg("%s: something before %s, at %zu, has no row here", t->type, f->name, at);
			at = f->offset + f->bytes;
		}
		if (t->field && at != t->size)
			fail_msg("%s: what follows at %zu has no row here", t->type, at);
	}
}

static uint8_t *with_value(const struct sized *t, const struct field *f, double v)
{
	uint8_t *p = position(t->size, 0);
	float real = (float)v;
	int whole = f->kind == WHOLE ? (int)v : 0;

	if (t->call == with_objects) {
		static const char *const target = "gfx1100", *const dir = "/dev/null/objects";
		memcpy(p + offsetof(jit_objects_options, target), &target, sizeof target);
		memcpy(p + offsetof(jit_objects_options, dir), &dir, sizeof dir);
	}
	memcpy(p + f->offset, f->kind == REAL ? (void *)&real : (void *)&whole, 4);
	return p;
}

static void check_refused(const struct sized *t, const struct field *f, double v)
{
	char says[64], value[32];
	jit_error err = { 0 };

	snprintf(says, sizeof says, "%s: ", f->name);
	snprintf(value, sizeof value, f->kind == REAL ? "%g" : "%.0f", v);
	if (t->call(with_value(t, f, v), &err) != JIT_ERROR_ARGUMENT || strstr(err.message, says) != err.message ||
	    !strstr(err.message, value) || !strstr(err.message, " is not "))
		fail_msg("%s.%s = %s: \"%s\"", t->type, f->name, value, err.message);
}

static void check_accepted(const struct sized *t, const struct field *f, double v)
{
	char says[64];
	jit_error err = { 0 };

	snprintf(says, sizeof says, "%s: ", f->name);
	t->call(with_value(t, f, v), &err);
	if (strstr(err.message, says) == err.message)
		fail_msg("%s.%s = %g: \"%s\"", t->type, f->name, v, err.message);
}

static void values_out_of_range_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTS; i++)
		for (size_t k = 0; k < structs[i].n_fields; k++) {
			const struct field *f = &structs[i].field[k];
			if (f->kind == ANY)
				continue;
			check_accepted(&structs[i], f, 0);
			for (size_t v = 0; v < 4 && f->good[v] != 0; v++)
				check_accepted(&structs[i], f, f->good[v]);
			for (size_t v = 0; v < 4 && f->bad[v] != 0; v++)
				check_refused(&structs[i], f, f->bad[v]);
		}
}

/* Parameters that are refused leave those before them in force. */
static void refused_sampling_changes_nothing(void **state)
{
	jit_error err = { 0 };
	int32_t before[8], after[8];
	(void)state;

	for (int round = 0; round < 2; round++) {
		jit_session *s = jit_session_open(
			model,
			&JIT_SESSION_OPTIONS(.context = 32, .threads = 1,
		                             .sampling = &JIT_SAMPLING(.temperature = 1.5f, .seed = 9)),
			&err);
		assert_non_null(s);
		assert_int_equal(jit_session_feed(s, (const int32_t[]){ 1, 2, 3 }, 3, &err), JIT_OK);
		if (round)
			assert_int_equal(jit_session_set_sampling(s, &JIT_SAMPLING(.top_p = 2, .seed = 1), &err),
			                 JIT_ERROR_ARGUMENT);
		for (int i = 0; i < 8; i++)
			assert_int_equal(jit_session_next(s, round ? &after[i] : &before[i], &err), JIT_OK);
		jit_session_close(s);
	}
	assert_memory_equal(before, after, sizeof before);
}

static void no_token_is_refused(void **state)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	float logprob;
	size_t n = 1;
	(void)state;

	assert_int_equal(jit_model_get_info(model, &info, &err), JIT_OK);
	const int32_t ids[] = { -2, INT32_MIN, info.vocab, INT32_MAX, -1 };
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		char id[16];
		snprintf(id, sizeof id, "%d", ids[i]);
		err = (jit_error){ 0 };
		assert_null(jit_model_detokenize(model, &ids[i], 1, &n, &err));
		assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, id));
		assert_int_equal(n, 0);
		assert_int_equal(jit_session_feed(session, &ids[i], 1, &err), JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, id));
		assert_int_equal(jit_session_score(session, &ids[i], 1, &logprob, &err), JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, id));
		assert_int_equal(jit_model_is_end(model, ids[i]), 0);
		if (ids[i] == -1) /* the end of a text */
			continue;
		assert_null(jit_session_text(session, ids[i], &n, &err));
		assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, id));
	}
}

/* The bytes of a text need not be counted for a caller that ends at its 0. */
static void text_is_given_without_its_length(void **state)
{
	const int32_t ids[] = { 300, 301, 302 };
	jit_error err = { 0 };
	size_t n = 0;
	(void)state;

	char *counted = jit_model_detokenize(model, ids, 3, &n, &err);
	char *text = jit_model_detokenize(model, ids, 3, NULL, NULL);
	assert_non_null(counted);
	assert_non_null(text);
	assert_true(n > 0);
	assert_int_equal(strlen(text), n);
	assert_memory_equal(text, counted, n + 1);
	free(counted);
	free(text);
	assert_null(jit_model_detokenize(model, &(int32_t){ -2 }, 1, NULL, &err));
	assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
}

static void no_memory_for_results_is_refused(void **state)
{
	jit_error err = { 0 };
	(void)state;

	assert_int_equal(jit_model_get_info(model, NULL, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_get_stats(session, NULL, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "jit_session_stats"));
	assert_int_equal(jit_session_get_card_stats(on_card, NULL, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_get_card_stats(session, &JIT_CARD_STATS(), &err), JIT_ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.message, "cpu"));
	assert_int_equal(jit_device_get_info(jit_device_count(), &JIT_DEVICE_INFO(), &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_device_get_info(SIZE_MAX, &JIT_DEVICE_INFO(), &err), JIT_ERROR_ARGUMENT);
}

static int open_all(void **state)
{
	char path[1024];
	jit_error err = { 0 };
	(void)state;

	setenv("JITRUN_CACHE", "/dev/null/cache", 1); /* what options cut short would have forgotten to turn off */
	memory = guarded_open(4096);
	source_path(path, "models/tale-q8_0.gguf");
	model = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), &err);
	session = model ? jit_session_open(model, &JIT_SESSION_OPTIONS(.context = 16, .threads = 1), &err) : NULL;
	open_adapter();
	jit_model *card = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = "sim:gfx1100", .cache_dir = ""), &err);
	on_card = card ? jit_session_open(card, &JIT_SESSION_OPTIONS(.context = 16, .threads = 1), &err) : NULL;
	compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = "", .threads = 1), &err);
	kernel = compute ? jit_kernel_open(compute, &JIT_KERNEL_OPTIONS(.source = kernel_text), &err) : NULL;
	graph = jit_graph_open(&JIT_GRAPH_OPTIONS(.source = graph_text), &err);
	train = jit_train_open(&JIT_TRAIN_OPTIONS(.model = path, .context = 4, .rank = 1, .targets = "v_proj",
	                                          .cache_dir = "", .threads = 1),
	                       &err);
	if (!session || !on_card || !kernel || !open_executables(&err) || !train || !open_optimiser(&err))
		return -1;
	assert_int_equal(jit_session_feed(session, (const int32_t[]){ 1 }, 1, &err), JIT_OK);
	session_rest(session);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_size_is_refused),
		cmocka_unit_test(older_options_are_shorter),
		cmocka_unit_test(newer_options_end_in_zeros),
		cmocka_unit_test(results_fill_what_there_is),
		cmocka_unit_test(tables_are_complete),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(refused_sampling_changes_nothing),
		cmocka_unit_test(no_token_is_refused),
		cmocka_unit_test(text_is_given_without_its_length),
		cmocka_unit_test(no_memory_for_results_is_refused),
	};
	return cmocka_run_group_tests(tests, open_all, NULL);
}
