/* tests/loaders/tokenizer_vectors.c - see tokenizer_vectors.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/files/gguf.h"
#include "loaders/files/file.h"
#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/tokenizer_vectors.h"

bool is_json(const char *path) { return strlen(path) > 5 && !strcmp(path + strlen(path) - 5, ".json"); }

bool open_text(struct file *f, const char *path, struct error *err)
{
	return file_open(f, path, err) && file_text(f, FILE_MAX_HEAD, err);
}

static bool open_config(struct opened *o, const char *path)
{
	char config[1100];
	struct error err = { 0 };
	const char *slash = strrchr(path, '/');

	snprintf(config, sizeof config, "%.*s/tokenizer_config.json", (int)(slash - path), path);
	return open_text(&o->config, config, &err);
}

struct tokenizer *open_vocab(struct opened *o, const char *relative)
{
	char path[1024];
	struct error err = { 0 };

	memset(o, 0, sizeof *o);
	if (!shared_path(path, relative))
		return NULL;
	if (is_json(path) ? !open_text(&o->file, path, &err) : !file_open(&o->file, path, &err))
		fail_msg("%s", err.text);
	if (is_json(path)) {
		open_config(o, path); /* absent: its base is NULL */
		o->t = tokenizer_from_json((struct tokenizer_text){ (const char *)o->file.base, o->file.size, path },
		                           (struct tokenizer_text){ (const char *)o->config.base, o->config.size,
		                                                    "tokenizer_config.json" },
		                           0, &err);
	} else if (gguf_open(&o->g, &o->file, false, &err)) {
		o->t = tokenizer_from_gguf(&o->g, 0, &err);
	}
	if (!o->t)
		fail_msg("%s", err.text);
	return o->t;
}

void close_vocab(struct opened *o)
{
	tokenizer_close(o->t);
	if (o->g.kv)
		gguf_free(&o->g);
	file_close(&o->config);
	file_close(&o->file);
}

char *slurp(const char *relative, size_t *n)
{
	char path[1024];
	struct file m;
	struct error err = { 0 };

	if (!shared_path(path, relative) || !open_text(&m, path, &err))
		return NULL;
	char *text = malloc(m.size + 1);
	assert_non_null(text);
	memcpy(text, m.base, m.size);
	text[m.size] = 0;
	*n = m.size;
	file_close(&m);
	return text;
}

json_t *load_json(const char *relative)
{
	size_t n;
	char *text = slurp(relative, &n);
	json_t *root = text ? json_loadb(text, n, JSON_ALLOW_NUL, NULL) : NULL;

	if (text)
		assert_non_null(root);
	free(text);
	return root;
}

void check_ids(const struct tokenizer *t, const char *where, const char *text, size_t n, unsigned flags,
               const int32_t *want, size_t n_want)
{
	struct error err = { 0 };
	int32_t *ids;
	size_t got, i = 0;

	if (!tokenizer_encode(t, text, n, flags, &ids, &got, &err))
		fail_msg("%s: %s", where, err.text);
	while (i < got && i < n_want && ids[i] == want[i])
		i++;
	if (i < got || i < n_want)
		fail_msg("%s: \"%.60s\": token %zu of %zu is %d, expected %d (%zu tokens)", where, text, i, got,
		         i < got ? ids[i] : -1, i < n_want ? want[i] : -1, n_want);
	free(ids);
}

void check_text(const struct tokenizer *t, const char *where, const int32_t *ids, size_t n, bool special,
                const char *want, size_t n_want)
{
	struct error err = { 0 };
	size_t got;
	char *text = tokenizer_decode(t, ids, n, special, &got, &err);

	assert_non_null(text);
	if (got != n_want || memcmp(text, want, got))
		fail_msg("%s: \"%.60s\" expected \"%.60s\"", where, text, want);
	free(text);
}

int32_t *ids_of(const json_t *array, size_t *n)
{
	*n = json_array_size(array);
	int32_t *ids = malloc((*n + 1) * sizeof *ids);
	assert_non_null(ids);
	for (size_t i = 0; i < *n; i++)
		ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
	return ids;
}
