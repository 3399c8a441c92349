/* server/completions/infill_families.c - in which order a model was taught the texts around a gap.
 *
 * Owns: the table of families that differ from the usual order, prefix, suffix, middle. They are told by the text of
 * their token for what stands before a gap, or by the name that their files give them where that token is another
 * family's, too.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_tokens.h"
#include "server/completions/infill.h"

/* token, name: NULL is any. The first row that fits counts. Where the orders are told: Seed-Coder in its technical
 * report (arXiv 2506.03524), Mellum in its own (arXiv 2510.05788), CodeGeeX 4 in the guide to infilling of its
 * repository. */
static const struct family {
	const char *token, *name;
	enum infill_order order;
} families[] = {
	{ "[PREFIX]", NULL, INFILL_SUFFIX_PREFIX },              /* Codestral */
	{ NULL, "codestral", INFILL_SUFFIX_PREFIX },             /* with numbers in the file's metadata */
	{ "<[fim-prefix]>", NULL, INFILL_SUFFIX_PREFIX_MIDDLE }, /* Seed-Coder */
	{ NULL, "mellum", INFILL_SUFFIX_PREFIX_MIDDLE },         /* StarCoder's tokens */
	{ NULL, "codegeex", INFILL_SUFFIX_PREFIX_MIDDLE },       /* GLM's tokens */
};

/* In small and large letters alike. */
static bool has_word(const char *text, const char *word)
{
	const size_t n = strlen(word);

	for (; *text; text++) {
		size_t i = 0;
		while (i < n && tolower((unsigned char)text[i]) == word[i])
			i++;
		if (i == n)
			return true;
	}
	return false;
}

enum infill_order infill_order_of(const char *token, size_t n, const char *name)
{
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		const struct family *f = &families[i];
		const bool is = !f->token || (strlen(f->token) == n && memcmp(f->token, token, n) == 0);
		if (is && (!f->name || has_word(name, f->name)))
			return f->order;
	}
	return INFILL_PREFIX_SUFFIX_MIDDLE;
}

/* What the model's files call it; "": nothing. */
static void name_of(const jit_model *model, char out[400])
{
	static const char *const keys[] = { "general.name", "general.basename", "_name_or_path" };

	out[0] = 0;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const int64_t at = jit_model_metadata_find(model, keys[i]);
		jit_metadata d = JIT_METADATA();
		if (at < 0 || jit_model_metadata(model, (size_t)at, &d, NULL) != JIT_OK || !d.text)
			continue;
		const size_t n = strlen(out);
		const size_t max = 399 - n < 120 ? 399 - n : 120, length = strlen(d.text);
		memcpy(out + n, d.text, length < max ? length : max);
		out[n + (length < max ? length : max)] = 0;
	}
}

/* The token of this text; -1: it is none by itself. */
static int32_t token_of(const jit_model *model, const char *text)
{
	int32_t *ids = NULL, id = -1;
	size_t n = 0;

	if (models_go_on(model, text, true, &ids, &n, NULL) && n == 1)
		id = ids[0];
	free(ids);
	return id;
}

/* Mistral's vocabularies have the tokens of Codestral in all of its models, and these alone were taught them. */
static void find_mistrals(const jit_model *model, const char *name, struct infill_marks *m)
{
	if (!has_word(name, "codestral") || has_word(name, "mamba"))
		return;
	if (m->id[INFILL_PREFIX] < 0)
		m->id[INFILL_PREFIX] = token_of(model, "[PREFIX]");
	if (m->id[INFILL_SUFFIX] < 0)
		m->id[INFILL_SUFFIX] = token_of(model, "[SUFFIX]");
}

bool infill_find(const jit_model *model, struct infill_marks *m)
{
	static const char *const roles[INFILL_MARKS] = { "fim_prefix", "fim_suffix", "fim_middle",
		                                         "fim_repo",   "fim_sep",    "fim_pad" };
	char name[400], scratch[256];
	size_t n = 0;

	for (size_t i = 0; i < INFILL_MARKS; i++)
		if (jit_model_role(model, roles[i], &m->id[i], NULL) != JIT_OK)
			m->id[i] = -1;
	name_of(model, name);
	find_mistrals(model, name, m);
	const int32_t prefix = m->id[INFILL_PREFIX];
	const char *text = prefix < 0 ? "" : models_bytes(model, prefix, true, scratch, &n);
	m->order = infill_order_of(text, n, name);
	return prefix >= 0 && m->id[INFILL_SUFFIX] >= 0 &&
	       (m->order == INFILL_SUFFIX_PREFIX || m->id[INFILL_MIDDLE] >= 0);
}
