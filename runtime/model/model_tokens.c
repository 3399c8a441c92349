/* runtime/model/model_tokens.c - jitrun_tokens.h: the vocabulary token by token, roles of tokens, and jit_free. */
#include "include/jitrun_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/model/model.h"
#include "runtime/model/sized.h"

_Static_assert((int)TOK_NORMAL == JIT_TOKEN_NORMAL && (int)TOK_UNKNOWN == JIT_TOKEN_UNKNOWN &&
                       (int)TOK_CONTROL == JIT_TOKEN_CONTROL && (int)TOK_USER == JIT_TOKEN_USER &&
                       (int)TOK_UNUSED == JIT_TOKEN_UNUSED && (int)TOK_BYTE == JIT_TOKEN_BYTE,
               "kinds are those of the loaders");

void jit_free(void *p) { free(p); }

static bool fill(const jit_model *m, int32_t id, jit_token *out, char *bytes, size_t room, struct error *e)
{
	const struct tokenizer *t = m->file.tokenizer;
	jit_token own = { .size = sizeof own };
	char scratch[256];

	own.kind = (int)tokenizer_type(t, id, &own.text, &own.n_text);
	own.is_end = tokenizer_is_eog(t, id);
	const char *adds = tokenizer_piece(t, id, false, true, scratch, &own.n_bytes);
	if (!SIZED_WRITE(jit_token, out, &own, e))
		return false;
	const size_t n = own.n_bytes < room ? own.n_bytes : room;
	if (n)
		memcpy(bytes, adds, n);
	return true;
}

int jit_model_token(const jit_model *m, int32_t id, jit_token *out, char *bytes, size_t room, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(m, &e) && NEEDED_LIST(bytes, room, &e) && model_needs_tokenizer(m, &e) &&
	    model_check_ids(m, &id, 1, &e))
		fill(m, id, out, bytes, room, &e);
	return model_report(err, &e);
}

int32_t jit_model_find_token(const jit_model *m, const char *text, size_t n)
{
	return m && m->file.tokenizer && text ? tokenizer_find(m->file.tokenizer, text, n) : -1;
}

const char *jit_model_stop(const jit_model *m, size_t number)
{
	return m && number < m->file.sampling.n_stop ? m->file.sampling.stop[number] : NULL;
}

const char *jit_token_role(size_t number) { return tokenizer_role_name(number); }

static bool find_role(const char *role, enum tok_role *found, struct error *e)
{
	char names[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < TOK_ROLES; i++) {
		const char *name = tokenizer_role_name(i);
		*found = (enum tok_role)i;
		if (strcmp(name, role) == 0)
			return true;
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", name);
	}
	char quoted[64];
	return error_set(e, ERROR_ARGUMENT, "there is no role \"%s\" of a token; expected one of %s",
	                 error_quote(quoted, sizeof quoted, role, strlen(role)), names);
}

int jit_model_role(const jit_model *m, const char *role, int32_t *id, jit_error *err)
{
	struct error e = { 0 };
	enum tok_role r;

	if (NEEDED(m, &e) && NEEDED(role, &e) && NEEDED(id, &e) && find_role(role, &r, &e) &&
	    model_needs_tokenizer(m, &e))
		*id = tokenizer_role(m->file.tokenizer, r);
	return model_report(err, &e);
}
