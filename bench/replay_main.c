/* bench/replay_main.c - decodes known answers to known prompts with speculation and without, in alternation.
 *
 * How many draft tokens are accepted depends on what a model answers, and a model with random weights answers nothing
 * like a text. So the answer is given: each token is forced as if the model had chosen it, and everything else is done
 * as always. The two sessions alternate every few tokens, so that a slow phase of the machine slows both. Both keep
 * the prompt, and what they learn, from repetition to repetition; the first repetition is the cold one. Built with the
 * rest, not installed.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "bench/json_file.h"
#include "base/json_read.h"
#include "programs/common/options.h"
#include "programs/common/output.h"
#include "programs/common/shared_rows.h"
#include "runtime/session/session.h"
#include "runtime/host/system.h"

enum { REPETITIONS_MAX = 100, PROMPT_MAX = 2000, CHUNK = 8 };

struct replay_options {
	const char *path;
	int threads;
	long tokens, repetitions;
};

struct text {
	const char *name;
	int32_t *ids;
	size_t n_prompt, n;
};

static bool fail(jit_error *err, const char *path, const char *what)
{
	snprintf(err->message, sizeof err->message, "%s: %s", path, what);
	return false;
}

/* The string of that name, with n bytes; NULL: there is none, or one that is no text. */
static const char *text_of(const json_t *o, const char *name, size_t *n)
{
	const json_t *v = json_object_get(o, name);

	*n = json_string_length(v);
	return json_is_text(v) ? json_string_value(v) : NULL;
}

/* Prompt and answer as tokens; cut so that the prompt ends at n_prompt and at most `tokens` follow. */
static bool read_text(jit_model *m, json_t *o, long tokens, struct text *t, jit_error *err)
{
	size_t n_prompt, n_output, n_name, n_answer = 0;
	const char *prompt = text_of(o, "prompt", &n_prompt), *output = text_of(o, "output", &n_output);
	int32_t *answer = NULL;

	t->name = text_of(o, "name", &n_name);
	if (!prompt || !t->name) {
		snprintf(err->message, sizeof err->message, "an entry lacks \"name\" or \"prompt\"");
		return false;
	}
	if (jit_model_tokenize(m, prompt, n_prompt, 1, 1, &t->ids, &t->n_prompt, err) != JIT_OK)
		return false;
	if (output && jit_model_tokenize(m, output, n_output, 0, 0, &answer, &n_answer, err) != JIT_OK)
		return false;
	if (!output)
		t->n = t->n_prompt, t->n_prompt /= 2;
	else {
		int32_t *all = realloc(t->ids, (t->n_prompt + n_answer + 1) * sizeof *all);
		if (!all) {
			free(answer);
			snprintf(err->message, sizeof err->message, "no memory for %zu tokens", t->n_prompt + n_answer);
			return false;
		}
		memcpy(all + t->n_prompt, answer, n_answer * sizeof *all);
		t->ids = all;
		t->n = t->n_prompt + n_answer;
	}
	free(answer);
	if (t->n > t->n_prompt + (size_t)tokens)
		t->n = t->n_prompt + (size_t)tokens;
	return true;
}

static bool start(jit_session *s, const struct text *t, jit_error *err)
{
	session_force(s, t->ids, t->n);
	return jit_session_rewind(s, t->n_prompt - 1, err) == JIT_OK &&
	       jit_session_feed(s, t->ids + t->n_prompt - 1, 1, err) == JIT_OK;
}

/* Seconds of each session for the answer; both have the prompt. */
static bool decode(jit_session *const s[2], const struct text *t, double seconds[2], jit_error *err)
{
	int32_t id;

	if (!start(s[0], t, err) || !start(s[1], t, err))
		return false;
	seconds[0] = seconds[1] = 0;
	for (size_t at = t->n_prompt, chunk = 0; at < t->n; at += CHUNK, chunk++)
		for (size_t i = 0; i < 2; i++) {
			size_t which = (chunk + i) % 2;
			double began = system_seconds();
			for (size_t k = at; k < at + CHUNK && k < t->n; k++)
				if (jit_session_next(s[which], &id, err) != JIT_OK)
					return false;
			seconds[which] += system_seconds() - began;
		}
	return true;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static bool replay_text(jit_model *m, const struct replay_options *o, const struct text *t, jit_error *err)
{
	double ratio[REPETITIONS_MAX], plain[REPETITIONS_MAX], drafting[REPETITIONS_MAX], first = 0;
	jit_session *s[2] = { NULL, NULL };
	jit_session_stats stats = JIT_SESSION_STATS();
	bool ok = true;

	for (int i = 0; ok && i < 2; i++) {
		jit_session_options so = JIT_SESSION_OPTIONS(.context = (int)t->n + 1, .threads = o->threads,
		                                             .speculate = i ? JIT_SPECULATE_AUTO : JIT_SPECULATE_OFF);
		s[i] = jit_session_open(m, &so, err);
		ok = s[i] && jit_session_feed(s[i], t->ids, t->n_prompt, err) == JIT_OK;
	}
	for (long r = 0; ok && r < o->repetitions; r++) {
		double seconds[2];
		if (!(ok = decode(s, t, seconds, err)))
			break;
		plain[r] = (double)(t->n - t->n_prompt) / seconds[0];
		drafting[r] = (double)(t->n - t->n_prompt) / seconds[1];
		ratio[r] = seconds[0] / seconds[1];
		first = r ? first : ratio[r];
	}
	if (ok) {
		jit_session_get_stats(s[1], &stats, NULL);
		qsort(ratio, (size_t)o->repetitions, sizeof *ratio, compare);
		qsort(plain, (size_t)o->repetitions, sizeof *plain, compare);
		qsort(drafting, (size_t)o->repetitions, sizeof *drafting, compare);
		printf("%-20.20s %6zu %6zu  %8.2f %8.2f  %6.3f %6.3f %6.3f %6.3f  %6.2f  %6.1f %%\n", t->name,
		       t->n_prompt, t->n - t->n_prompt, plain[o->repetitions / 2], drafting[o->repetitions / 2],
		       ratio[o->repetitions / 2], ratio[0], ratio[o->repetitions - 1], first,
		       (double)stats.decode_tokens / (double)stats.decode_passes,
		       stats.drafted ? 100 * (double)stats.accepted / (double)stats.drafted : 0);
		fflush(stdout);
	}
	jit_session_close(s[0]);
	jit_session_close(s[1]);
	return ok;
}

static bool replay_run(jit_model *m, const struct replay_options *o, jit_error *err)
{
	struct error e = { 0 };
	json_t *all = json_file_read(o->path, JSON_MAX_INDEX, &e), *entry;
	bool ok = json_is_array(all);
	size_t i;

	if (!ok && all)
		fail(err, o->path, "not a JSON array");
	else if (!ok)
		snprintf(err->message, sizeof err->message, "%s", e.text);
	else
		printf("%-20s %6s %6s  %8s %8s  %6s %6s %6s %6s  %6s  %8s\n", "text", "prompt", "answer", "plain/s",
		       "draft/s", "ratio", "least", "most", "first", "t/pass", "accepted");
	json_array_foreach(all, i, entry)
	{
		struct text t = { 0 };
		if (!ok)
			break;
		ok = read_text(m, entry, o->tokens, &t, err);
		if (ok && (t.n_prompt == 0 || t.n <= t.n_prompt || t.n_prompt > PROMPT_MAX))
			printf("%-20.20s %6zu tokens of prompt and %zu of answer: left out\n", t.name, t.n_prompt,
			       t.n - t.n_prompt);
		else
			ok = ok && replay_text(m, o, &t, err);
		free(t.ids);
	}
	json_decref(all);
	return ok;
}

static struct {
	long tokens, repetitions, threads;
	bool help;
} opt = { .tokens = 128, .repetitions = 3 };

static const struct option_row rows[] = {
	{ .name = "tokens",
	  .letter = 'n',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "most tokens of an answer (128)",
	  .low = 1,
	  .high = 1 << 20,
	  .target = &opt.tokens },
	{ .name = "repetitions",
	  .letter = 'r',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "repeat each answer N times (3)",
	  .low = 1,
	  .high = REPETITIONS_MAX,
	  .target = &opt.repetitions },
	ROW_THREADS(opt.threads),
	{ .name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "print this help", .target = &opt.help },
};

int main(int argc, char **argv)
{
	const char *operand[2] = { NULL, NULL };
	struct option_program program = {
		.name = "replay",
		.usage = "MODEL TEXTS [options]",
		.purpose = "decode known answers with speculation and without; TEXTS is a JSON array of objects with "
			   "\"name\", \"prompt\" and \"output\", and a prompt without output is cut in two",
		.row = rows,
		.n_rows = sizeof rows / sizeof rows[0],
		.operand = operand,
		.max_operands = 2
	};
	jit_error err = { 0 };

	if (!options_parse(&program, argc, argv))
		return 2;
	if (opt.help) {
		options_help(&program, true, output_columns(stdout), stdout);
		return 0;
	}
	if (!operand[1]) {
		fprintf(stderr, "replay: which model and which texts?\nTry 'replay --help'.\n");
		return 2;
	}
	struct replay_options o = {
		.path = operand[1], .threads = (int)opt.threads, .tokens = opt.tokens, .repetitions = opt.repetitions
	};
	jit_model *m = jit_model_open(operand[0], NULL, &err);
	bool ok = m && replay_run(m, &o, &err);
	if (!ok)
		fprintf(stderr, "replay: %s.\n", err.message);
	jit_model_close(m);
	return !ok;
}
