/* tests/server/t_serve_options.c - jitserve's options by the names of other servers, from the environment and from a
 * file. Command lines are read in this process; what would run instead notes what it was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* behind them */
#include <cmocka.h>

#include "programs/jitserve/jitserve.h"
#include "programs/common/run_pull.h"

enum { SAID = 1 << 15, ARGUMENTS = 40 };

static struct serve_arguments fresh; /* as it is before a command line */
static char said[SAID], dir[] = "/tmp/t_serve_options.XXXXXX";
static int runs, fetches;

/* ---- in the place of the program */

int serve_run(void)
{
	runs++;
	return SERVE_DONE;
}

int serve_probe(void) { return SERVE_FAILED; }

int serve_usage(const char *text)
{
	fprintf(stderr, "jitserve: %s\n", text);
	return SERVE_USAGE;
}

/* Of t_models; here any text will do. */
bool serve_read_keep(const char *text, double *seconds)
{
	*seconds = text ? atof(text) : 0;
	return true;
}

int run_pull_for(const char *program, const char *name, const char *file, bool quiet, char **path)
{
	fetches++;
	*path = strdup(name);
	return 0;
}

/* What a command line is read into lives as long as its program; here many are read in one. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

/* ---- running it */

/* Blanks stand between arguments. The exit status; what was said is in `said`. */
static int serve_line(const char *line)
{
	char path[100],
		name[] = "jitserve", *argv[ARGUMENTS] = { name }, *copy = strdup(line); /* targets point into it */
	int argc = 1, old = dup(2);

	snprintf(path, sizeof path, "%s/said", dir);
	for (char *rest = copy, *one; (one = strsep(&rest, " ")) && argc < ARGUMENTS - 1;)
		if (*one)
			argv[argc++] = one;
	serve = fresh;
	runs = fetches = 0;
	fflush(stderr);
	assert_non_null(freopen(path, "w+", stderr));
	int status = serve_begin(argc, argv);
	fflush(stderr);
	rewind(stderr);
	size_t n = fread(said, 1, sizeof said - 1, stderr);
	said[n] = 0;
	dup2(old, 2);
	close(old);
	return status;
}

#define TAKES(line) assert_true(takes(line))
static bool takes(const char *line)
{
	int status = serve_line(line);

	if (status || !runs)
		print_error("%s: status %d, %s", line, status, said);
	return status == 0 && runs;
}

/* One sentence, which has the text. */
static void refuses(const char *line, const char *says)
{
	int status = serve_line(line);

	if (status != SERVE_USAGE || runs || !strstr(said, says))
		fail_msg("%s: status %d, %s", line, status, said);
}

static void write_config(const char *text)
{
	char path[100];

	snprintf(path, sizeof path, "%s/conf", dir);
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static char *with_config(const char *rest)
{
	static char line[1000];

	snprintf(line, sizeof line, "m.gguf --config %s/conf %s", dir, rest);
	return line;
}

/* ---- tests */

static const struct {
	const char *name;
	int values;
} names[] = {
#define NAME(name, values) { name, values },
#include "tests/server/serve_options.def"
#undef NAME
};

/* Taken, or answered with one sentence: never merely unknown. */
static void test_all_names(void **state)
{
	static const char *const values[] = { "", " 1", " 1 2" };
	char line[300];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(line, sizeof line, "m.gguf %s%s", names[i].name, values[names[i].values]);
		if (strcmp(names[i].name, "--version") == 0 || strcmp(names[i].name, "--help") == 0 ||
		    strcmp(names[i].name, "-h") == 0)
			continue;
		int status = serve_line(line);
		bool answered = status == SERVE_USAGE && !runs && strncmp(said, "jitserve: ", 10) == 0;
		if ((!answered && !(status == 0 && runs)) || strstr(said, "unknown option") ||
		    strstr(said, "did you mean") || strstr(said, "unexpected argument") || strstr(said, "jitrun is") ||
		    strstr(said, "short options"))
			fail_msg("%s: status %d, %s", line, status, said);
	}
}

static void test_same(void **state)
{
	TAKES("-m a.gguf -c 512 -np 3 --host 0.0.0.0 --port 81 -a name --api-key k -n 9 -t 2");
	assert_string_equal(serve.model[0], "a.gguf");
	assert_int_equal(serve.n_models, 1);
	assert_true(serve.context == 512 && serve.parallel == 3 && serve.port == 81 && serve.predict == 9 &&
	            serve.threads == 2);
	assert_string_equal(serve.host, "0.0.0.0");
	assert_string_equal(serve.alias.value[0], "name");
	assert_string_equal(serve.api_key.value[0], "k");
	assert_string_equal(said, "");
	TAKES("m.gguf --ctx-size 1 --max-num-seqs 5 --served-model-name x --max_model_len 700 --temperature 0.5 "
	      "--top_k=3");
	assert_true(serve.context == 700 && serve.parallel == 5 && serve.sampling.top_k == 3);
	TAKES("m.gguf --ssl-key-file k --ssl-cert-file c --slot-save-path s --no-webui --timeout 9 --predict 4");
	assert_true(serve.no_page && serve.read_seconds == 9 && serve.predict == 4);
	assert_string_equal(serve.tls_key, "k");
	assert_string_equal(serve.tls_cert, "c");
	assert_string_equal(serve.slot_save, "s");
	TAKES("m.gguf --ssl-keyfile k2 --ssl-certfile c2 -ctk q8_0 -ctv q8_0 -dev ref --chat-template-file t");
	assert_string_equal(serve.tls_key, "k2");
	assert_string_equal(serve.kv_type, "q8_0");
	assert_string_equal(serve.device, "ref");
	assert_string_equal(serve.template_file, "t");
	TAKES("m.gguf --allowed-origins [\"https://a\",\"https://b\"] --kv-cache-dtype auto --max-model-len auto");
	assert_int_equal(serve.cors_origin.n, 2);
	assert_string_equal(serve.cors_origin.value[1], "https://b");
	assert_string_equal(serve.kv_type, "f16");
	TAKES("m.gguf --cors-origins * --chat-template /dev/null --reasoning auto --reasoning-budget -1");
	assert_string_equal(serve.cors_origin.value[0], "*");
	assert_string_equal(serve.template_file, "/dev/null");
	TAKES("--models-dir d --models-max 3 --sleep-idle-seconds 60 --sse-ping-interval 7");
	assert_true(serve.models_max == 3 && serve.keep == 60 && serve.alive_seconds == 7);
	TAKES("-hf o/n:Q8_0 -hff f.gguf");
	assert_true(fetches == 1 && serve.n_models == 1);
	TAKES("a.gguf b.gguf -m c.gguf --model d.gguf --hf-repo o/n");
	assert_true(serve.n_models == 5 && strcmp(serve.model[4], "o/n") == 0);
	refuses("m.gguf -ctk q8_0", "keys and values have one type here");
	refuses("m.gguf -hff f", "--hf-file goes with --hf-repo");
	refuses("m.gguf --chat-template chatml", "--template FILE");
	refuses("m.gguf --tensor-parallel-size", "needs a value");
	refuses("m.gguf --keep 5", "context");
	refuses("m.gguf --pipeline-parallel-size 2", "one machine");
	TAKES("m.gguf --keep 0 --pipeline-parallel-size 1 --dtype bfloat16 --no-context-shift");
	TAKES("m.gguf -ngl 99 -fa on -cb --jinja --mlock -fa --metrics --enable-auto-tool-choice -b 2048 -ub 512 -v "
	      "-q");
	TAKES("m.gguf --enable-chunked-prefill --no-enable-prefix-caching --no-enforce-eager "
	      "--compilation-config.level 3");
	assert_non_null(strstr(said, "jitserve: --enable-chunked-prefill is not used: "));
}

static void test_environment(void **state)
{
	setenv("JITRUN_CONTEXT", "600", 1);
	setenv("LLAMA_ARG_CTX_SIZE", "500", 1);
	setenv("LLAMA_ARG_N_PARALLEL", "7", 1);
	setenv("JITRUN_API_KEY", "a,b", 1);
	setenv("JITRUN_NO_PAGE", "true", 1);
	setenv("JITRUN_VERBOSE", "0", 1);
	setenv("LLAMA_ARG_ENDPOINT_SLOTS", "0", 1);
	setenv("JITRUN_TEMP", "", 1);
	TAKES("m.gguf");
	assert_true(serve.context == 600 && serve.parallel == 7 && serve.no_page && !serve.verbose && serve.no_slots);
	assert_int_equal(serve.api_key.n, 2);
	TAKES("m.gguf -c 5 --api-key z --parallel 2");
	assert_true(serve.context == 5 && serve.parallel == 2 && serve.api_key.n == 1);
	unsetenv("JITRUN_CONTEXT");
	TAKES("m.gguf");
	assert_true(serve.context == 500);
	setenv("LLAMA_ARG_ENDPOINT_SLOTS", "1", 1);
	TAKES("m.gguf");
	assert_false(serve.no_slots);
	setenv("JITRUN_NO_PAGE", "maybe", 1);
	refuses("m.gguf", "jitserve: JITRUN_NO_PAGE: \"maybe\" is neither true nor false");
	unsetenv("JITRUN_NO_PAGE");
	setenv("JITRUN_PORT", "x", 1);
	refuses("m.gguf", "jitserve: JITRUN_PORT: --port: \"x\" is not a whole number");
	TAKES("m.gguf --port 1");
	unsetenv("JITRUN_PORT");
	setenv("JITRUN_MODEL", "env.gguf", 1);
	TAKES("");
	assert_string_equal(serve.model[0], "env.gguf");
	TAKES("line.gguf");
	assert_true(serve.n_models == 1 && strcmp(serve.model[0], "line.gguf") == 0);
	unsetenv("JITRUN_MODEL");
	refuses("", "which model?");
	write_config("context = 11\nparallel = 12\nqueue = 13\n");
	TAKES(with_config("-np 1"));
	assert_true(serve.parallel == 1 && serve.context == 500 && serve.queue == 13);
	unsetenv("LLAMA_ARG_CTX_SIZE");
	unsetenv("LLAMA_ARG_N_PARALLEL");
	unsetenv("JITRUN_API_KEY");
	unsetenv("LLAMA_ARG_ENDPOINT_SLOTS");
}

/* Every option can come from the environment; each has a value that is not its default. */
static void test_file(void **state)
{
	write_config("# a comment\n; another\n\n  context=512 \r\nno-page\nverbose = false\nno-slots = yes\n"
	             "api-key = \"k 1\"\napi-key = k,2\ntemp = 0.25\nctx-size = 513\nalias = 'x'\nhost = ::1");
	TAKES(with_config(""));
	assert_true(serve.context == 513 && serve.no_page && !serve.verbose && serve.no_slots && serve.api_key.n == 2);
	assert_string_equal(serve.api_key.value[0], "k 1");
	assert_string_equal(serve.api_key.value[1], "k,2");
	assert_string_equal(serve.alias.value[0], "x");
	assert_string_equal(serve.host, "::1");
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ "context = 5\nfrobnicate = 1\n", "conf:2: there is no option \"frobnicate\"" },
		{ "\ncontext = x\n", "conf:2: --context: \"x\" is not a whole number" },
		{ "context\n", "conf:1: context needs a value" },
		{ "[server]\n", "conf:1: [server]: there are no sections" },
		{ "no-page = perhaps\n", "conf:1: \"perhaps\" is neither" },
		{ "config = x\n", "conf:1: config stands on the command line alone" },
		{ "help\n", "conf:1: help stands on the command line alone" },
		{ "kv-type = q4_0\n", "conf:1: --kv-type: \"q4_0\" is not one of" },
		{ "= 5\n", "conf:1: there is no option" },
		{ "", "--config" },
		{ "\xff\xfe"
		  "a",
		  "--config" },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		write_config(wrong[i].text);
		refuses(with_config(""), wrong[i].says);
	}
	refuses("m.gguf --config /nowhere/conf", "--config: /nowhere/conf");
	write_config("model = file.gguf\nmodel = two.gguf\n");
	TAKES(with_config("") + strlen("m.gguf "));
	assert_true(serve.n_models == 2 && strcmp(serve.model[1], "two.gguf") == 0);
	TAKES(with_config(""));
	assert_true(serve.n_models == 1);
	write_config("port = 99\n");
	setenv("JITRUN_CONFIG", with_config("") + strlen("m.gguf --config "), 1);
	char *blank = strchr(getenv("JITRUN_CONFIG"), ' ');
	*blank = 0;
	TAKES("m.gguf");
	assert_int_equal(serve.port, 99);
	unsetenv("JITRUN_CONFIG");
}

static int begin(void **state)
{
	extern char **environ;

	for (char **e = environ; *e;) {
		char name[200];
		snprintf(name, sizeof name, "%.*s", (int)strcspn(*e, "="), *e);
		if (strncmp(name, "LLAMA_", 6) == 0 || strncmp(name, "JITRUN_", 7) == 0 ||
		    strncmp(name, "VLLM_", 5) == 0)
			unsetenv(name);
		else
			e++;
	}
	fresh = serve;
	return mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
	char line[100];

	snprintf(line, sizeof line, "rm -r %s", dir);
	return system(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_names), cmocka_unit_test(test_same),
		                            cmocka_unit_test(test_environment), cmocka_unit_test(test_file) };

	return cmocka_run_group_tests(tests, begin, end);
}
