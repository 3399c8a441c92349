/* server/request/request_fields.c - which fields a request may have. */
#include "server/request/request_fields.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "server/request/fields.h"
#include "server/request/tool_notes.h"

#define CHAT REQUEST_CHAT
#define TEXT REQUEST_TEXT
#define NATIVE REQUEST_NATIVE
#define MESSAGES REQUEST_MESSAGES
#define RESPONSES REQUEST_RESPONSES
#define EMBED REQUEST_EMBED
#define RANK REQUEST_RANK
#define TOKENIZE REQUEST_TOKENIZE
#define DETOKENIZE REQUEST_DETOKENIZE
#define SLOT REQUEST_SLOT
#define OLLAMA_CHAT REQUEST_OLLAMA_CHAT
#define OLLAMA_TEXT REQUEST_OLLAMA_TEXT
#define OLLAMA_EMBED REQUEST_OLLAMA_EMBED
#define OLLAMA_OPTIONS REQUEST_OLLAMA_OPTIONS
#define INFILL REQUEST_INFILL
#define SCORE REQUEST_SCORE

#define GENERATE (CHAT | TEXT | NATIVE | MESSAGES | RESPONSES)
#define TALK (CHAT | MESSAGES | RESPONSES)

#define NOTHING HARMLESS_NOTHING
#define FALSE HARMLESS_FALSE
#define TRUE HARMLESS_TRUE
#define ZERO HARMLESS_ZERO
#define ONE HARMLESS_ONE
#define TWO HARMLESS_TWO
#define MINUS HARMLESS_MINUS
#define EMPTY HARMLESS_EMPTY
#define WORD HARMLESS_WORD
#define TEXTS HARMLESS_TEXTS
#define STRING HARMLESS_STRING

#define DONE(kinds, name, what) { kinds, name, FIELD_DONE, 0, what },
#define REFUSED(kinds, name, harmless, what) { kinds, name, FIELD_REFUSED, harmless, what },
#define PASSED(kinds, name, what) { kinds, name, FIELD_PASSED, 0, what },
const struct request_field request_fields[] = {
#include "server/request/request_fields.def"
#include "server/request/request_fields_ollama.def"
};
const size_t n_request_fields = sizeof request_fields / sizeof *request_fields;

/* Whose fields a kind has beside its own; 0: nobody's. */
static unsigned kind_beside(unsigned kind)
{
	return kind == OLLAMA_CHAT    ? CHAT
	       : kind == OLLAMA_TEXT  ? TEXT
	       : kind == OLLAMA_EMBED ? EMBED
	       : kind == INFILL       ? NATIVE
	                              : 0;
}

const struct request_field *request_field_of(enum request_kind kind, const char *name)
{
	for (unsigned k = kind; k; k = kind_beside(k))
		for (size_t i = 0; i < n_request_fields; i++)
			if ((request_fields[i].kinds & k) && strcmp(request_fields[i].name, name) == 0)
				return &request_fields[i];
	return NULL;
}

/* Whether a value asks for nothing. */
static bool is_harmless(const json_t *v, unsigned harmless)
{
	const double number = json_number_value(v);
	const char *word = json_string_value(v);
	const bool empty = (word && !*word) || (json_is_array(v) && json_array_size(v) == 0) ||
	                   (json_is_object(v) && json_object_size(v) == 0) || json_is_false(v);
	const char *first = json_array_size(v) == 1 ? json_string_value(json_array_get(v, 0)) : NULL;

	return ((harmless & HARMLESS_FALSE) && json_is_false(v)) || ((harmless & HARMLESS_TRUE) && json_is_true(v)) ||
	       (json_is_number(v) &&
	        (((harmless & HARMLESS_ZERO) && number == 0) || ((harmless & HARMLESS_ONE) && number == 1) ||
	         ((harmless & HARMLESS_TWO) && number == 2) || ((harmless & HARMLESS_MINUS) && number < 0))) ||
	       ((harmless & HARMLESS_EMPTY) && empty) ||
	       ((harmless & HARMLESS_WORD) && word && (strcmp(word, "none") == 0 || strcmp(word, "auto") == 0)) ||
	       ((harmless & HARMLESS_STRING) && word) ||
	       ((harmless & HARMLESS_TEXTS) && first && strcmp(first, "text") == 0);
}

enum { GENERATES = GENERATE | INFILL | OLLAMA_CHAT | OLLAMA_TEXT | OLLAMA_OPTIONS };

/* Names of no row that begin so are of fields that bind answers elsewhere, or will. */
static bool binds(enum request_kind kind, const char *name)
{
	static const char *const beginnings[] = {
		"guided_",     "structured_", "allowed_",  "banned_",   "ban_",  "bad_",      "forced_",
		"force_",      "no_repeat_",  "min_",      "max_",      "stop_", "stopping_", "lora_",
		"adapter",     "sampler_",    "mirostat_", "dynatemp_", "xtc_",  "dry_",      "smoothing_",
		"repetition_", "rep_pen",     "grammar_",  "regex_"
	};

	for (size_t i = 0; (kind & GENERATES) && i < sizeof beginnings / sizeof *beginnings; i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

/* Whether both have the same letters and digits, as maxTokens and max_tokens do. */
static bool same_letters(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, "_-. ");
		b += strspn(b, "_-. ");
		if (!*a || tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return *a == *b;
	}
}

/* A field that is done, whose name is written otherwise here; NULL: there is none. */
static const char *meant(enum request_kind kind, const char *name)
{
	for (unsigned k = kind & GENERATES; k; k = kind_beside(k))
		for (size_t i = 0; i < n_request_fields; i++)
			if ((request_fields[i].kinds & k) && request_fields[i].meaning == FIELD_DONE &&
			    same_letters(request_fields[i].name, name))
				return request_fields[i].name;
	return NULL;
}

static bool may_be_unknown(enum request_kind kind, const char *name, const json_t *v, struct refusal *r)
{
	const char *other = meant(kind, name);

	if (is_harmless(v, HARMLESS_FALSE | HARMLESS_ZERO | HARMLESS_MINUS | HARMLESS_EMPTY))
		return true;
	if (other)
		return refuse(r, 400, name, "%.80s is not known here; send %s instead", name, other);
	return !binds(kind, name) ||
	       refuse(r, 400, name, "%.80s is not known here, and by its name it binds the answer", name);
}

static bool may_be(enum request_kind kind, const char *name, const json_t *v, struct refusal *r)
{
	const struct request_field *f = request_field_of(kind, name);

	if (!f && kind == OLLAMA_OPTIONS && request_field_of(NATIVE, name) &&
	    request_field_of(NATIVE, name)->meaning != FIELD_PASSED)
		return refuse(r, 400, name, "%s is no option of ollama's; send it beside options", name);
	if (!f)
		return may_be_unknown(kind, name, v, r);
	return f->meaning != FIELD_REFUSED || is_harmless(v, f->harmless) ||
	       refuse(r, 400, name, "%s is not supported: %s", name, f->what);
}

bool request_take(json_t *o, enum request_kind kind, struct refusal *r)
{
	const struct request_field *f;
	const char *name;
	json_t *v;
	void *next;

	tool_notes_remove(o);
	json_object_foreach_safe(o, next, name, v)
	{
		if (field_value(o, name) && !may_be(kind, name, v, r))
			return false;
		/* One that asks for nothing, or is passed over, is read nowhere; answers of responses repeat some. */
		f = request_field_of(kind, name);
		if (f && (f->meaning == FIELD_REFUSED || (f->meaning == FIELD_PASSED && kind != REQUEST_RESPONSES)))
			json_object_del(o, name);
	}
	return true;
}

json_t *request_read(const void *p, size_t n, enum request_kind kind, struct refusal *r)
{
	json_t *o = fields_read(p, n, r);

	if (!o || request_take(o, kind, r))
		return o;
	json_decref(o);
	return NULL;
}
