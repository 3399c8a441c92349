/* loaders/tokenizer/tokenizer_gguf_pieces.c - what GGUF keys say of WordPiece ("bert") and Unigram ("t5").
 *
 * Vocabularies of WordPiece mark the pieces that begin a word, by U+2581, and not those within one. Which steps come
 * before is not said but for two keys: texts are cleaned and without accents, as BERT's are.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

static const char mark[] = "\xe2\x96\x81";

static bool add_norm(struct tokenizer *t, enum tok_norm_kind kind)
{
	t->norm[t->n_norm++] = (struct tok_norm_step){ .kind = kind };
	return true;
}

static bool add_split(struct tokenizer *t, const char *pattern, enum tok_split_behaviour behaviour, const char *where,
                      struct error *err)
{
	struct tok_pre_step *s = &t->pre[t->n_pre];

	*s = (struct tok_pre_step){ .kind = TOK_PRE_SPLIT, .behaviour = behaviour };
	s->re = tok_regex(pattern, strlen(pattern), where, err);
	t->n_pre += s->re != NULL;
	return s->re != NULL;
}

static bool flag(const struct gguf *g, const char *key, bool *value, struct error *err)
{
	bool found = false, read = false;

	if (!gguf_bool(g, key, &read, &found, err))
		return false;
	*value = found ? read : *value;
	return true;
}

bool tok_gguf_word_piece(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	bool lower = true;

	if (!flag(g, KEY("normalizer.lowercase"), &lower, err))
		return false;
	bool accents = lower;
	memcpy(t->begin.p, mark, 3);
	t->begin.n = 3;
	t->max_characters = 100;
	t->drop_first_space = t->cleans_up = true;
	return flag(g, KEY("normalizer.strip_accents"), &accents, err) && add_norm(t, TOK_NORM_CLEAN) &&
	       add_norm(t, TOK_NORM_CHINESE) &&
	       (!accents || (add_norm(t, TOK_NORM_NFD) && add_norm(t, TOK_NORM_ACCENTS))) &&
	       (!lower || add_norm(t, TOK_NORM_LOWER)) && add_split(t, "\\s+", TOK_SPLIT_REMOVED, g->path, err) &&
	       add_split(t, "[\\p{P}$+<=>^`|~]", TOK_SPLIT_ISOLATED, g->path, err);
}

static bool read_scores(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	const struct gguf_kv *a = gguf_find(g, KEY("scores"));
	double min = 0;

	if (!a || a->type != GGUF_ARRAY || (a->item != GGUF_F32 && a->item != GGUF_F64) || a->count != t->n_token)
		return error_set(err, ERROR_FORMAT, "%s: %s is not an array of a float for each of the %zu tokens",
		                 g->path, KEY("scores"), t->n_token);
	if (!(t->score = calloc(t->n_token, sizeof *t->score)))
		return error_set(err, ERROR_MEMORY, "%s: no memory for the scores of %zu tokens", g->path, t->n_token);
	for (size_t i = 0; i < t->n_token; i++) {
		t->score[i] = (float)gguf_item_float(a, i);
		if (!isfinite(t->score[i]))
			return error_set(err, ERROR_FORMAT, "%s: %s of token %zu is not finite", g->path, KEY("scores"),
			                 i);
		if (t->type[i] == TOK_NORMAL && (double)t->score[i] < min)
			min = (double)t->score[i];
	}
	t->unknown_score = min - 10;
	return true;
}

static bool read_charsmap(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	const struct gguf_kv *a = gguf_find(g, KEY("precompiled_charsmap"));

	if (!a)
		return true;
	if (a->type != GGUF_ARRAY || (a->item != GGUF_U8 && a->item != GGUF_I8))
		return error_set(err, ERROR_FORMAT, "%s: %s is not an array of bytes", g->path,
		                 KEY("precompiled_charsmap"));
	return a->count == 0 ||
	       (add_norm(t, TOK_NORM_CHARSMAP) && tok_charsmap_open(&t->charsmap, a->data, a->count, g->path, err));
}

bool tok_gguf_unigram(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	bool prefix = true, collapse = true;

	if (!read_scores(t, g, err) || !read_charsmap(t, g, err) || !flag(g, KEY("add_space_prefix"), &prefix, err) ||
	    !flag(g, KEY("remove_extra_whitespaces"), &collapse, err))
		return false;
	if (collapse)
		add_norm(t, TOK_NORM_COLLAPSE_SPACES);
	if (prefix)
		t->norm[t->n_norm++] = (struct tok_norm_step){ .kind = TOK_NORM_PREPEND, .to = mark, .n_to = 3 };
	t->norm[t->n_norm++] =
		(struct tok_norm_step){ .kind = TOK_NORM_REPLACE, .from = " ", .n_from = 1, .to = mark, .n_to = 3 };
	t->drop_first_space = prefix;
	t->space_mark = true;
	return true;
}

/* [CLS] or <s> before a text, [SEP] or </s> behind it; of a pair, XLM-RoBERTa has two of these between. */
bool tok_gguf_around(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	const bool bert = t->model == TOK_WORD_PIECE;
	int32_t cls = -1, sep = -1;
	bool bos = true, eos = true;

	if (!tok_gguf_id(t, g, KEY("bos_token_id"), &t->bos, err) ||
	    !tok_gguf_id(t, g, KEY("eos_token_id"), &t->eos, err) ||
	    !tok_gguf_id(t, g, KEY("unknown_token_id"), &t->unknown, err) ||
	    !tok_gguf_id(t, g, KEY("cls_token_id"), &cls, err) ||
	    !tok_gguf_id(t, g, KEY("seperator_token_id"), &sep, err) ||
	    !tok_gguf_id(t, g, KEY("separator_token_id"), &sep, err) || !flag(g, KEY("add_bos_token"), &bos, err) ||
	    !flag(g, KEY("add_eos_token"), &eos, err))
		return false;
	if (t->unknown < 0)
		t->unknown = bert ? tok_find(t, "[UNK]", 5) : tok_find(t, "<unk>", 5);
	if (t->unknown < 0)
		return error_set(err, ERROR_FORMAT, "%s: %s is missing, which a vocabulary of this kind needs", g->path,
		                 KEY("unknown_token_id"));
	cls = cls >= 0 ? cls : t->bos >= 0 ? t->bos : bert ? tok_find(t, "[CLS]", 5) : -1;
	sep = sep >= 0 ? sep : t->eos >= 0 ? t->eos : bert ? tok_find(t, "[SEP]", 5) : -1;
	t->bos = t->bos >= 0 ? t->bos : cls;
	if (cls >= 0 && bos)
		t->head[t->n_head++] = cls;
	if (sep >= 0 && eos)
		t->tail[t->n_tail++] = sep;
	tok_roles_of_gguf(t, g);
	if (cls < 0 || sep < 0)
		return true;
	tok_pair_add(t, cls, 0);
	tok_pair_add(t, TOK_PAIR_FIRST, 0);
	tok_pair_add(t, sep, 0);
	if (!bert)
		tok_pair_add(t, sep, 0);
	tok_pair_add(t, TOK_PAIR_SECOND, bert);
	tok_pair_add(t, sep, bert);
	return true;
}

/* Of a byte-level vocabulary: the tokens around a text are around both, and a flag asks for one more between. */
bool tok_gguf_pair(struct tokenizer *t, const struct gguf *g, struct error *err)
{
	int32_t sep = t->eos;
	bool more = false;

	if (!tok_gguf_id(t, g, KEY("seperator_token_id"), &sep, err) ||
	    !tok_gguf_id(t, g, KEY("separator_token_id"), &sep, err) || !flag(g, KEY("add_sep_token"), &more, err))
		return false;
	tok_pair_add(t, t->bos, 0);
	tok_pair_add(t, TOK_PAIR_FIRST, 0);
	tok_pair_add(t, t->eos, 0);
	if (more && sep >= 0)
		tok_pair_add(t, sep, 0);
	tok_pair_add(t, TOK_PAIR_SECOND, 0);
	tok_pair_add(t, t->eos, 0);
	return true;
}
