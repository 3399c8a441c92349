/* train/data.c - texts as rows of tokens. */
#include "train/data.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_read.h"
#include "loaders/tokenizer/tokenizer.h"

void data_free(struct data *d)
{
	free(d->ids);
	free(d->texts);
	free(d->counts);
	free(d->row);
	memset(d, 0, sizeof *d);
}

/* ---- rows */

static bool reserve(struct data *d, size_t n, struct error *err)
{
	if (d->tokens + n > d->token_room) {
		const size_t room = (d->tokens + n) * 2;
		int32_t *ids = realloc(d->ids, room * sizeof *ids), *texts;
		d->ids = ids ? ids : d->ids;
		texts = ids ? realloc(d->texts, room * sizeof *texts) : NULL;
		d->texts = texts ? texts : d->texts;
		uint8_t *counts = texts ? realloc(d->counts, room) : NULL;
		if (!counts)
			return error_set(err, ERROR_MEMORY, "there is no memory for the data");
		d->counts = counts;
		d->token_room = room;
	}
	if (d->rows == d->row_room) {
		struct data_row *row = realloc(d->row, (d->row_room * 2 + 16) * sizeof *row);
		if (!row)
			return error_set(err, ERROR_MEMORY, "there is no memory for the data");
		d->row = row;
		d->row_room = d->row_room * 2 + 16;
	}
	return true;
}

static void mix(struct data *d, uint64_t x)
{
	d->digest = (d->digest ^ x) * 0x9E3779B97F4A7C15;
	d->digest ^= d->digest >> 29;
}

/* Behind the last row's texts, where there is room, or in a row of its own. */
static bool put(struct data *d, const struct data_options *o, const int32_t *ids, const uint8_t *counts, size_t n,
                struct error *err)
{
	struct data_row *last;

	if (!reserve(d, n, err))
		return false;
	last = d->rows ? &d->row[d->rows - 1] : NULL;
	if (o->apart || !last || last->n + n > o->context) {
		d->row[d->rows++] = (struct data_row){ d->tokens, 0 };
		last = &d->row[d->rows - 1];
		mix(d, UINT64_MAX);
	}
	const int32_t text = last->n ? d->texts[d->tokens - 1] + 1 : 0;
	for (size_t i = 0; i < n; i++) {
		const bool is = i > 0 && (!counts || counts[i]);
		d->ids[d->tokens] = ids[i];
		d->texts[d->tokens] = text;
		d->counts[d->tokens++] = is;
		d->counted += is;
		mix(d, (uint64_t)(uint32_t)ids[i] << 33 | (uint64_t)(uint32_t)text << 1 | is);
	}
	last->n += n;
	return true;
}

static bool counts_any(const uint8_t *counts, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!counts || counts[i])
			return true;
	return false;
}

bool data_add(struct data *d, const struct data_options *o, const int32_t *ids, const uint8_t *counts, size_t n,
              const char *path, size_t line, struct error *err)
{
	const bool cut = line == 0 || o->too_long == DATA_CUT;

	d->documents++;
	if (n > o->context && !cut) {
		d->skipped++;
		return o->too_long == DATA_SKIP ||
		       error_set(err, ERROR_ARGUMENT,
		                 "%.200s:%zu: the text has %zu tokens, and a row has %u: give a longer --context, or "
		                 "--long cut or skip",
		                 path, line, n, o->context);
	}
	if (!counts_any(counts, n)) {
		d->skipped++;
		return true;
	}
	/* A row that goes on begins with the token before, which the first of its own is predicted from. */
	for (size_t at = 0; at + 1 < n; at += o->context - 1) {
		const size_t part = n - at < o->context ? n - at : o->context;
		if (counts_any(counts ? counts + at : NULL, part) &&
		    !put(d, o, ids + at, counts ? counts + at : NULL, part, err))
			return false;
	}
	return true;
}

size_t data_order(const struct data *d, uint64_t seed, bool shuffled, uint64_t i)
{
	const uint64_t n = d->rows, epoch = i / n;
	uint64_t position = i % n, half = 1, state;

	if (!shuffled)
		return (size_t)position;
	/* A permutation of the next power of four by four rounds, walked until it is below n. */
	while (half * half < n)
		half *= 2;
	do {
		uint64_t left = position / half, right = position % half;
		for (unsigned round = 0; round < 4; round++) {
			state = (seed + 1) * 0xD1342543DE82EF95 + epoch * 0x9E3779B97F4A7C15 + (round << 8) +
			        right * 65537;
			state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9;
			state = (state ^ state >> 27) * 0x94D049BB133111EB;
			const uint64_t next = left ^ ((state ^ state >> 31) & (half - 1));
			left = right;
			right = next;
		}
		position = left * half + right;
	} while (position >= n);
	return (size_t)position;
}

/* ---- forms of data */

static bool add_text(struct data *d, const struct model *m, const struct data_options *o, const char *text, size_t n,
                     const char *path, size_t line, struct error *err)
{
	int32_t *ids = NULL;
	size_t n_ids = 0;
	bool ok = tokenizer_encode(m->tokenizer, text, n, TOKENIZE_BEGIN, &ids, &n_ids, err);
	const int32_t end = tokenizer_eos(m->tokenizer);

	if (ok && line && end >= 0 && (n_ids == 0 || ids[n_ids - 1] != end)) {
		int32_t *more = realloc(ids, (n_ids + 1) * sizeof *ids);
		ok = more || error_set(err, ERROR_MEMORY, "there is no memory for the data");
		ids = more ? more : ids;
		if (more)
			ids[n_ids++] = end;
	}
	ok = ok && data_add(d, o, ids, NULL, n_ids, path, line, err);
	free(ids);
	return ok;
}

static bool wrong(const char *path, size_t line, const char *what, struct error *err)
{
	return error_set(err, ERROR_FORMAT, "%.200s:%zu: %s", path, line, what);
}

/* What the model is to write behind a prompt. */
static bool add_completion(struct data *d, const struct model *m, const struct data_options *o, const json_t *prompt,
                           const json_t *completion, const char *path, size_t line, struct error *err)
{
	const char *first = json_string_value(prompt), *second = json_string_value(completion);
	int32_t *ids = NULL, *more = NULL, *all = NULL;
	const int32_t end = tokenizer_eos(m->tokenizer);
	size_t n = 0, n_more = 0;
	bool ok;

	if (!first || !second)
		return wrong(path, line, "\"prompt\" and \"completion\" are expected to be strings", err);
	ok = tokenizer_encode(m->tokenizer, first, strlen(first), TOKENIZE_BEGIN, &ids, &n, err) &&
	     tokenizer_encode(m->tokenizer, second, strlen(second), 0, &more, &n_more, err);
	all = ok ? malloc((n + n_more + 1) * (sizeof *all + 1)) : NULL;
	if (ok && !all)
		ok = error_set(err, ERROR_MEMORY, "there is no memory for the data");
	if (ok) {
		uint8_t *counts = (uint8_t *)(all + n + n_more + 1);
		memcpy(all, ids, n * sizeof *all);
		memcpy(all + n, more, n_more * sizeof *all);
		all[n + n_more] = end;
		memset(counts, 0, n);
		memset(counts + n, 1, n_more + 1);
		ok = data_add(d, o, all, counts, n + n_more + (end >= 0), path, line, err);
	}
	free(ids);
	free(more);
	free(all);
	return ok;
}

/* {"from": "human", "value": "..."} as {"role": "user", "content": "..."}. */
static json_t *renamed(const json_t *list)
{
	json_t *out = json_array(), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *from = json_string_value(json_object_get(one, "from"));
		const char *role = !from                          ? "user"
		                   : strcmp(from, "human") == 0   ? "user"
		                   : strcmp(from, "gpt") == 0     ? "assistant"
		                   : strcmp(from, "chatgpt") == 0 ? "assistant"
		                                                  : from;
		json_array_append_new(out,
		                      json_pack("{s:s, s:O?}", "role", role, "content", json_object_get(one, "value")));
	}
	return out;
}

static bool add_messages(struct data *d, const struct model *m, const struct data_options *o, json_t *object,
                         const char *path, size_t line, struct error *err)
{
	json_t *messages = json_object_get(object, "messages"), *others = json_object_get(object, "conversations"),
	       *tools = json_object_get(object, "tools");
	json_t *own = messages ? json_incref(messages) : renamed(others);
	bool ok;

	if (!json_is_array(messages ? messages : others)) {
		json_decref(own);
		return wrong(path, line, "\"messages\" is expected to be an array", err);
	}
	char *text = own ? json_dumps(own, JSON_COMPACT) : NULL,
	     *of_tools = json_is_array(tools) ? json_dumps(tools, JSON_COMPACT) : NULL;
	ok = text ? data_add_chat(d, m, o, text, of_tools, path, line, err)
	          : error_set(err, ERROR_MEMORY, "there is no memory for the data");
	free(text);
	free(of_tools);
	json_decref(own);
	return ok;
}

static bool add_line(struct data *d, const struct model *m, const struct data_options *o, const char *text, size_t n,
                     const char *path, size_t line, struct error *err)
{
	char label[256];
	json_t *object, *of_text;
	bool ok;

	snprintf(label, sizeof label, "%.200s:%zu", path, line);
	object = json_read(text, n, JSON_MAX_INDEX, label, err);
	if (!object)
		return false;
	of_text = json_object_get(object, "text");
	if (json_object_get(object, "messages") || json_object_get(object, "conversations"))
		ok = add_messages(d, m, o, object, path, line, err);
	else if (json_object_get(object, "prompt") || json_object_get(object, "completion"))
		ok = add_completion(d, m, o, json_object_get(object, "prompt"), json_object_get(object, "completion"),
		                    path, line, err);
	else if (json_is_string(of_text))
		ok = add_text(d, m, o, json_string_value(of_text), json_string_length(of_text), path, line, err);
	else
		ok = wrong(path, line,
		           "expected an object with \"messages\", \"prompt\" and \"completion\", or \"text\"", err);
	json_decref(object);
	return ok;
}

static bool add_lines(struct data *d, const struct model *m, const struct data_options *o, const char *text, size_t n,
                      const char *path, struct error *err)
{
	size_t line = 0;

	for (const char *at = text, *end = text + n; at < end;) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		const size_t length = (size_t)((next ? next : end) - at);
		line++;
		if (strspn(at, " \t\r") < length && !add_line(d, m, o, at, length, path, line, err))
			return false;
		at += length + 1;
	}
	return true;
}

static char *read_whole(const char *path, size_t *n, struct error *err)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t room = 1 << 16;

	*n = 0;
	if (!f) {
		error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
		return NULL;
	}
	struct stat is;
	if (fstat(fileno(f), &is) == 0 && (S_ISCHR(is.st_mode) || S_ISBLK(is.st_mode))) { /* may have no end */
		error_set(err, ERROR_FORMAT, "%.300s: is a device, expected a file of texts", path);
		fclose(f);
		return NULL;
	}
	for (;;) {
		char *more = realloc(text, room + 1);
		if (!more) {
			error_set(err, ERROR_MEMORY, "there is no memory for %.300s", path);
			break;
		}
		text = more;
		*n += fread(text + *n, 1, room - *n, f);
		if (*n < room)
			break;
		room *= 2;
	}
	if (ferror(f))
		error_set(err, ERROR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
	fclose(f);
	if (err->code != ERROR_NONE) {
		free(text);
		return NULL;
	}
	text[*n] = 0;
	return text;
}

static bool ends_in(const char *path, const char *end)
{
	const size_t n = strlen(path), m = strlen(end);

	return n >= m && strcmp(path + n - m, end) == 0;
}

bool data_read(struct data *d, const struct model *m, const char *path, const struct data_options *o, struct error *err)
{
	const uint64_t before = d->counted;
	size_t n;
	char *text;
	bool ok;

	if (!m->tokenizer)
		return error_set(err, m->tokenizer_error.code ? m->tokenizer_error.code : ERROR_UNSUPPORTED, "%s",
		                 m->tokenizer_error.code
		                         ? m->tokenizer_error.text
		                         : "the model has no tokenizer, so texts cannot be used with it");
	text = read_whole(path, &n, err);
	if (!text)
		return false;
	ok = ends_in(path, ".jsonl") || ends_in(path, ".json")
	             ? add_lines(d, m, o, text, n, path, err)
	             : add_text(d, m, o, text, n, path, 0, err);
	free(text);
	if (ok && d->counted == before)
		return error_set(err, ERROR_FORMAT, "%.300s: %s", path,
		                 n == 0 ? "the file is empty"
		                        : "there is nothing in it that counts: no turn of the assistant, "
		                          "no completion and no text");
	return ok;
}
