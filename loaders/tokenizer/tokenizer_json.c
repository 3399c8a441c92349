/* loaders/tokenizer/tokenizer_json.c - a tokenizer out of tokenizer.json and tokenizer_config.json.
 *
 * Owns: the BPE model (vocabulary, merges), the added tokens, and what the configuration says about BOS
 * and EOS. Texts are copied into one arena, then the JSON tree is dropped. truncation and padding are
 * settings of a call, not of the vocabulary, and are left alone. Never: trusts an id before it is compared
 * with the number of tokens.
 */
#include "loaders/tokenizer/tokenizer_json.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_HOLES = 65536 }; /* ids that name no token, before a file counts as absurd */

/* ---- fields */

bool tok_json_refuse(struct tok_reader *r, const char *field, const json_t *value, const char *expected)
{
	char text[100], *dump = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	const char *found = dump ? dump : json_kind(value); /* a string that is no UTF-8 cannot be dumped */

	error_set(r->err, ERROR_UNSUPPORTED, "%s: %s is %s, expected %s", r->path, field,
	          error_quote(text, sizeof text, found, strlen(found)), expected);
	free(dump);
	return false;
}

bool tok_json_bool(struct tok_reader *r, const json_t *object, const char *field, bool *value)
{
	const json_t *v = json_object_get(object, field);

	if (!v || json_is_null(v))
		return true;
	if (!json_is_boolean(v))
		return tok_json_refuse(r, field, v, "true or false");
	*value = json_is_true(v);
	return true;
}

const char *tok_json_copy(struct tok_reader *r, const json_t *string, size_t *n)
{
	char *to = r->copy;

	*n = json_string_length(string);
	memcpy(to, json_string_value(string), *n);
	r->copy += *n;
	return to;
}

bool tok_json_is(const json_t *string, const char *text)
{
	return json_is_string(string) && json_string_length(string) == strlen(text) &&
	       !strcmp(json_string_value(string), text);
}

/* ---- vocabulary */

static bool read_id(struct tok_reader *r, const char *field, const json_t *value, size_t limit, size_t *id)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) >= limit)
		return tok_json_refuse(r, field, value, "an id below the number of tokens");
	*id = (size_t)json_integer_value(value);
	return true;
}

static void grow_count(struct tokenizer *t, size_t id)
{
	if (id + 1 > t->n_token)
		t->n_token = id + 1;
}

static bool read_vocab(struct tok_reader *r, json_t *vocab, size_t limit)
{
	struct tokenizer *t = r->t;
	const char *text;
	json_t *value;
	char quoted[80];

	json_object_foreach(vocab, text, value)
	{
		size_t id, n = strlen(text);
		if (!read_id(r, "an id in model.vocab", value, limit, &id))
			return false;
		if (!json_name_is_text(text))
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: model.vocab has the token \"%s\", expected no half of a surrogate pair",
			                 r->path, error_quote(quoted, sizeof quoted, text, n));
		if (t->token[id].p)
			return error_set(r->err, ERROR_FORMAT, "%s: model.vocab gives the id %zu twice, once to \"%s\"",
			                 r->path, id, error_quote(quoted, sizeof quoted, text, n));
		memcpy(r->copy, text, n);
		t->token[id] = (struct gguf_str){ r->copy, n };
		t->type[id] = TOK_NORMAL;
		r->copy += n;
		grow_count(t, id);
	}
	return true;
}

/* One added token; `id` is a field of it (tokenizer.json) or its key (added_tokens_decoder). */
static bool add_token(struct tok_reader *r, const json_t *object, size_t id)
{
	struct tokenizer *t = r->t;
	const json_t *content = json_object_get(object, "content");
	struct tok_special s = { .id = (int32_t)id };
	bool special = false, normalized;
	size_t n;

	if (!json_is_text(content) || json_string_length(content) == 0 ||
	    json_string_length(content) > TOK_MAX_SPECIAL_BYTES)
		return tok_json_refuse(r, "an added token's content", content, "a string of 1 to 4096 bytes");
	if (!tok_json_bool(r, object, "special", &special) || !tok_json_bool(r, object, "lstrip", &s.lstrip) ||
	    !tok_json_bool(r, object, "rstrip", &s.rstrip) || !tok_json_bool(r, object, "single_word", &s.single_word))
		return false;
	normalized = !special;
	if (!tok_json_bool(r, object, "normalized", &normalized))
		return false;
	s.p = tok_json_copy(r, content, &n);
	s.n = (uint32_t)n;
	s.hidden = special;
	t->token[id] = (struct gguf_str){ s.p, n };
	t->type[id] = special ? TOK_CONTROL : TOK_USER;
	grow_count(t, id);
	t->special[normalized].row[t->special[normalized].n++] = s;
	return true;
}

static bool read_added(struct tok_reader *r, const json_t *added, size_t limit)
{
	const json_t *item;
	size_t i, id;

	json_array_foreach(added, i,
	                   item) if (!read_id(r, "an added token's id", json_object_get(item, "id"), limit, &id) ||
	                             !add_token(r, item, id)) return false;
	return true;
}

/* The configuration mostly repeats the added tokens; what it adds counts too. */
static bool read_decoder(struct tok_reader *r, json_t *decoder, size_t limit)
{
	struct tokenizer *t = r->t;
	const json_t *value;
	const char *key;
	char quoted[80];

	json_object_foreach(decoder, key, value)
	{
		const json_t *content = json_object_get(value, "content");
		char *end;
		unsigned long long number = strtoull(key, &end, 10);
		if (*end || end == key || number >= limit)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: added_tokens_decoder has the key \"%s\", expected an id below the number "
			                 "of tokens",
			                 r->path, error_quote(quoted, sizeof quoted, key, strlen(key)));
		bool known = t->type[number] == TOK_CONTROL || t->type[number] == TOK_USER;
		if (known && json_is_string(content) && json_string_length(content) == t->token[number].n &&
		    !memcmp(json_string_value(content), t->token[number].p, t->token[number].n))
			continue;
		if (!add_token(r, value, (size_t)number))
			return false;
	}
	return true;
}

/* Special tokens looked for in the normalised text are themselves normalised. */
static bool normalise_specials(struct tok_reader *r)
{
	struct tok_special_set *set = &r->t->special[1];
	struct tok_work w = { .max_steps = TOK_STEPS_MORE, .err = r->err };
	bool ok = true;

	for (size_t i = 0; i < set->n; i++)
		w.max_steps += (uint64_t)TOK_STEPS_A_BYTE * set->row[i].n;
	for (size_t i = 0; ok && r->t->n_norm && i < set->n; i++) {
		struct tok_special *s = &set->row[i];
		w.text.n = 0;
		ok = tok_append(&w.text, s->p, s->n, r->err) && tok_normalise(r->t, &w);
		/* the arena has room for the text as it was; a longer form matches what the text becomes only by its
		 * own bytes */
		if (ok && (w.text.n == 0 || w.text.n > s->n + 3))
			ok = error_set(r->err, ERROR_UNSUPPORTED,
			               "%s: the normalizer makes %zu bytes of an added token of %u bytes", r->path,
			               w.text.n, s->n);
		if (ok) {
			memcpy(r->copy, w.text.p, w.text.n);
			s->p = r->copy;
			s->n = (uint32_t)w.text.n;
			r->copy += w.text.n;
		}
	}
	tok_work_free(&w);
	return ok;
}

/* ---- model */

static bool read_merges(struct tok_reader *r, const json_t *merges)
{
	struct tok_merger m;
	const json_t *item;
	size_t i;
	bool ok;

	if (!json_is_array(merges))
		return tok_json_refuse(r, "model.merges", merges, "an array");
	ok = tok_merges_begin(&m, r->t, json_array_size(merges), r->path, r->err);
	if (ok)
		json_array_foreach(merges, i, item)
		{
			const json_t *a = json_array_get(item, 0), *b = json_array_get(item, 1);
			const char *text = json_string_value(item);
			const char *space = text ? memchr(text, ' ', json_string_length(item)) : NULL;
			if (json_is_string(a) && json_is_string(b) && json_array_size(item) == 2)
				ok = tok_merges_add(&m, json_string_value(a), json_string_length(a),
				                    json_string_value(b), json_string_length(b), r->err);
			else if (space)
				ok = tok_merges_add(&m, text, (size_t)(space - text), space + 1,
				                    json_string_length(item) - (size_t)(space - text) - 1, r->err);
			else
				ok = tok_json_refuse(r, "an entry of model.merges", item, "two tokens");
			if (!ok)
				break;
		}
	tok_merges_end(&m);
	return ok;
}

static bool empty_or_null(const json_t *v) { return !v || json_is_null(v) || tok_json_is(v, ""); }

static bool read_model_options(struct tok_reader *r, const json_t *model)
{
	struct tokenizer *t = r->t;
	const json_t *type = json_object_get(model, "type"), *dropout = json_object_get(model, "dropout");
	const json_t *prefix = json_object_get(model, "continuing_subword_prefix"),
		     *suffix = json_object_get(model, "end_of_word_suffix");

	if (!json_is_object(model))
		return tok_json_refuse(r, "model", model, "an object");
	r->word_piece = tok_json_is(type, "WordPiece");
	r->unigram = tok_json_is(type, "Unigram");
	if (r->word_piece)
		return tok_json_word_piece(r, model);
	if (r->unigram)
		return tok_json_bool(r, model, "byte_fallback", &t->byte_fallback);
	if (type && !tok_json_is(type, "BPE"))
		return tok_json_refuse(r, "model.type", type, "BPE, WordPiece or Unigram");
	if (dropout && !json_is_null(dropout) && !(json_is_number(dropout) && json_number_value(dropout) == 0.0))
		return tok_json_refuse(r, "model.dropout", dropout, "null");
	if (!empty_or_null(prefix))
		return tok_json_refuse(r, "model.continuing_subword_prefix", prefix, "an empty string");
	if (!empty_or_null(suffix))
		return tok_json_refuse(r, "model.end_of_word_suffix", suffix, "an empty string");
	return tok_json_bool(r, model, "fuse_unk", &t->fuse_unknown) &&
	       tok_json_bool(r, model, "byte_fallback", &t->byte_fallback) &&
	       tok_json_bool(r, model, "ignore_merges", &t->whole_words);
}

/* Byte tokens are plain entries of the vocabulary; their names tell. */
static void mark_byte_tokens(struct tokenizer *t)
{
	for (unsigned b = 0; t->byte_fallback && t->model != TOK_BYTE_LEVEL && b < 256; b++)
		if (t->byte_id[b] >= 0)
			t->type[t->byte_id[b]] = TOK_BYTE;
}

/* ---- configuration */

/* A token of the configuration is a text or an object with the text; -1 when it is null, absent or unknown. */
static int32_t config_token(const struct tokenizer *t, const json_t *config, const char *field)
{
	const json_t *v = json_object_get(config, field);

	if (json_is_object(v))
		v = json_object_get(v, "content");
	return json_is_string(v) ? tok_find(t, json_string_value(v), json_string_length(v)) : -1;
}

/* add_bos_token and add_eos_token, when given, overrule the post_processor. */
static bool read_config(struct tok_reader *r, json_t *config, size_t unused)
{
	struct tokenizer *t = r->t;
	bool has_head = t->n_head > 0, has_tail = t->n_tail > 0;

	t->bos = config_token(t, config, "bos_token");
	t->eos = config_token(t, config, "eos_token");
	for (size_t i = 0; i < TOK_ROLES; i++)
		if (tok_role_field(i))
			t->role[i] = config_token(t, config, tok_role_field(i));
	if (t->bos < 0 && has_head)
		t->bos = t->head[0];
	has_head = has_head && t->head[0] == t->bos;
	has_tail = has_tail && t->tail[t->n_tail - 1] == t->eos;
	bool bos = has_head, eos = has_tail;
	if (!tok_json_bool(r, config, "add_bos_token", &bos) || !tok_json_bool(r, config, "add_eos_token", &eos))
		return false;
	if (bos && t->bos < 0)
		return tok_json_refuse(r, "bos_token", json_object_get(config, "bos_token"),
		                       "a token of the vocabulary");
	if (eos && t->eos < 0)
		return tok_json_refuse(r, "eos_token", json_object_get(config, "eos_token"),
		                       "a token of the vocabulary");
	if (bos && !has_head) {
		if (t->n_head == TOK_MAX_AROUND)
			return error_set(r->err, ERROR_UNSUPPORTED, "%s: more than %d tokens before the text", r->path,
			                 TOK_MAX_AROUND);
		memmove(t->head + 1, t->head, t->n_head++ * sizeof *t->head);
		t->head[0] = t->bos;
	} else if (!bos && has_head) {
		memmove(t->head, t->head + 1, --t->n_head * sizeof *t->head);
	}
	if (eos && !has_tail) {
		if (t->n_tail == TOK_MAX_AROUND)
			return error_set(r->err, ERROR_UNSUPPORTED, "%s: more than %d tokens after the text", r->path,
			                 TOK_MAX_AROUND);
		t->tail[t->n_tail++] = t->eos;
	} else if (!eos && has_tail) {
		t->n_tail--;
	}
	return true;
}

/* ---- all of it */

/* `bytes`: no text of either file, each copied once, takes more. */
static bool allocate(struct tok_reader *r, size_t capacity, size_t n_added, size_t bytes)
{
	struct tokenizer *t = r->t;

	t->token = calloc(capacity, sizeof *t->token);
	t->type = malloc(capacity);
	t->special[0].row = calloc(n_added + 1, sizeof *t->special[0].row);
	t->special[1].row = calloc(n_added + 1, sizeof *t->special[1].row);
	t->arena = malloc(bytes);
	r->copy = t->arena;
	if (!t->token || !t->type || !t->special[0].row || !t->special[1].row || !t->arena)
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for %zu tokens", r->path, capacity);
	memset(t->type, TOK_UNUSED, capacity);
	return true;
}

/* Reads a part of the configuration; messages name its file. */
static bool in_config(struct tok_reader *r, bool (*read)(struct tok_reader *, json_t *, size_t), json_t *part,
                      size_t limit)
{
	const char *path = r->path;

	r->path = r->config_path;
	bool ok = read(r, part, limit);
	r->path = path;
	return ok;
}

static bool read_vocabulary(struct tok_reader *r, const json_t *root, json_t *config, size_t bytes, uint64_t n_vocab)
{
	struct tokenizer *t = r->t;
	json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
	const json_t *added = json_object_get(root, "added_tokens");
	json_t *decoder = json_object_get(config, "added_tokens_decoder");
	size_t n_added = json_array_size(added) + json_object_size(decoder),
	       limit = json_object_size(vocab) + json_array_size(vocab) + n_added + MAX_HOLES;

	if (r->unigram ? !json_is_array(vocab) : !json_is_object(vocab))
		return tok_json_refuse(r, "model.vocab", vocab, r->unigram ? "an array" : "an object");
	if (added && !json_is_null(added) && !json_is_array(added))
		return tok_json_refuse(r, "added_tokens", added, "an array");
	/* added texts are copied, and normalised ones once more, up to 3 bytes longer; the default mark of a step is in
	 * no file */
	if (limit > TOK_MAX_TOKENS)
		return error_set(r->err, ERROR_FORMAT, "%s: %zu tokens are too many", r->path, limit);
	if (!allocate(r, limit, n_added, 2 * bytes + 3 * n_added + 4 * TOK_MAX_STEPS + 1))
		return false;
	if (!(r->unigram ? tok_json_scores(r, vocab, limit) : read_vocab(r, vocab, limit)) ||
	    !read_added(r, added, limit) || !in_config(r, read_decoder, decoder, limit))
		return false;
	if (t->n_token == 0)
		return error_set(r->err, ERROR_FORMAT, "%s: model.vocab is empty", r->path);
	if (n_vocab && t->n_token > n_vocab)
		return error_set(r->err, ERROR_FORMAT,
		                 "%s: the highest token id is %zu, the model's vocabulary has %llu", r->path,
		                 t->n_token - 1, (unsigned long long)n_vocab);
	return true;
}

static bool fill(struct tok_reader *r, const json_t *root, json_t *config, size_t bytes, uint64_t n_vocab)
{
	struct tokenizer *t = r->t;
	const json_t *model = json_object_get(root, "model"), *unknown = json_object_get(model, "unk_token");

	if (!read_model_options(r, model) || !read_vocabulary(r, root, config, bytes, n_vocab) ||
	    !tok_json_normalizer(r, json_object_get(root, "normalizer")) ||
	    !tok_json_pre_tokenizer(r, json_object_get(root, "pre_tokenizer")))
		return false;
	t->model = r->word_piece   ? TOK_WORD_PIECE
	           : r->unigram    ? TOK_UNIGRAM
	           : r->byte_level ? TOK_BYTE_LEVEL
	                           : TOK_CHAR_RANKS;
	t->drop_unknown = t->gaps_close = t->special[0].covers = t->special[1].covers = true;
	if (!tok_index(t, r->path, r->err) || !normalise_specials(r) ||
	    !tok_special_sort(&t->special[0], r->path, r->err) || !tok_special_sort(&t->special[1], r->path, r->err))
		return false;
	mark_byte_tokens(t);
	if (!empty_or_null(unknown)) {
		t->unknown = json_is_string(unknown)
		                     ? tok_find(t, json_string_value(unknown), json_string_length(unknown))
		                     : -1;
		if (t->unknown < 0)
			return tok_json_refuse(r, "model.unk_token", unknown, "a token of the vocabulary");
	}
	if (r->unigram && !tok_json_unknown(r, json_object_get(model, "unk_id")))
		return false;
	if (r->word_piece && t->unknown < 0)
		return tok_json_refuse(r, "model.unk_token", unknown, "a token of the vocabulary");
	return (r->word_piece || r->unigram || read_merges(r, json_object_get(model, "merges"))) &&
	       tok_json_post_processor(r, json_object_get(root, "post_processor")) &&
	       tok_json_decoder(r, json_object_get(root, "decoder")) && in_config(r, read_config, config, 0) &&
	       tok_finish(t, r->err);
}

static json_t *read_object(struct tok_reader *r, struct tokenizer_text text)
{
	json_t *root = json_read(text.p ? text.p : "", text.n, JSON_MAX_TOKENIZER, text.path, r->err);

	if (!root || json_is_object(root))
		return root;
	error_set(r->err, ERROR_FORMAT, "%s: its content is %s, expected an object", text.path, json_kind(root));
	json_decref(root);
	return NULL;
}

struct tokenizer *tokenizer_from_json(struct tokenizer_text tokenizer, struct tokenizer_text config, uint64_t n_vocab,
                                      struct error *err)
{
	struct tok_reader r = { .path = tokenizer.path, .config_path = config.path, .err = err };
	json_t *root = read_object(&r, tokenizer), *settings = root && config.p ? read_object(&r, config) : NULL;
	bool ok = false;

	if (root && (settings || !config.p) && (r.t = tok_new(err)))
		ok = fill(&r, root, settings, tokenizer.n + config.n, n_vocab);
	json_decref(root);
	json_decref(settings);
	if (!ok) {
		tokenizer_close(r.t);
		return NULL;
	}
	return r.t;
}
