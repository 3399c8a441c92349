/* loaders/tokenizer/tokenizer_json_steps.c - normalizer, pre_tokenizer, post_processor and decoder of a tokenizer.json.
 *
 * Owns: one function per kind of step, which turns the JSON object into steps of struct tokenizer. A
 * Sequence is flattened. Never: ignores a kind, a pattern or an option it does not implement.
 */
#include "loaders/tokenizer/tokenizer_json.h"

#include <string.h>

static const char mark_text[] = "\xe2\x96\x81";

enum { MAX_REPLACEMENT = 256 };

static const json_t *type_of(const json_t *object) { return json_object_get(object, "type"); }

/* Runs `one` over the members of a Sequence. */
static bool each(struct tok_reader *r, const json_t *sequence, const char *members, const char *field,
                 bool (*one)(struct tok_reader *, const json_t *))
{
	const json_t *list = json_object_get(sequence, members), *item;
	size_t i;

	if (!json_is_array(list))
		return tok_json_refuse(r, field, list, "an array");
	json_array_foreach(list, i, item) if (!one(r, item)) return false;
	return true;
}

/* ---- patterns: {"String": text} or {"Regex": expression} */

static bool read_pattern(struct tok_reader *r, const json_t *object, const char *field, const json_t **text,
                         const json_t **regex)
{
	const json_t *pattern = json_object_get(object, "pattern");

	*text = json_object_get(pattern, "String");
	*regex = json_object_get(pattern, "Regex");
	if (json_is_string(pattern)) { /* an older form of {"String": text} */
		*text = pattern;
		*regex = NULL;
	}
	if (json_is_text(*text) == json_is_text(*regex) || (json_is_string(*text) && json_string_length(*text) == 0))
		return tok_json_refuse(r, field, pattern, "one String or Regex");
	return true;
}

/* ---- normalizer */

struct tok_norm_step *tok_json_new_norm(struct tok_reader *r, enum tok_norm_kind kind)
{
	struct tokenizer *t = r->t;

	if (t->n_norm == TOK_MAX_STEPS) {
		error_set(r->err, ERROR_UNSUPPORTED, "%s: the normalizer has more than %d steps", r->path,
		          TOK_MAX_STEPS);
		return NULL;
	}
	t->norm[t->n_norm] = (struct tok_norm_step){ .kind = kind };
	return &t->norm[t->n_norm++];
}

static bool read_replacement(struct tok_reader *r, struct tok_norm_step *s, const json_t *content, const char *field)
{
	if (!json_is_text(content) || json_string_length(content) > MAX_REPLACEMENT)
		return tok_json_refuse(r, field, content, "a string of at most 256 bytes");
	s->to = tok_json_copy(r, content, &s->n_to);
	return true;
}

static bool norm_replace(struct tok_reader *r, const json_t *object)
{
	struct tok_norm_step *s = tok_json_new_norm(r, TOK_NORM_REPLACE);
	const json_t *text, *regex;

	if (!s || !read_pattern(r, object, "normalizer.pattern", &text, &regex))
		return false;
	if (json_is_string(text))
		s->from = tok_json_copy(r, text, &s->n_from);
	else
		s->from_re = tok_regex(json_string_value(regex), json_string_length(regex), r->path, r->err);
	return (s->from || s->from_re) &&
	       read_replacement(r, s, json_object_get(object, "content"), "normalizer.content");
}

bool tok_json_normalizer(struct tok_reader *r, const json_t *object)
{
	static const struct {
		const char *name;
		enum tok_norm_kind kind;
	} plain[] = {
		{ "NFC", TOK_NORM_NFC },   { "NFD", TOK_NORM_NFD },         { "NFKC", TOK_NORM_NFKC },
		{ "NFKD", TOK_NORM_NFKD }, { "Lowercase", TOK_NORM_LOWER }, { "StripAccents", TOK_NORM_ACCENTS },
	};
	const json_t *type = type_of(object);
	struct tok_norm_step *s;

	if (!object || json_is_null(object))
		return true;
	if (tok_json_is(type, "Sequence"))
		return each(r, object, "normalizers", "normalizer.normalizers", tok_json_normalizer);
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (tok_json_is(type, plain[i].name))
			return tok_json_new_norm(r, plain[i].kind) != NULL;
	if (tok_json_is(type, "BertNormalizer"))
		return tok_json_bert_normalizer(r, object);
	if (tok_json_is(type, "Precompiled"))
		return tok_json_charsmap(r, object);
	if (tok_json_is(type, "Replace"))
		return norm_replace(r, object);
	if (tok_json_is(type, "Prepend"))
		return (s = tok_json_new_norm(r, TOK_NORM_PREPEND)) &&
		       read_replacement(r, s, json_object_get(object, "prepend"), "normalizer.prepend");
	if (tok_json_is(type, "Strip")) {
		if (!(s = tok_json_new_norm(r, TOK_NORM_STRIP)))
			return false;
		s->left = s->right = true;
		return tok_json_bool(r, object, "strip_left", &s->left) &&
		       tok_json_bool(r, object, "strip_right", &s->right);
	}
	return tok_json_refuse(r, "normalizer.type", type,
	                       "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, BertNormalizer, Precompiled, "
	                       "Replace, Prepend or Strip");
}

/* ---- pre_tokenizer */

static struct tok_pre_step *new_pre(struct tok_reader *r)
{
	struct tokenizer *t = r->t;

	if (t->n_pre == TOK_MAX_STEPS) {
		error_set(r->err, ERROR_UNSUPPORTED, "%s: the pre_tokenizer has more than %d steps", r->path,
		          TOK_MAX_STEPS);
		return NULL;
	}
	t->pre[t->n_pre] = (struct tok_pre_step){ .kind = TOK_PRE_SPLIT };
	return &t->pre[t->n_pre++];
}

static bool add_split(struct tok_reader *r, const char *pattern, size_t n, bool literal,
                      enum tok_split_behaviour behaviour, bool invert)
{
	struct tok_pre_step *s = new_pre(r);

	if (!s)
		return false;
	s->behaviour = behaviour;
	s->invert = invert;
	if (literal) {
		s->text = memcpy(r->copy, pattern, n);
		s->n_text = n;
		r->copy += n;
		return true;
	}
	s->re = tok_regex(pattern, n, r->path, r->err);
	return s->re != NULL;
}

static bool read_behaviour(struct tok_reader *r, const json_t *object, enum tok_split_behaviour *behaviour)
{
	static const char *const names[] = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
		                             "Contiguous" };
	const json_t *value = json_object_get(object, "behavior");

	if (!value)
		return true;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (tok_json_is(value, names[i])) {
			*behaviour = (enum tok_split_behaviour)i;
			return true;
		}
	return tok_json_refuse(r, "pre_tokenizer.behavior", value,
	                       "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

static bool pre_split(struct tok_reader *r, const json_t *object)
{
	enum tok_split_behaviour behaviour = TOK_SPLIT_ISOLATED;
	const json_t *text, *regex;
	bool invert = false;

	if (!read_pattern(r, object, "pre_tokenizer.pattern", &text, &regex) ||
	    !read_behaviour(r, object, &behaviour) || !tok_json_bool(r, object, "invert", &invert))
		return false;
	const json_t *pattern = json_is_string(text) ? text : regex;
	return add_split(r, json_string_value(pattern), json_string_length(pattern), pattern == text, behaviour,
	                 invert);
}

static bool pre_byte_level(struct tok_reader *r, const json_t *object)
{
	bool prefix = true, regex = true;

	if (!tok_json_bool(r, object, "add_prefix_space", &prefix) || !tok_json_bool(r, object, "use_regex", &regex))
		return false;
	r->byte_level = true;
	if (prefix) {
		struct tok_pre_step *s = new_pre(r);
		if (!s)
			return false;
		s->kind = TOK_PRE_PREFIX;
		s->scheme = TOK_PREFIX_ALWAYS;
		s->mark[0] = ' ';
		s->n_mark = 1;
	}
	return !regex || add_split(r, tok_gpt2_pattern, strlen(tok_gpt2_pattern), false, TOK_SPLIT_ISOLATED, false);
}

/* The prefix of Metaspace: prepend_scheme, or in older files add_prefix_space. */
static bool read_scheme(struct tok_reader *r, const json_t *object, enum tok_prefix_scheme *scheme, const char *field)
{
	const json_t *value = json_object_get(object, "prepend_scheme");
	bool prefix = true;

	if (!tok_json_bool(r, object, "add_prefix_space", &prefix))
		return false;
	*scheme = prefix ? TOK_PREFIX_ALWAYS : TOK_PREFIX_NEVER;
	if (!value || json_is_null(value))
		return true;
	if (tok_json_is(value, "always"))
		*scheme = TOK_PREFIX_ALWAYS;
	else if (tok_json_is(value, "first"))
		*scheme = TOK_PREFIX_FIRST;
	else if (tok_json_is(value, "never"))
		*scheme = TOK_PREFIX_NEVER;
	else
		return tok_json_refuse(r, field, value, "always, first or never");
	return true;
}

static bool pre_metaspace(struct tok_reader *r, const json_t *object)
{
	const json_t *mark = json_object_get(object, "replacement");
	struct tok_pre_step *s = new_pre(r);
	const char *text = json_is_string(mark) ? json_string_value(mark) : mark_text;
	size_t n = json_is_string(mark) ? json_string_length(mark) : 3;
	bool split = true;

	if (!s)
		return false;
	if ((mark && !json_is_string(mark)) || n == 0 || tok_char(text, n) != (int)n)
		return tok_json_refuse(r, "pre_tokenizer.replacement", mark, "one character");
	s->kind = TOK_PRE_PREFIX;
	s->replace = true;
	s->n_mark = (unsigned)n;
	memcpy(s->mark, text, n);
	if (!read_scheme(r, object, &s->scheme, "pre_tokenizer.prepend_scheme") ||
	    !tok_json_bool(r, object, "split", &split))
		return false;
	return !split || add_split(r, text, n, true, TOK_SPLIT_MERGED_NEXT, false);
}

static bool pre_digits(struct tok_reader *r, const json_t *object)
{
	bool individual = false;

	if (!tok_json_bool(r, object, "individual_digits", &individual))
		return false;
	const char *pattern = individual ? "\\p{N}" : "\\p{N}+";
	return add_split(r, pattern, strlen(pattern), false, TOK_SPLIT_ISOLATED, false);
}

static const char punctuation[] = "[\\p{P}$+<=>^`|~]";

static bool pre_punctuation(struct tok_reader *r, const json_t *object)
{
	enum tok_split_behaviour behaviour = TOK_SPLIT_ISOLATED;

	return read_behaviour(r, object, &behaviour) &&
	       add_split(r, punctuation, strlen(punctuation), false, behaviour, false);
}

static bool pre_delimiter(struct tok_reader *r, const json_t *object)
{
	const json_t *text = json_object_get(object, "delimiter");

	if (!json_is_text(text) || json_string_length(text) == 0)
		return tok_json_refuse(r, "pre_tokenizer.delimiter", text, "one character");
	return add_split(r, json_string_value(text), json_string_length(text), true, TOK_SPLIT_REMOVED, false);
}

bool tok_json_pre_tokenizer(struct tok_reader *r, const json_t *object)
{
	const json_t *type = type_of(object);

	if (!object || json_is_null(object))
		return true;
	if (tok_json_is(type, "Sequence"))
		return each(r, object, "pretokenizers", "pre_tokenizer.pretokenizers", tok_json_pre_tokenizer);
	if (tok_json_is(type, "ByteLevel"))
		return pre_byte_level(r, object);
	if (tok_json_is(type, "BertPreTokenizer"))
		return add_split(r, "\\s+", 3, false, TOK_SPLIT_REMOVED, false) &&
		       add_split(r, punctuation, strlen(punctuation), false, TOK_SPLIT_ISOLATED, false);
	if (tok_json_is(type, "Split"))
		return pre_split(r, object);
	if (tok_json_is(type, "Metaspace"))
		return pre_metaspace(r, object);
	if (tok_json_is(type, "Digits"))
		return pre_digits(r, object);
	if (tok_json_is(type, "Punctuation"))
		return pre_punctuation(r, object);
	if (tok_json_is(type, "CharDelimiterSplit"))
		return pre_delimiter(r, object);
	if (tok_json_is(type, "Whitespace"))
		return add_split(r, "\\w+|[^\\w\\s]+", 12, false, TOK_SPLIT_REMOVED, true);
	if (tok_json_is(type, "WhitespaceSplit"))
		return add_split(r, "\\s+", 3, false, TOK_SPLIT_REMOVED, false);
	return tok_json_refuse(r, "pre_tokenizer.type", type,
	                       "Sequence, ByteLevel, BertPreTokenizer, Split, Metaspace, Digits, Punctuation, "
	                       "CharDelimiterSplit, Whitespace or WhitespaceSplit");
}

/* ---- post_processor */

static bool add_around(struct tok_reader *r, int32_t *list, unsigned *n, const json_t *id)
{
	if (!json_is_integer(id) || json_integer_value(id) < 0 || (uint64_t)json_integer_value(id) >= r->t->n_token)
		return tok_json_refuse(r, "post_processor's token id", id, "an id of the vocabulary");
	if (*n == TOK_MAX_AROUND)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: the post_processor puts more than %d tokens on one side", r->path,
		                 TOK_MAX_AROUND);
	list[(*n)++] = (int32_t)json_integer_value(id);
	return true;
}

/* Puts new tokens around those that an earlier processor has put around the text. */
static bool wrap(struct tok_reader *r, const int32_t *head, unsigned n_head, const int32_t *tail, unsigned n_tail)
{
	struct tokenizer *t = r->t;

	if (n_head + t->n_head > TOK_MAX_AROUND || n_tail + t->n_tail > TOK_MAX_AROUND)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: the post_processor puts more than %d tokens on one side", r->path,
		                 TOK_MAX_AROUND);
	memmove(t->head + n_head, t->head, t->n_head * sizeof *head);
	memcpy(t->head, head, n_head * sizeof *head);
	memcpy(t->tail + t->n_tail, tail, n_tail * sizeof *tail);
	t->n_head += n_head;
	t->n_tail += n_tail;
	return true;
}

static bool post_template(struct tok_reader *r, const json_t *object)
{
	const json_t *single = json_object_get(object, "single"), *specials = json_object_get(object, "special_tokens"),
		     *item, *id;
	int32_t side[2][TOK_MAX_AROUND];
	unsigned n[2] = { 0, 0 }, after = 0;
	size_t i, k;

	if (!json_is_array(single))
		return tok_json_refuse(r, "post_processor.single", single, "an array");
	json_array_foreach(single, i, item)
	{
		const json_t *special = json_object_get(item, "SpecialToken"),
			     *sequence = json_object_get(item, "Sequence");
		if (json_is_object(sequence) && tok_json_is(json_object_get(sequence, "id"), "A") && !after) {
			after = 1;
			continue;
		}
		const json_t *name = json_object_get(special, "id");
		const json_t *ids = json_is_string(name)
		                            ? json_object_get(json_object_get(specials, json_string_value(name)), "ids")
		                            : NULL;
		if (!json_is_array(ids))
			return tok_json_refuse(r, "post_processor.single", item,
			                       "special tokens around one Sequence A");
		json_array_foreach(ids, k, id) if (!add_around(r, side[after], &n[after], id)) return false;
	}
	if (!after)
		return tok_json_refuse(r, "post_processor.single", single, "special tokens around one Sequence A");
	return tok_json_pair(r, object) && wrap(r, side[0], n[0], side[1], n[1]);
}

/* [text, id] before and after the text. */
static bool post_cls_sep(struct tok_reader *r, const json_t *object)
{
	int32_t head[TOK_MAX_AROUND], tail[TOK_MAX_AROUND];
	unsigned n_head = 0, n_tail = 0;

	return add_around(r, head, &n_head, json_array_get(json_object_get(object, "cls"), 1)) &&
	       add_around(r, tail, &n_tail, json_array_get(json_object_get(object, "sep"), 1)) &&
	       tok_json_pair_around(r, head[0], tail[0], tok_json_is(type_of(object), "RobertaProcessing")) &&
	       wrap(r, head, n_head, tail, n_tail);
}

bool tok_json_post_processor(struct tok_reader *r, const json_t *object)
{
	const json_t *type = type_of(object);

	/* ByteLevel only moves offsets, which are not kept here */
	if (!object || json_is_null(object) || tok_json_is(type, "ByteLevel"))
		return true;
	if (tok_json_is(type, "Sequence"))
		return each(r, object, "processors", "post_processor.processors", tok_json_post_processor);
	if (tok_json_is(type, "TemplateProcessing"))
		return post_template(r, object);
	if (tok_json_is(type, "RobertaProcessing") || tok_json_is(type, "BertProcessing"))
		return post_cls_sep(r, object);
	return tok_json_refuse(r, "post_processor.type", type,
	                       "Sequence, ByteLevel, TemplateProcessing, RobertaProcessing or BertProcessing");
}

/* ---- decoder */

static bool decode_replace(struct tok_reader *r, const json_t *object)
{
	const json_t *text, *regex;

	if (!read_pattern(r, object, "decoder.pattern", &text, &regex))
		return false;
	if (!json_is_string(text) || !tok_json_is(text, mark_text) ||
	    !tok_json_is(json_object_get(object, "content"), " "))
		return tok_json_refuse(r, "decoder", object, "a replacement of U+2581 by a space");
	r->t->space_mark = true;
	return true;
}

static bool decode_strip(struct tok_reader *r, const json_t *object)
{
	const json_t *start = json_object_get(object, "start"), *stop = json_object_get(object, "stop");

	if (!tok_json_is(json_object_get(object, "content"), " ") || !json_is_integer(start) ||
	    json_integer_value(start) < 0 || json_integer_value(start) > 1 || !json_is_integer(stop) ||
	    json_integer_value(stop) != 0)
		return tok_json_refuse(r, "decoder", object, "at most one space off the start");
	r->t->drop_first_space |= json_integer_value(start) == 1;
	return true;
}

static bool decode_metaspace(struct tok_reader *r, const json_t *object)
{
	const json_t *mark = json_object_get(object, "replacement");
	enum tok_prefix_scheme scheme;

	if (mark && !tok_json_is(mark, mark_text))
		return tok_json_refuse(r, "decoder.replacement", mark, "U+2581");
	if (!read_scheme(r, object, &scheme, "decoder.prepend_scheme"))
		return false;
	r->t->space_mark = true;
	r->t->drop_first_space |= scheme != TOK_PREFIX_NEVER;
	return true;
}

bool tok_json_decoder(struct tok_reader *r, const json_t *object)
{
	const json_t *type = type_of(object);

	/* byte tokens always become bytes, and pieces are always joined without a space between */
	if (!object || json_is_null(object) || tok_json_is(type, "ByteFallback") || tok_json_is(type, "Fuse"))
		return true;
	if (tok_json_is(type, "WordPiece")) {
		const json_t *cleanup = json_object_get(object, "cleanup");
		if (cleanup && !json_is_boolean(cleanup))
			return tok_json_refuse(r, "decoder.cleanup", cleanup, "true or false");
		r->t->drop_first_space = true;
		r->t->cleans_up = !cleanup || json_is_true(cleanup);
		return r->word_piece ||
		       tok_json_refuse(r, "decoder.type", type, "no WordPiece without a model of that type");
	}
	if (tok_json_is(type, "Sequence"))
		return each(r, object, "decoders", "decoder.decoders", tok_json_decoder);
	if (tok_json_is(type, "ByteLevel"))
		return r->byte_level ||
		       tok_json_refuse(r, "decoder.type", type, "no ByteLevel without a ByteLevel pre_tokenizer");
	if (tok_json_is(type, "Replace"))
		return decode_replace(r, object);
	if (tok_json_is(type, "Strip"))
		return decode_strip(r, object);
	if (tok_json_is(type, "Metaspace"))
		return decode_metaspace(r, object);
	return tok_json_refuse(r, "decoder.type", type,
	                       "Sequence, ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace or WordPiece");
}
