/* programs/common/draft_model.c - see draft_model.h. */
#include "programs/common/draft_model.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "programs/common/model_names.h"
#include "programs/common/shared_rows.h"

const char *draft_model_refused(const struct draft_arguments *a, const char *speculate)
{
	if ((a->device || a->context || a->max || a->min || a->min_p > 0) && !a->model)
		return "--draft-device, --draft-context, --draft-max, --draft-min and --draft-p-min go with --draft "
		       "MODEL";
	if (a->model && !a->model[strspn(a->model, "0123456789")] && !model_is_path(a->model))
		return "--draft MODEL takes a model; --draft-max N says how many tokens it proposes";
	return a->model && strcmp(speculate, "off") == 0 ? "--draft goes without --speculate off" : NULL;
}

/* The sentence says which of the two models it is about. */
static jit_model *fail(const char *why, jit_error *err)
{
	char text[sizeof err->message];

	snprintf(text, sizeof text, "--draft: %.*s", (int)sizeof text - 16, why);
	memcpy(err->message, text, sizeof text);
	return NULL;
}

jit_model *draft_model_open(struct draft_arguments *a, jit_model_options mo, jit_draft_options *out, jit_error *err)
{
	struct error e = { 0 };

	if (!model_path(&a->model, &e)) {
		err->code = JIT_ERROR_IO;
		return fail(e.text, err);
	}
	if (a->device)
		mo.device = a->device;
	mo.dump_ir = mo.dump_asm = NULL;
	jit_model *model = jit_model_open(a->model, &mo, err);
	if (!model)
		return fail(err->message, err);
	*out = JIT_DRAFT_OPTIONS(.model = model, .kv = kv_type_option(a->kv_type), .context = (int)a->context,
	                         .max = (int)a->max, .min = (int)a->min, .min_p = (float)a->min_p);
	return model;
}
