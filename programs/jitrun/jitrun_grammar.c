/* programs/jitrun/jitrun_grammar.c - --json-schema, --regex and --grammar: the grammar that answers keep to. */
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/prompt.h"
#include "include/jitrun_grammar.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"

enum { GRAMMAR_MAX = 16 << 20 };

bool jitrun_has_grammar(void)
{
	return opt.json_schema || opt.json_schema_file || opt.regex || opt.gbnf || opt.gbnf_file;
}

int jitrun_check_grammar(void)
{
	if ((opt.json_schema != NULL) + (opt.json_schema_file != NULL) + (opt.regex != NULL) + (opt.gbnf != NULL) +
	            (opt.gbnf_file != NULL) >
	    1)
		return jitrun_usage("an answer keeps to one grammar: give one of --json-schema, --json-schema-file, "
		                    "--regex, --grammar and --grammar-file");
	if (opt.additional && !opt.json_schema && !opt.json_schema_file)
		return jitrun_usage("--additional-properties is about a JSON Schema: give --json-schema or "
		                    "--json-schema-file, too");
	return 0;
}

static int kind(void)
{
	return opt.regex                   ? JIT_GRAMMAR_REGEX
	       : opt.gbnf || opt.gbnf_file ? JIT_GRAMMAR_GBNF
	       : opt.additional            ? JIT_GRAMMAR_JSON_SCHEMA | JIT_GRAMMAR_ADDITIONAL
	                                   : JIT_GRAMMAR_JSON_SCHEMA;
}

/* *reasons: an expression or rules are about reasoning, too, whose marks they have. */
static bool begin(jit_session *s, bool *reasons, jit_error *err)
{
	const char *text = opt.regex ? opt.regex : opt.gbnf ? opt.gbnf : opt.json_schema;
	const char *name = opt.json_schema_file ? opt.json_schema_file : opt.gbnf_file;
	struct prompt file = { 0 };
	size_t n = text ? strlen(text) : 0;

	if (!jitrun_has_grammar())
		return true;
	if (name) {
		if (!prompt_read(&file, name, GRAMMAR_MAX, err))
			return false;
		text = file.text ? file.text : "";
		n = file.n;
	}
	bool ok = jit_session_set_grammar(s, kind(), text, n, err) == JIT_OK;
	*reasons = (opt.regex || opt.gbnf || opt.gbnf_file) && think_until_mark(text, n) < n;
	prompt_free(&file);
	return ok;
}

bool jitrun_try_grammar(jit_session *s, jit_error *err)
{
	bool reasons;

	return begin(s, &reasons, err) && jit_session_set_grammar(s, JIT_GRAMMAR_NONE, NULL, 0, err) == JIT_OK;
}

bool jitrun_begin_grammar(const struct run *r, jit_error *err)
{
	const struct session_lead lead = { .inside = r->before.inside, .pair = r->before.pair, .may = r->before.may };
	struct error e = { 0 };
	bool reasons = false;

	if (!begin(r->session, &reasons, err))
		return false;
	if (!jitrun_has_grammar() || reasons || session_grammar_lead(r->session, &lead, &e))
		return true;
	return model_report(err, &e) == JIT_OK;
}

bool jitrun_grammar_is_complete(jit_session *s) { return jitrun_has_grammar() && jit_session_grammar_complete(s) == 1; }
