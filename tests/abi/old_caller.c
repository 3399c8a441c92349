/* tests/abi/old_caller.c - a program of another version's time: compiled against the headers recorded in tests/abi/0.2,
 * run with the library of today. Uses every struct and every function of theirs, and prints the tokens it chose.
 *
 * old_caller MODEL DIRECTORY
 */
#include <jitrun_cards.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 24, VOCAB = 4096 };
static jit_error err;

#define WANT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: " #condition ": %s\n", __LINE__, err.message); \
			exit(1); \
		} \
	} while (0)

static int loaded(void *user, uint64_t done, uint64_t total)
{
	*(uint64_t *)user = done;
	return done > total;
}

/* The tokens after the prompt, and what is said of them. */
static void generate(jit_model *m, jit_session *s, const int32_t *ids, size_t n)
{
	size_t bytes, text_bytes = 0;
	int32_t id;

	WANT(jit_session_feed(s, ids, n, &err) == JIT_OK);
	for (int i = 0; i < STEPS; i++) {
		WANT(jit_session_next(s, &id, &err) == JIT_OK);
		WANT(jit_session_text(s, id, &bytes, &err) != NULL);
		WANT(!jit_model_is_end(m, id));
		text_bytes += bytes;
		printf(i ? " %d" : "%d", id);
	}
	putchar('\n');
	WANT(jit_session_text(s, -1, &bytes, &err) != NULL);
	WANT(text_bytes > STEPS / 2);
	WANT(jit_session_length(s) == n + STEPS);
	WANT(memcmp(jit_session_ids(s), ids, n * sizeof *ids) == 0);
	WANT(jit_session_logits(s, &err) != NULL);
}

static void ask(jit_model *m, jit_session *s, size_t n)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_card_stats card = JIT_CARD_STATS();
	char *report = jit_session_report(s, 1, &err);

	WANT(report != NULL && report[0] == '{');
	free(report);
	WANT(jit_model_get_info(m, &info, &err) == JIT_OK);
	WANT(info.size == sizeof info && info.vocab == VOCAB && info.has_tokenizer == 1 && info.weight_bytes > 0);
	WANT(strstr(info.description, "layers") != NULL && info.load_seconds > 0);
	WANT(jit_session_get_stats(s, &stats, &err) == JIT_OK);
	WANT(stats.size == sizeof stats && stats.prompt_tokens == n && stats.decode_tokens == STEPS);
	WANT(stats.threads == 2 && stats.context == 100 && stats.speculation[2].tokens == 16 && stats.kv_bytes > 0);
	WANT(stats.kernels == stats.kernels_generated && stats.kernels > 5);
	WANT(jit_session_get_card_stats(s, &card, &err) == JIT_ERROR_UNSUPPORTED);
}

static void score(jit_session *s, const int32_t *ids, size_t n, const char *dir)
{
	float logprob[64] = { 1 };
	char path[1024];

	WANT(n <= 64 && jit_session_rewind(s, 0, &err) == JIT_OK);
	WANT(jit_session_score(s, ids, n, logprob, &err) == JIT_OK);
	WANT(logprob[0] == 0 && logprob[1] < 0);
	WANT(jit_session_rewind(s, 0, &err) == JIT_OK);
	WANT(jit_session_feed_text(s, "Once", 4, 0, &err) == JIT_OK);
	snprintf(path, sizeof path, "%s/trace", dir);
	WANT(jit_session_trace(s, path, &err) == JIT_OK);
}

static void use(const char *path, const char *dir)
{
	static const char prompt[] = "Once upon a time";
	uint64_t done = 0;
	int32_t *ids;
	size_t n, n_text;
	char code[1024];

	snprintf(code, sizeof code, "%s/code", dir);
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = "cpu", .cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF,
	                                         .dump_asm = code, .progress = loaded, .progress_user = &done);
	jit_model *m = jit_model_open(path, &mo, &err);
	WANT(m != NULL && done > 0);
	jit_sampling sampling = JIT_SAMPLING(.temperature = 0.9f, .top_k = 50, .top_p = 0.95f, .min_p = 0.01f,
	                                     .repeat_penalty = 1.1f, .repeat_window = 32, .seed = 7);
	jit_card_options card = JIT_CARD_OPTIONS(.launch = JIT_LAUNCH_OP, .workgroups = 3, .units = 2);
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 100, .threads = 2, .batch = 5, .kv = JIT_KV_F32,
	                                             .speculate = JIT_SPECULATE_OFF, .profile = JIT_PROFILE_EVENTS,
	                                             .sampling = &sampling, .card = &card);
	jit_session *s = jit_session_open(m, &so, &err);
	WANT(s != NULL);
	WANT(jit_model_tokenize(m, prompt, strlen(prompt), 1, 0, &ids, &n, &err) == JIT_OK);
	char *text = jit_model_detokenize(m, ids, n, &n_text, &err);
	WANT(text && n_text == strlen(prompt) && strcmp(text, prompt) == 0);
	free(text);
	generate(m, s, ids, n);
	ask(m, s, n);
	score(s, ids, n, dir);
	sampling.top_p = 2;
	WANT(jit_session_set_sampling(s, &sampling, &err) == JIT_ERROR_ARGUMENT && strstr(err.message, "top_p: 2"));
	WANT(jit_session_set_sampling(s, NULL, &err) == JIT_OK);
	WANT(jit_model_written(m, &err) == JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
	free(ids);
}

int main(int argc, char **argv)
{
	jit_device_info device = JIT_DEVICE_INFO();
	jit_objects made = JIT_OBJECTS();

	if (argc != 3)
		return 2;
	WANT(jit_device_count() > 2);
	WANT(jit_device_get_info(0, &device, &err) == JIT_OK && strcmp(device.name, "cpu") == 0);
	use(argv[1], argv[2]);
	WANT(jit_write_objects(argv[1], &JIT_OBJECTS_OPTIONS(.target = "gfx1100", .dir = argv[2], .kv = JIT_KV_F16),
	                       &made, &err) == JIT_OK);
	WANT(made.programs == 4 && made.kernels > 10 && made.bytes > 10000);
	fprintf(stderr, "headers %s, library %s\n", JITRUN_VERSION, jit_version());
	return 0;
}
