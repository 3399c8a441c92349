/* loaders/tokenizer/tokenizer_roles.c - tokens that have a task: which of them begins a text, or fills a gap in code.
 *
 * Owns: the names of roles, the keys of GGUF files and the fields of tokenizer_config.json that give them, and the
 * texts by which they are known where a file says nothing. A number that is no token gives no role: no text depends on
 * it, and files with such numbers are about.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <stdio.h>
#include <string.h>

#define BAR "\357\275\234"
#define MARK "\342\226\201"

enum { MAX_KEYS = 2, MAX_TEXTS = 12 };
/* texts: the first that is a token, and no normal one; behind "" also one that is: a text so long is a single token
 * only where the vocabulary's makers put it there. */
static const struct {
	const char *name, *field;
	const char *key[MAX_KEYS]; /* tokenizer.ggml.KEY_token_id */
	const char *text[MAX_TEXTS];
} roles[TOK_ROLES] = {
	[TOK_ROLE_BOS] = { "bos", NULL, { NULL }, { NULL } },
	[TOK_ROLE_EOS] = { "eos", NULL, { NULL }, { NULL } },
	[TOK_ROLE_EOT] = { "eot",
	                   "eot_token",
	                   { "eot" },
	                   { "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|end_of_turn|>", "<|endoftext|>",
	                     "<|end_of_text|>", "<EOT>", MARK "<EOT>", "[EOT]",
	                     "<" BAR "end" MARK "of" MARK "sentence" BAR ">", "<end_of_utterance>" } },
	[TOK_ROLE_EOM] = { "eom", NULL, { "eom" }, { "<|eom_id|>" } },
	[TOK_ROLE_PAD] = { "pad", "pad_token", { "padding" }, { NULL } },
	[TOK_ROLE_UNK] = { "unk", "unk_token", { "unknown" }, { NULL } },
	[TOK_ROLE_SEP] = { "sep", "sep_token", { "seperator", "separator" }, { NULL } },
	[TOK_ROLE_MASK] = { "mask", "mask_token", { "mask" }, { NULL } },
	[TOK_ROLE_CLS] = { "cls", "cls_token", { "cls" }, { NULL } },
	[TOK_ROLE_FIM_PREFIX] = { "fim_prefix",
	                          "prefix_token",
	                          { "fim_pre", "prefix" },
	                          { "<PRE>", "", "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>",
	                            "<" BAR "fim" MARK "begin" BAR ">", MARK "<PRE>", "<|code_prefix|>", "<|prefix|>",
	                            "<[fim-prefix]>" } },
	[TOK_ROLE_FIM_SUFFIX] = { "fim_suffix",
	                          "suffix_token",
	                          { "fim_suf", "suffix" },
	                          { "<SUF>", "", "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>",
	                            "<" BAR "fim" MARK "hole" BAR ">", MARK "<SUF>", "<|code_suffix|>", "<|suffix|>",
	                            "<[fim-suffix]>" } },
	[TOK_ROLE_FIM_MIDDLE] = { "fim_middle",
	                          "middle_token",
	                          { "fim_mid", "middle" },
	                          { "<MID>", "", "<|fim_middle|>", "<fim-middle>", "<fim_middle>",
	                            "<" BAR "fim" MARK "end" BAR ">", MARK "<MID>", "<|code_middle|>", "<|middle|>",
	                            "<[fim-middle]>" } },
	[TOK_ROLE_FIM_PAD] = { "fim_pad",
	                       NULL,
	                       { "fim_pad" },
	                       { "<PAD>", "[PAD]", "", "<|fim_pad|>", "<fim-pad>", "<fim_pad>" } },
	[TOK_ROLE_FIM_REPO] = { "fim_repo",
	                        NULL,
	                        { "fim_rep" },
	                        { "<REPO>", "", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>",
	                          "<repo_name>" } },
	[TOK_ROLE_FIM_SEP] = { "fim_sep", NULL, { "fim_sep" }, { "", "<|file_sep|>", "<file_sep>" } },
};

const char *tokenizer_role_name(size_t number) { return number < TOK_ROLES ? roles[number].name : NULL; }

int32_t tokenizer_role(const struct tokenizer *t, enum tok_role role) { return t->role[role]; }

const char *tok_role_field(size_t number) { return roles[number].field; }

void tok_roles_of_gguf(struct tokenizer *t, const struct gguf *g)
{
	for (size_t i = 0; i < TOK_ROLES; i++)
		for (size_t k = 0; k < MAX_KEYS && roles[i].key[k]; k++) {
			struct error unused = { 0 };
			uint64_t value = 0;
			bool found = false;
			char key[64];
			snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", roles[i].key[k]);
			if (t->role[i] < 0 && gguf_u64(g, key, &value, &found, &unused) && found && value < t->n_token)
				t->role[i] = (int32_t)value;
		}
}

static int32_t by_text(const struct tokenizer *t, size_t role)
{
	bool normal = false;

	for (size_t i = 0; i < MAX_TEXTS && roles[role].text[i]; i++) {
		const char *text = roles[role].text[i];
		int32_t id = *text ? tok_find(t, text, strlen(text)) : -1;
		normal = normal || !*text;
		if (id >= 0 && (normal || t->type[id] != TOK_NORMAL))
			return id;
	}
	return -1;
}

void tok_roles_finish(struct tokenizer *t)
{
	t->role[TOK_ROLE_BOS] = t->bos;
	t->role[TOK_ROLE_EOS] = t->eos;
	if (t->role[TOK_ROLE_UNK] < 0)
		t->role[TOK_ROLE_UNK] = t->unknown;
	for (size_t i = 0; i < TOK_ROLES; i++)
		if (t->role[i] < 0)
			t->role[i] = by_text(t, i);
}

/* ---- one token */

enum tok_type tokenizer_type(const struct tokenizer *t, int32_t id, const char **text, size_t *n)
{
	const bool known = id >= 0 && (size_t)id < t->n_token && t->token[id].p;

	*text = known ? t->token[id].p : NULL;
	*n = known ? (size_t)t->token[id].n : 0;
	return known ? (enum tok_type)t->type[id] : TOK_UNUSED;
}
