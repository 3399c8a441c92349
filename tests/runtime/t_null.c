/* tests/runtime/t_null.c - NULL for each pointer that a function of the public headers takes, one at a time: it is
 * refused by name, or may be NULL, or nothing happens.
 *
 * The headers are read here: a function or a parameter without a row in null_rows.def is a failure, and so is a result
 * that may be left out where the function's comment does not say so. */
#include <ctype.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "include/jitrun_adapters.h"
#include "tests/runtime/made_encoder.h"
#include "include/jitrun_answers.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_cards.h"
#include "include/jitrun_grammar.h"
#include "include/jitrun_graph.h"
#include "include/jitrun_optimise.h"
#include "include/jitrun_train.h"
#include "include/jitrun_kernel.h"
#include "include/jitrun_logits.h"
#include "include/jitrun_texts.h"
#include "include/jitrun_options.h"
#include "include/jitrun_tokens.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

/* ---- what calls are made with */

static char path[1024], folder[] = "/tmp/t_null-XXXXXX";
static jit_model *m, *card;
static jit_session *s, *on_card, *member;
static jit_batch *b;
static jit_objects_options objects;
static const jit_chat_options conversation = {
	.size = sizeof conversation, .messages = "[]", .template_text = "{{ messages }}"
};
static const jit_answer_options reading = { .size = sizeof reading, .template_text = "" };
static const jit_forced_options forcing = {
	.size = sizeof forcing, .tools = "[{\"function\":{\"name\":\"f\"}}]", .template_text = "<tool_call>"
};
static jit_answer *answer;
static jit_adapter *adapter;
static jit_compute *compute;
static jit_kernel *kernel;
static jit_launch *launch;
static jit_buffer *buffer;
static const jit_kernel_options adding = {
	.size = sizeof adding,
	.source = "kernel add(f32 a, in f32 x[4], out f32 y[4]) over (i in 4) { y[i] = a + x[i]; }"
};
static const jit_kernel_options twice = {
	.size = sizeof twice, .source = "kernel twice(in f32 x[4], out f32 y[4]) over (i in 4) { y[i] = 2 * x[i]; }"
};
static const char *const stops[] = { "a" };
static const int32_t ids[] = { 300, 301, 302 };
static size_t hidden, vocab;

static int code(const jit_error *err) { return err ? err->code : JIT_ERROR_ARGUMENT; }

static int opened(jit_model *p, const jit_error *err)
{
	jit_model_close(p);
	return p ? JIT_OK : code(err);
}

static int begun(jit_session *p, const jit_error *err)
{
	jit_session_close(p);
	return p ? JIT_OK : code(err);
}

static int computing(jit_compute *p, const jit_error *err)
{
	jit_compute_close(p);
	return p ? JIT_OK : code(err);
}

static int compiled(jit_kernel *p, const jit_error *err)
{
	jit_kernel_close(p);
	return p ? JIT_OK : code(err);
}

static int adapted(jit_adapter *p, const jit_error *err)
{
	jit_adapter_close(p);
	return p ? JIT_OK : code(err);
}

static jit_image_encoder *encoder;
static jit_image *image;
static jit_prompt *prompt;

static int sees(jit_image_encoder *p, const jit_error *err)
{
	jit_image_encoder_close(p);
	return p ? JIT_OK : code(err);
}

static int shown(jit_image *p, const jit_error *err)
{
	jit_image_close(p);
	return p ? JIT_OK : code(err);
}

static int prompted(jit_prompt *p, const jit_error *err)
{
	jit_prompt_close(p);
	return p ? JIT_OK : code(err);
}

#include "tests/runtime/null_graphs.h"
#include "tests/runtime/null_optimise.h"

static jit_train *train;
static const int32_t train_ids[] = { 1, 2 };

static int training(jit_train *p, const jit_error *err)
{
	jit_train_close(p);
	return p ? JIT_OK : code(err);
}

static int buffered(jit_buffer *p, const jit_error *err)
{
	jit_buffer_close(p);
	return p ? JIT_OK : code(err);
}

static int launched(jit_launch *p, const jit_error *err)
{
	jit_launch_close(p);
	return p ? JIT_OK : code(err);
}

static int gathered(jit_batch *p, const jit_error *err)
{
	jit_batch_close(p);
	return p ? JIT_OK : code(err);
}

static int answered(jit_answer *p, const jit_error *err)
{
	jit_answer_close(p);
	return p ? JIT_OK : code(err);
}

static int spelled(char *p, const jit_error *err)
{
	free(p);
	return p ? JIT_OK : code(err);
}

/* A key with an array. */
static size_t tokens_key(void)
{
	const int64_t number = jit_model_metadata_find(m, "tokenizer.ggml.tokens");

	assert_true(number >= 0);
	return (size_t)number;
}

/* With a token that was chosen last. */
static jit_session *chose(jit_session *p)
{
	int32_t id;

	assert_int_equal(jit_session_next(p, &id, NULL), JIT_OK);
	return p;
}

/* ---- the rows */

enum meaning { REFUSED, REFUSED_OTHERWISE /* whatever the sentence says */, MAY, NOTHING };

/* What a call may use beside all that. */
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define ROW(function, parameter, meaning, call) \
	static int CAT(call_, __LINE__)(jit_error * err, int32_t * *ours) \
	{ \
		static float floats[1 << 14]; \
		const jit_embedding_text texts[] = { { .ids = ids, .n = 3 } }; \
		static const char *const pair[] = { "a", "b" }; \
		const size_t sizes[] = { 1, 1 }; \
		jit_logprob top[3]; \
		jit_session *ready[1]; \
		jit_chat chat = JIT_CHAT(); \
		char spelt[8]; \
		jit_answer_event event = JIT_ANSWER_EVENT(); \
		jit_forced_call forced = JIT_FORCED_CALL(); \
		int32_t *list = NULL, *types = NULL, id = 0; \
		size_t n = 0; \
		int status = call; \
		(void)floats, (void)texts, (void)top, (void)ready, (void)chat, (void)event, (void)forced, (void)id, \
			(void)n, (void)spelt, (void)pair, (void)sizes; \
		free(types); \
		*ours = list; \
		return status; \
	}
#include "tests/runtime/null_rows.def"
#undef ROW

static const struct row {
	const char *function, *parameter;
	enum meaning meaning;
	int (*call)(jit_error *err, int32_t **ours);
} rows[] = {
#define ROW(function, parameter, meaning, call) { #function, #parameter, meaning, CAT(call_, __LINE__) },
#include "tests/runtime/null_rows.def"
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the headers */

static const struct row *find_row(const char *function, size_t n_function, const char *parameter, size_t n_parameter)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strlen(rows[i].function) == n_function && strlen(rows[i].parameter) == n_parameter &&
		    memcmp(rows[i].function, function, n_function) == 0 &&
		    memcmp(rows[i].parameter, parameter, n_parameter) == 0)
			return &rows[i];
	return NULL;
}

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Whether the comment in front of a declaration, or of those before it, says "NULL". */
static bool comment_says_null(const char *text, const char *declaration)
{
	const char *begins = declaration, *ends;

	while (begins > text && strncmp(begins, "/*", 2) != 0)
		begins--;
	ends = strstr(begins, "*/");
	assert_non_null(ends);
	const char *says = strstr(begins, "NULL");
	return says && says < ends;
}

/* One parameter, from its first byte up to its last; what is a pointer must have a row. */
static bool check_parameter(const char *text, const char *function, size_t n_function, const char *p, const char *end)
{
	const char *name = end;

	if (!memchr(p, '*', (size_t)(end - p)))
		return false;
	while (!is_name(name[-1]))
		name--;
	const char *last = name;
	while (is_name(name[-1]))
		name--;
	if (last - name == 3 && memcmp(name, "err", 3) == 0)
		return false;
	const struct row *r = find_row(function, n_function, name, (size_t)(last - name));
	if (!r)
		fail_msg("%.*s: %.*s has no row", (int)n_function, function, (int)(last - name), name);
	const bool result = strncmp(p + strspn(p, " \n"), "const", 5) != 0;
	if (r->meaning == MAY && result && !comment_says_null(text, function))
		fail_msg("%s: nothing says that %s may be NULL", r->function, r->parameter);
	return true;
}

/* A declaration begins a line, and ends with a semicolon. Returns how many pointers it has. */
static unsigned check_declaration(const char *text, const char *line)
{
	const char *function = strstr(line, "jit_"), *open = strchr(line, '('), *end = strchr(open, ';');
	unsigned n = 0;

	while (function &&
	       !(function < open && strchr("( ", function[strspn(function, "abcdefghijklmnopqrstuvwxyz_")]) &&
	         function + strspn(function, "abcdefghijklmnopqrstuvwxyz_") == open))
		function = strstr(function + 1, "jit_");
	assert_true(function && end);
	for (const char *p = open + 1, *comma; p < end; p = comma + 1) {
		comma = p + strcspn(p, ",)");
		n += check_parameter(text, function, (size_t)(open - function), p, comma);
	}
	return n;
}

static void every_pointer_has_a_row(void **state)
{
	unsigned pointers = 0, functions = 0;
	char where[1024];
	glob_t headers;
	(void)state;

	assert_int_equal(glob(source_path(where, "include/jitrun*.h"), 0, NULL, &headers), 0);
	assert_in_range(headers.gl_pathc, 5, 50);
	for (size_t i = 0; i < headers.gl_pathc; i++) {
		size_t n;
		char *text = (char *)file_bytes(headers.gl_pathv[i], &n);
		text[n] = 0;
		for (const char *line = text; (line = strchr(line, '\n'));) {
			const char *end = strchr(++line, '\n');
			const char *open = strchr(line, '(');
			if (!islower((unsigned char)*line) || strncmp(line, "typedef", 7) == 0 || !open || !end ||
			    open > end)
				continue;
			functions++;
			pointers += check_declaration(text, line);
		}
		free(text);
	}
	globfree(&headers);
	printf("# %u functions with %u pointers\n", functions, pointers);
	assert_in_range(functions, 50, 500);
	assert_in_range(pointers, 70, ROWS);
}

/* ---- the calls */

static void begin(void)
{
	jit_error err = { 0 };

	b = jit_batch_open(m, &JIT_BATCH_OPTIONS(.context = 64, .threads = 1, .kv_bytes = 8 << 20), &err);
	member = b ? jit_batch_session(b, NULL, &err) : NULL;
	s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &err);
	answer = jit_answer_open(m, NULL, &err);
	if (!s || !member || !answer)
		fail_msg("%s", err.message);
	assert_int_equal(jit_session_feed(s, ids, 3, &err), JIT_OK);
}

static void end(void)
{
	jit_answer_close(answer);
	jit_session_close(s);
	jit_session_close(member);
	jit_batch_close(b);
}

static void check_sentence(const struct row *r, int status, const jit_error *err)
{
	if (status != JIT_ERROR_ARGUMENT || err->code != status)
		fail_msg("%s: NULL for %s: status %d, \"%s\"", r->function, r->parameter, status, err->message);
	const bool of_struct = strstr(err->message, "there is no jit_") != NULL;
	char says[64];
	snprintf(says, sizeof says, "%s is NULL", r->parameter);
	if (r->meaning == REFUSED && !of_struct && !strstr(err->message, says))
		fail_msg("%s: NULL for %s: \"%s\" does not name it", r->function, r->parameter, err->message);
}

/* Twice: with a place for the error, and without one. */
static void each_is_refused_or_may_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		for (int with = 1; with >= 0; with--) {
			const struct row *r = &rows[i];
			jit_error err = { 0 };
			int32_t *ours;
			begin();
			const int status = r->call(with ? &err : NULL, &ours);
			free(ours);
			if (r->meaning == REFUSED || r->meaning == REFUSED_OTHERWISE) {
				assert_int_equal(status, JIT_ERROR_ARGUMENT);
				if (with)
					check_sentence(r, status, &err);
				assert_in_range(jit_session_length(s), 3, 4);
				assert_non_null(jit_session_logits(s, NULL)); /* it goes on */
			} else if (status != JIT_OK) {
				fail_msg("%s: NULL for %s: status %d, \"%s\"", r->function, r->parameter, status,
				         err.message);
			}
			end();
		}
}

/* What structs point to. */
static void lists_of_structs_are_there(void **state)
{
	static const char *const none[] = { NULL };
	const jit_sampling bad[] = { JIT_SAMPLING(.n_dry_breakers = 1), JIT_SAMPLING(.n_logit_bias = 1),
		                     JIT_SAMPLING(.n_dry_breakers = 1, .dry_breakers = none) };
	static const char *const says[] = { "dry_breakers is NULL", "logit_bias is NULL", "text 0 is NULL" };
	jit_error err = { 0 };
	(void)state;

	begin();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(jit_session_set_sampling(s, &bad[i], &err), JIT_ERROR_ARGUMENT);
		assert_non_null(strstr(err.message, says[i]));
	}
	assert_int_equal(jit_session_set_stop(s, none, 1, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "text 0 is NULL"));
	end();
}

static int open_all(void **state)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	(void)state;

	setenv("JITRUN_CACHE", "", 1); /* options that are NULL do not turn it off */
	source_path(path, "models/tale-q8_0.gguf");
	assert_non_null(mkdtemp(folder));
	objects = JIT_OBJECTS_OPTIONS(.target = "gfx1100", .dir = folder);
	m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF), &err);
	card = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = "sim:gfx1100", .cache_dir = ""), &err);
	lora_folder(folder, &(struct lora_written){ .module = lora_tale, .n = 2, .rank = 4, .size = 0.1f, .seed = 1 });
	adapter = m ? jit_adapter_open(m, folder, &err) : NULL;
	encoder = encoder_make(m);
	image = encoder ? jit_image_open(encoder, dot, sizeof dot, NULL, &err) : NULL;
	prompt = image ? jit_prompt_open(encoder, "a", 1, 0, NULL, 0, &err) : NULL;
	if (!adapter || !prompt)
		return -1;
	on_card = card ? jit_session_open(card, &JIT_SESSION_OPTIONS(.context = 16, .threads = 1), &err) : NULL;
	compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = "", .threads = 1), &err);
	kernel = compute ? jit_kernel_open(compute, &adding, &err) : NULL;
	launch = kernel ? jit_launch_open(kernel, &err) : NULL;
	buffer = compute ? jit_buffer_open(compute, 64, &err) : NULL;
	open_graphs(compute, &err);
	train = jit_train_open(&JIT_TRAIN_OPTIONS(.model = path, .context = 4, .rank = 1, .targets = "v_proj",
	                                          .cache_dir = "", .threads = 1),
	                       &err);
	if (!specialiser || !train || !open_optimisers(&err))
		return -1;
	if (!launch || !buffer || !m || !on_card || jit_model_get_info(m, &info, &err) != JIT_OK)
		return -1;
	hidden = (size_t)info.hidden;
	vocab = (size_t)info.vocab;
	return 0;
}

static int close_all(void **state)
{
	char line[100];
	(void)state;

	jit_optimiser_close(cma);
	jit_optimiser_close(many);
	jit_train_close(train);
	close_graphs();
	jit_launch_close(launch);
	jit_buffer_close(buffer);
	jit_kernel_close(kernel);
	jit_compute_close(compute);
	jit_session_close(on_card);
	jit_model_close(card);
	jit_prompt_close(prompt);
	jit_image_close(image);
	jit_adapter_close(adapter);
	jit_model_close(m);
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	return system(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pointer_has_a_row),
		cmocka_unit_test(each_is_refused_or_may_be),
		cmocka_unit_test(lists_of_structs_are_there),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
