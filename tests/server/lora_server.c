/* tests/server/lora_server.c - a server with eight adapters (lora_server.h). */
#include "tests/server/lora_server.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"

char lora_dir[] = "/tmp/jitrun-lora-XXXXXX";
char lora_of[LORA_ADAPTERS][64];
static char option[LORA_ADAPTERS][80];
struct child lora_server; /* with all adapters as a0 to a7, and a folder of them */

static const char *arguments[40];

/* The server's arguments: adapters with names, then these up to a NULL. */
const char *const *lora_arguments(const char *const *more)
{
	size_t n = 0;

	arguments[n++] = "--no-cache";
	arguments[n++] = "--context";
	arguments[n++] = "256";
	for (int i = 0; i < LORA_ADAPTERS; i++) {
		arguments[n++] = "--lora";
		arguments[n++] = option[i];
	}
	while (*more)
		arguments[n++] = *more++;
	arguments[n] = NULL;
	return arguments;
}

int lora_begin(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(lora_dir));
	for (int i = 0; i < LORA_ADAPTERS; i++) {
		snprintf(lora_of[i], sizeof lora_of[i], "%s/f%d", lora_dir, i);
		snprintf(option[i], sizeof option[i], "a%d=%s", i, lora_of[i]);
		assert_int_equal(mkdir(lora_of[i], 0700), 0);
		lora_folder(lora_of[i], &(struct lora_written){ .module = lora_tale,
		                                                .n = i == 3 ? 5 : 14,
		                                                .rank = i == 2 ? 3 : 4,
		                                                .size = 0.12f,
		                                                .seed = (uint64_t)i + 1,
		                                                .config = ", \"lora_alpha\": 8" });
	}
	lora_server =
		child_start(lora_arguments((const char *[]){ "--lora-dir", lora_dir, "--slot-save", lora_dir, NULL }));
	return 0;
}

int lora_end(void **state)
{
	static const char *const files[] = { "adapter_model.safetensors", "adapter_config.json" };
	char path[700];
	(void)state;

	for (int i = 0; i < LORA_ADAPTERS; i++) {
		for (int k = 0; k < 2; k++) {
			snprintf(path, sizeof path, "%s/%s", lora_of[i], files[k]);
			unlink(path);
		}
		rmdir(lora_of[i]);
	}
	snprintf(path, sizeof path, "%s/kept", lora_dir);
	unlink(path);
	rmdir(lora_dir);
	return child_stop(&lora_server);
}

/* ---- what must have the same bits: the tokens, and how likely each was */

char *lora_bits(json_t *o)
{
	char *text = json_dumps(json_object_get(o, "completion_probabilities"), JSON_REAL_PRECISION(17));

	assert_true(text && strlen(text) > 100);
	json_decref(o);
	return text;
}

void lora_body(char out[600], const char *prompt, const char *more)
{
	snprintf(out, 600, "{\"prompt\":\"%s\",\"n_predict\":%d,\"temperature\":0.7,\"seed\":3,\"n_probs\":2%s%s}",
	         prompt, LORA_TOKENS, *more ? "," : "", more);
}

char *lora_ask(const struct child *c, const char *prompt, const char *more)
{
	char body[600];

	lora_body(body, prompt, more);
	return lora_bits(client_json(c, "/completion", body, 200));
}

void lora_same(char *a, char *b, const char *what)
{
	if (strcmp(a, b) != 0)
		fail_msg("%s: other bits: %.300s ... %.300s", what, a, b);
	free(a);
	free(b);
}

void lora_other(char *a, char *b, const char *what)
{
	if (strcmp(a, b) == 0)
		fail_msg("%s: the same bits", what);
	free(a);
	free(b);
}

void lora_refused(const char *path, const char *body, int status, const char *words)
{
	json_t *o = client_json(&lora_server, path, body, status);
	const char *message = json_string_value(json_object_get(json_object_get(o, "error"), "message"));

	if (!message || !strstr(message, words))
		fail_msg("%s %s: \"%s\" is not in: %s", path, body, words, message ? message : "nothing");
	assert_null(strstr(message, lora_dir)); /* where files lie is told to nobody */
	json_decref(o);
}

double lora_metric(const char *line)
{
	struct answer a = client_ask(&lora_server, "/metrics", NULL, NULL);
	const char *at = strstr(a.body, line);

	if (!at)
		fail_msg("%s is not in %s", line, a.body);
	const double value = atof(at + strlen(line));
	answer_free(&a);
	return value;
}

json_t *lora_listed(const struct child *c)
{
	struct answer a = client_ask(c, "/lora-adapters", NULL, NULL);
	json_t *o = json_loads(a.body, 0, NULL);

	assert_true(a.status == 200 && json_is_array(o));
	answer_free(&a);
	return o;
}
