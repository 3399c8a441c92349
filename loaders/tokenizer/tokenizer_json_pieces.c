/* loaders/tokenizer/tokenizer_json_pieces.c - what a tokenizer.json says of WordPiece and Unigram, and of pairs. */
#include "loaders/tokenizer/tokenizer_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_BELOW = 10 /* as much less than the least score an unknown character has */ };

bool tok_json_word_piece(struct tok_reader *r, const json_t *model)
{
	const json_t *prefix = json_object_get(model, "continuing_subword_prefix"),
		     *max = json_object_get(model, "max_input_chars_per_word");
	struct tokenizer *t = r->t;

	memcpy(t->inner.p, "##", 2);
	t->inner.n = 2;
	t->max_characters = 100;
	if (prefix && !json_is_null(prefix)) {
		if (!json_is_text(prefix) || json_string_length(prefix) > TOK_MARK_BYTES)
			return tok_json_refuse(r, "model.continuing_subword_prefix", prefix,
			                       "a string of at most 16 bytes");
		t->inner.n = (unsigned)json_string_length(prefix);
		memcpy(t->inner.p, json_string_value(prefix), t->inner.n);
	}
	if (!max || json_is_null(max))
		return true;
	if (!json_is_integer(max) || json_integer_value(max) < 1 || json_integer_value(max) > INT32_MAX)
		return tok_json_refuse(r, "model.max_input_chars_per_word", max, "a number from 1 on");
	t->max_characters = (size_t)json_integer_value(max);
	return true;
}

bool tok_json_scores(struct tok_reader *r, const json_t *vocab, size_t limit)
{
	struct tokenizer *t = r->t;
	double min = 0;
	const json_t *item;
	size_t i, n;

	if (!(t->score = calloc(limit, sizeof *t->score)))
		return error_set(r->err, ERROR_MEMORY, "%s: no memory for the scores of %zu tokens", r->path, limit);
	json_array_foreach(vocab, i, item)
	{
		const json_t *text = json_array_get(item, 0), *score = json_array_get(item, 1);
		if (json_array_size(item) != 2 || !json_is_text(text) || !json_is_number(score) ||
		    !isfinite((float)json_number_value(score)))
			return tok_json_refuse(r, "an entry of model.vocab", item, "a token and its score");
		const char *p = tok_json_copy(r, text, &n);
		t->token[i] = (struct gguf_str){ p, n };
		t->type[i] = TOK_NORMAL;
		t->score[i] = (float)json_number_value(score);
		min = (double)t->score[i] < min ? (double)t->score[i] : min;
		t->n_token = i + 1;
	}
	t->unknown_score = min - UNKNOWN_BELOW;
	return true;
}

bool tok_json_unknown(struct tok_reader *r, const json_t *id)
{
	if (!id || json_is_null(id))
		return true;
	if (!json_is_integer(id) || json_integer_value(id) < 0 || (uint64_t)json_integer_value(id) >= r->t->n_token)
		return tok_json_refuse(r, "model.unk_id", id, "an id of the vocabulary");
	r->t->unknown = (int32_t)json_integer_value(id);
	return true;
}

bool tok_json_bert_normalizer(struct tok_reader *r, const json_t *object)
{
	bool clean = true, chinese = true, lower = true;

	if (!tok_json_bool(r, object, "clean_text", &clean) ||
	    !tok_json_bool(r, object, "handle_chinese_chars", &chinese) ||
	    !tok_json_bool(r, object, "lowercase", &lower))
		return false;
	bool accents = lower; /* null: as letters do */
	return tok_json_bool(r, object, "strip_accents", &accents) &&
	       (!clean || tok_json_new_norm(r, TOK_NORM_CLEAN)) &&
	       (!chinese || tok_json_new_norm(r, TOK_NORM_CHINESE)) &&
	       (!accents || (tok_json_new_norm(r, TOK_NORM_NFD) && tok_json_new_norm(r, TOK_NORM_ACCENTS))) &&
	       (!lower || tok_json_new_norm(r, TOK_NORM_LOWER));
}

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Base64, in the arena's place for the text, which is longer. */
bool tok_json_charsmap(struct tok_reader *r, const json_t *object)
{
	const json_t *text = json_object_get(object, "precompiled_charsmap");
	const char *p = json_is_text(text) ? json_string_value(text) : NULL;
	uint32_t bits = 0;
	unsigned have = 0;

	if (!p || !tok_json_new_norm(r, TOK_NORM_CHARSMAP))
		return p ? false : tok_json_refuse(r, "normalizer.precompiled_charsmap", text, "a string");
	if (r->t->charsmap.units)
		return error_set(r->err, ERROR_UNSUPPORTED, "%s: the normalizer has two tables of characters", r->path);
	char *first = r->copy;
	for (; *p && *p != '='; p++) {
		const int digit = digit_of(*p);
		if (digit < 0)
			return error_set(r->err, ERROR_FORMAT,
			                 "%s: normalizer.precompiled_charsmap is not written in base64", r->path);
		bits = bits << 6 | (uint32_t)digit;
		have += 6;
		if (have >= 8) {
			have -= 8;
			*r->copy++ = (char)(bits >> have & 0xff);
		}
	}
	return tok_charsmap_open(&r->t->charsmap, first, (size_t)(r->copy - first), r->path, r->err);
}

/* ---- pairs */

static bool no_room(struct tok_reader *r)
{
	return error_set(r->err, ERROR_UNSUPPORTED, "%s: the post_processor puts more than %d parts into a pair",
	                 r->path, TOK_MAX_PAIR);
}

static bool read_type(struct tok_reader *r, const json_t *part, int32_t *type)
{
	const json_t *v = json_object_get(part, "type_id");

	if (!v || (json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < INT32_MAX)) {
		*type = v ? (int32_t)json_integer_value(v) : 0;
		return true;
	}
	return tok_json_refuse(r, "a type_id of the post_processor", v, "a number from 0 on");
}

static bool add_special(struct tok_reader *r, const json_t *ids, int32_t type)
{
	const json_t *id;
	size_t i;

	json_array_foreach(ids, i, id)
	{
		if (!json_is_integer(id) || json_integer_value(id) < 0 ||
		    (uint64_t)json_integer_value(id) >= r->t->n_token)
			return tok_json_refuse(r, "post_processor's token id", id, "an id of the vocabulary");
		if (!tok_pair_add(r->t, (int32_t)json_integer_value(id), type))
			return no_room(r);
	}
	return true;
}

bool tok_json_pair(struct tok_reader *r, const json_t *object)
{
	const json_t *pair = json_object_get(object, "pair"), *specials = json_object_get(object, "special_tokens"),
		     *item;
	size_t i;

	r->t->n_pair = 0;
	json_array_foreach(pair, i, item)
	{
		const json_t *special = json_object_get(item, "SpecialToken"),
			     *sequence = json_object_get(item, "Sequence"), *name = json_object_get(special, "id");
		const bool first = tok_json_is(json_object_get(sequence, "id"), "A"),
			   second = tok_json_is(json_object_get(sequence, "id"), "B");
		int32_t type = 0;
		if (!read_type(r, special ? special : sequence, &type))
			return false;
		if (first || second) {
			if (!tok_pair_add(r->t, first ? TOK_PAIR_FIRST : TOK_PAIR_SECOND, type))
				return no_room(r);
			continue;
		}
		const json_t *ids = json_is_string(name)
		                            ? json_object_get(json_object_get(specials, json_string_value(name)), "ids")
		                            : NULL;
		if (!json_is_array(ids))
			return tok_json_refuse(r, "post_processor.pair", item, "special tokens and Sequences A and B");
		if (!add_special(r, ids, type))
			return false;
	}
	return true;
}

bool tok_json_pair_around(struct tok_reader *r, int32_t cls, int32_t sep, bool roberta)
{
	struct tokenizer *t = r->t;
	const int32_t second = !roberta;

	t->n_pair = 0;
	return (tok_pair_add(t, cls, 0) && tok_pair_add(t, TOK_PAIR_FIRST, 0) && tok_pair_add(t, sep, 0) &&
	        (!roberta || tok_pair_add(t, sep, 0)) && tok_pair_add(t, TOK_PAIR_SECOND, second) &&
	        tok_pair_add(t, sep, second)) ||
	       no_room(r);
}
