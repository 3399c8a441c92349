/* loaders/tokenizer/tokenizer_gguf.c - a tokenizer out of the metadata of a GGUF file.
 *
 * Owns: the meaning of the keys tokenizer.ggml.*, and their defaults. Token texts stay views into the
 * file's copied header. Never: takes a value it does not understand for a default; the message names the key.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

static bool refuse_absent(const struct gguf *g, const char *key, struct error *err)
{
	return error_set(err, ERROR_FORMAT, "%s: the key %s is missing", g->path, key);
}

static bool read_tokens(struct tokenizer *t, const struct gguf *g, uint64_t n_vocab, struct error *err)
{
	uint64_t count = 0;
	bool found = false;

	if (!gguf_strings(g, KEY("tokens"), &t->token, &count, &found, err))
		return false;
	if (!found)
		return refuse_absent(g, KEY("tokens"), err);
	if (count == 0)
		return error_set(err, ERROR_FORMAT, "%s: %s is empty", g->path, KEY("tokens"));
	if (count > TOK_MAX_TOKENS)
		return error_set(err, ERROR_FORMAT, "%s: %s has %llu entries, at most %d are expected", g->path,
		                 KEY("tokens"), (unsigned long long)count, TOK_MAX_TOKENS);
	if (n_vocab && count > n_vocab)
		return error_set(err, ERROR_FORMAT, "%s: %s has %llu entries, more than the model's vocabulary of %llu",
		                 g->path, KEY("tokens"), (unsigned long long)count, (unsigned long long)n_vocab);
	t->n_token = (size_t)count;
	return true;
}

/* An array with one number per token; NULL when the key is absent (or, with err set, unusable). */
static const struct gguf_kv *per_token(const struct tokenizer *t, const struct gguf *g, const char *key, bool floats,
                                       struct error *err)
{
	const struct gguf_kv *a = gguf_find(g, key);

	if (!a)
		return NULL;
	bool is_float = a->item == GGUF_F32 || a->item == GGUF_F64;
	bool is_number = a->item != GGUF_STRING && a->item != GGUF_ARRAY && a->item != GGUF_BOOL;
	if (a->type != GGUF_ARRAY || !is_number || is_float != floats) {
		error_set(err, ERROR_FORMAT, "%s: %s is not an array of %s", g->path, key,
		          floats ? "floats" : "integers");
		return NULL;
	}
	if (a->count != t->n_token) {
		error_set(err, ERROR_FORMAT, "%s: %s has %llu entries for %zu tokens", g->path, key,
		          (unsigned long long)a->count, t->n_token);
		return NULL;
	}
	return a;
}

static bool read_types(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	struct error why = { 0 };
	const struct gguf_kv *a = per_token(t, g, KEY("token_type"), false, &why);

	if (why.code)
		return error_set(err, why.code, "%s", why.text);
	t->type = malloc(t->n_token);
	if (!t->type)
		return error_set(err, ERROR_MEMORY, "%s: no memory for the types of %zu tokens", g->path, t->n_token);
	if (!a) {
		memset(t->type, TOK_NORMAL, t->n_token);
		return true;
	}
	for (size_t i = 0; i < t->n_token; i++) {
		int64_t type = gguf_item_int(a, i);
		if (type < 0 || type > TOK_BYTE)
			return error_set(err, ERROR_FORMAT, "%s: %s of token %zu is %lld, expected 0 to %d", g->path,
			                 KEY("token_type"), i, (long long)type, TOK_BYTE);
		t->type[i] = type ? (uint8_t)type : TOK_NORMAL;
	}
	return true;
}

/* Numbers whose order is the reverse of the scores' order. */
static bool read_scores(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	struct error why = { 0 };
	const struct gguf_kv *a = per_token(t, g, KEY("scores"), true, &why);

	if (why.code)
		return error_set(err, why.code, "%s", why.text);
	if (!a)
		return refuse_absent(g, KEY("scores"), err);
	t->score_order = malloc(t->n_token * sizeof *t->score_order);
	if (!t->score_order)
		return error_set(err, ERROR_MEMORY, "%s: no memory for the scores of %zu tokens", g->path, t->n_token);
	for (size_t i = 0; i < t->n_token; i++) {
		float score = (float)gguf_item_float(a, i) + 0.0f; /* -0 becomes 0 */
		uint32_t bits;
		if (isnan(score))
			return error_set(err, ERROR_FORMAT, "%s: %s of token %zu is not a number", g->path,
			                 KEY("scores"), i);
		memcpy(&bits, &score, sizeof bits);
		t->score_order[i] = bits >> 31 ? bits : ~(bits | 0x80000000u);
	}
	return true;
}

/* Bytes of the first half of a merge; 0 when the line is no merge. The half may itself be a space. */
static size_t first_half(const struct gguf_str *line)
{
	const char *space = line->n > 1 ? memchr(line->p + 1, ' ', line->n - 1) : NULL;

	return space ? (size_t)(space - line->p) : 0;
}

static bool read_merges(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	struct gguf_str *line = NULL;
	struct tok_merger m;
	uint64_t count = 0;
	bool found = false;

	if (!gguf_strings(g, KEY("merges"), &line, &count, &found, err))
		return false;
	if (!found)
		return refuse_absent(g, KEY("merges"), err);
	bool ok = tok_merges_begin(&m, t, count, g->path, err);
	m.lenient = true; /* files with such merges are about, and every reader takes them */
	for (uint64_t i = 0; ok && i < count; i++) {
		size_t left = first_half(&line[i]);
		if (!left) {
			char text[80];
			ok = error_set(err, ERROR_FORMAT,
			               "%s: merge %llu is \"%s\", expected two tokens with a space between", g->path,
			               (unsigned long long)i, error_quote(text, sizeof text, line[i].p, line[i].n));
			break;
		}
		ok = tok_merges_add(&m, line[i].p, left, line[i].p + left + 1, line[i].n - left - 1, err);
	}
	tok_merges_end(&m);
	free(line);
	return ok;
}

bool tok_gguf_id(const struct tokenizer *t, const struct gguf *g, const char *key, int32_t *id, struct error *err)
{
	uint64_t value = 0;
	bool found = false;

	if (!gguf_u64(g, key, &value, &found, err))
		return false;
	if (!found || value == UINT32_MAX)
		return true;
	if (value >= t->n_token)
		return error_set(err, ERROR_FORMAT, "%s: %s is %llu, the vocabulary has %zu tokens", g->path, key,
		                 (unsigned long long)value, t->n_token);
	*id = (int32_t)value;
	return true;
}

/* Absent leaves *value alone. */
static bool read_flag(const struct gguf *g, const char *key, bool *value, struct error *err)
{
	bool found = false, read = false;

	if (!gguf_bool(g, key, &read, &found, err))
		return false;
	if (found)
		*value = read;
	return true;
}

static bool collect_specials(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	struct tok_special_set *set = &t->special[0];
	size_t n = 0;

	for (size_t i = 0; i < t->n_token; i++)
		n += t->type[i] == TOK_CONTROL || t->type[i] == TOK_USER || t->type[i] == TOK_UNKNOWN;
	set->row = calloc(n ? n : 1, sizeof *set->row);
	if (!set->row)
		return error_set(err, ERROR_MEMORY, "%s: no memory for %zu special tokens", g->path, n);
	for (size_t i = 0; i < t->n_token; i++) {
		bool hidden = t->type[i] == TOK_CONTROL || t->type[i] == TOK_UNKNOWN;
		if ((hidden || t->type[i] == TOK_USER) && t->token[i].n)
			set->row[set->n++] = (struct tok_special){
				.p = t->token[i].p, .n = (uint32_t)t->token[i].n, .id = (int32_t)i, .hidden = hidden
			};
	}
	return tok_special_sort(set, g->path, err);
}

static bool read_ends(struct tokenizer *t, const struct gguf *g, bool adds_bos, struct error *err)
{
	bool adds_eos = false;
	int32_t turn = -1, message = -1, unused = -1, *unknown = &t->unknown;

	if (t->model == TOK_CHAR_SCORES) {
		t->bos = tok_find(t, "<s>", 3);
		t->eos = tok_find(t, "</s>", 4);
		t->unknown = tok_find(t, "<unk>", 5);
	}
	/* byte-level models are written with an unknown token that no text becomes: what has no token adds nothing */
	if (t->model == TOK_BYTE_LEVEL) {
		t->drop_unknown = true;
		unknown = &unused;
	}
	if (!tok_gguf_id(t, g, KEY("bos_token_id"), &t->bos, err) ||
	    !tok_gguf_id(t, g, KEY("eos_token_id"), &t->eos, err) ||
	    !tok_gguf_id(t, g, KEY("unknown_token_id"), unknown, err) ||
	    !tok_gguf_id(t, g, KEY("eot_token_id"), &turn, err) ||
	    !tok_gguf_id(t, g, KEY("eom_token_id"), &message, err))
		return false;
	if (t->bos < 0)
		adds_bos = false; /* the usual beginning of such models, but this one has none */
	if (!read_flag(g, KEY("add_bos_token"), &adds_bos, err) || !read_flag(g, KEY("add_eos_token"), &adds_eos, err))
		return false;
	if (adds_bos && t->bos < 0)
		return error_set(err, ERROR_FORMAT, "%s: %s is missing, and the text must begin with it", g->path,
		                 KEY("bos_token_id"));
	if (adds_eos && t->eos < 0)
		return error_set(err, ERROR_FORMAT, "%s: %s is missing, and the text must end with it", g->path,
		                 KEY("eos_token_id"));
	if (adds_bos)
		t->head[t->n_head++] = t->bos;
	if (adds_eos)
		t->tail[t->n_tail++] = t->eos;
	tok_eog_add(t, turn);
	tok_eog_add(t, message);
	tok_roles_of_gguf(t, g);
	return !adds_bos || !adds_eos || tok_gguf_pair(t, g, err);
}

/* Spaces become "▁", and the text begins with one where scores decide. */
static bool spm_normalisers(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	bool prefix = t->model == TOK_CHAR_SCORES, collapse = false;

	if (!read_flag(g, KEY("add_space_prefix"), &prefix, err) ||
	    !read_flag(g, KEY("remove_extra_whitespaces"), &collapse, err))
		return false;
	if (collapse)
		t->norm[t->n_norm++].kind = TOK_NORM_COLLAPSE_SPACES;
	if (prefix)
		t->norm[t->n_norm++] =
			(struct tok_norm_step){ .kind = TOK_NORM_PREPEND, .to = "\xe2\x96\x81", .n_to = 3 };
	t->norm[t->n_norm++] = (struct tok_norm_step){
		.kind = TOK_NORM_REPLACE, .from = " ", .n_from = 1, .to = "\xe2\x96\x81", .n_to = 3
	};
	t->drop_first_space = prefix;
	t->space_mark = true;
	t->byte_fallback = true;
	return true;
}

/* Keys that are read here, or that change no text's tokens; those that end in _token_id only name a token. */
static bool key_known(enum tok_model model, const char *p, size_t n)
{
	/* of these kinds alone */
	static const struct {
		const char *key;
		enum tok_model model;
	} some[] = {
		{ "normalizer.lowercase", TOK_WORD_PIECE }, { "normalizer.strip_accents", TOK_WORD_PIECE },
		{ "add_sep_token", TOK_WORD_PIECE }, /* a pair has it in any case */
		{ "precompiled_charsmap", TOK_UNIGRAM },    { "add_sep_token", TOK_UNIGRAM },
		{ "add_sep_token", TOK_BYTE_LEVEL },
	};
	static const char *const known[] = {
		"model",
		"pre",
		"tokens",
		"token_type",
		"token_type_count",
		"scores",
		"merges",
		"add_bos_token",
		"add_eos_token",
		"add_space_prefix",
		"remove_extra_whitespaces",
		"suppress_tokens",
		"added_tokens", /* those that the file's maker added, which the list of tokens has, too */
		"token_type_count"
	};
	static const char suffix[] = "_token_id";

	if (n >= sizeof suffix - 1 && !memcmp(p + n - (sizeof suffix - 1), suffix, sizeof suffix - 1))
		return true;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strlen(known[i]) == n && !memcmp(known[i], p, n))
			return true;
	for (size_t i = 0; i < sizeof some / sizeof *some; i++)
		if (some[i].model == model && strlen(some[i].key) == n && !memcmp(some[i].key, p, n))
			return true;
	return false;
}

/* A value that asks for nothing: false, zero, empty. */
static bool asks_nothing(const struct gguf_kv *kv)
{
	const uint8_t *p = kv->data;

	if (kv->type == GGUF_ARRAY)
		return kv->count == 0;
	for (uint64_t i = 0; i < kv->bytes; i++)
		if (p[i])
			return false;
	return true;
}

/* What is not known of this kind and whatever comes to be written: not done here, so not passed over. */
static bool check_keys(const struct gguf *g, enum tok_model model, struct error *err)
{
	size_t prefix = sizeof KEY("") - 1;
	char text[100];

	for (uint64_t i = 0; i < g->n_kv; i++) {
		const struct gguf_kv *kv = &g->kv[i];
		if (kv->key.n <= prefix || memcmp(kv->key.p, KEY(""), prefix) != 0 ||
		    key_known(model, kv->key.p + prefix, kv->key.n - prefix) || asks_nothing(kv))
			continue;
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: the key %s is set; it is not known here and might change how text becomes tokens",
		                 g->path, error_quote(text, sizeof text, kv->key.p, kv->key.n));
	}
	return true;
}

static bool fill(struct tokenizer *t, const struct gguf *g, uint64_t n_vocab, struct error *err)
{
	struct gguf_str model = { 0 }, pre = { "default", 7 };
	bool found = false, adds_bos = true;
	char text[80];

	if (!gguf_string(g, KEY("model"), &model, &found, err))
		return false;
	if (!found)
		return refuse_absent(g, KEY("model"), err);
	if (model.n == 5 && !memcmp(model.p, "llama", 5))
		t->model = TOK_CHAR_SCORES;
	else if (model.n == 4 && !memcmp(model.p, "gpt2", 4))
		t->model = TOK_BYTE_LEVEL;
	else if (model.n == 6 && !memcmp(model.p, "gemma4", 6))
		t->model = TOK_CHAR_RANKS;
	else if (model.n == 4 && !memcmp(model.p, "bert", 4))
		t->model = TOK_WORD_PIECE;
	else if (model.n == 2 && !memcmp(model.p, "t5", 2))
		t->model = TOK_UNIGRAM;
	else
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: %s is \"%s\", supported are \"llama\", \"gpt2\", \"gemma4\", \"bert\" and "
		                 "\"t5\"",
		                 g->path, KEY("model"), error_quote(text, sizeof text, model.p, model.n));
	if (!check_keys(g, t->model, err) || !read_tokens(t, g, n_vocab, err) || !read_types(t, g, err) ||
	    !tok_index(t, g->path, err))
		return false;
	if (t->model == TOK_WORD_PIECE) {
		if (!tok_gguf_word_piece(t, g, err))
			return false;
	} else if (t->model == TOK_UNIGRAM) {
		if (!tok_gguf_unigram(t, g, err))
			return false;
	} else if (t->model == TOK_CHAR_SCORES) {
		if (!read_scores(t, g, err) || !spm_normalisers(t, g, err))
			return false;
	} else if (t->model == TOK_CHAR_RANKS) {
		t->whole_newlines = true;
		if (!tok_pre_by_name(t, "gemma4", 6, g->path, &adds_bos, err) || !spm_normalisers(t, g, err) ||
		    !read_merges(t, g, err))
			return false;
	} else {
		struct gguf_str named;
		if (!gguf_string(g, KEY("pre"), &named, &found, err))
			return false;
		if (found)
			pre = named;
		if (!tok_pre_by_name(t, pre.p, pre.n, g->path, &adds_bos, err) || !read_merges(t, g, err))
			return false;
	}
	if (!collect_specials(t, g, err))
		return false;
	return (t->model == TOK_WORD_PIECE || t->model == TOK_UNIGRAM ? tok_gguf_around(t, g, err)
	                                                              : read_ends(t, g, adds_bos, err)) &&
	       tok_finish(t, err);
}

struct tokenizer *tokenizer_from_gguf(const struct gguf *g, uint64_t n_vocab, struct error *err)
{
	struct tokenizer *t = tok_new(err);

	if (t && !fill(t, g, n_vocab, err)) {
		tokenizer_close(t);
		return NULL;
	}
	return t;
}
