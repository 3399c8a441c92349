/* programs/jitrun/jitrun_draft.c - the draft model of the command line. See jitrun_parts.h. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "include/jitrun_draft.h"
#include "programs/common/shared_rows.h"
#include "programs/jitrun/jitrun_parts.h"

static jit_model *model;
static jit_draft_options options;

const char *jitrun_check_draft(void)
{
	const bool any = opt.draft_device || opt.draft_context || opt.draft_max || opt.draft_min || opt.draft_p_min > 0;

	if (any && !opt.draft)
		return "--draft-device, --draft-context, --draft-max, --draft-min and --draft-p-min go with --draft "
		       "MODEL";
	if (opt.draft && !opt.draft[strspn(opt.draft, "0123456789")] && !model_is_path(opt.draft))
		return "--draft MODEL takes a model; --draft-max N says how many tokens it proposes";
	return opt.draft && strcmp(opt.speculate, "off") == 0 ? "--draft goes without --speculate off" : NULL;
}

/* The sentence says which of the two models it is about. */
static bool fail(const char *why, jit_error *err)
{
	char text[sizeof err->message];

	snprintf(text, sizeof text, "--draft: %.*s", (int)sizeof text - 16, why);
	memcpy(err->message, text, sizeof text);
	return false;
}

bool jitrun_open_draft(jit_session_options *o, jit_error *err)
{
	jit_model_options mo = jitrun_model_options();
	struct error e = { 0 };

	if (!opt.draft)
		return true;
	if (!model_path(&opt.draft, &e)) {
		err->code = JIT_ERROR_IO;
		return fail(e.text, err);
	}
	mo.device = opt.draft_device ? opt.draft_device : opt.device;
	mo.cancel = o->cancel;
	mo.dump_ir = mo.dump_asm = NULL;
	if (!(model = jit_model_open(opt.draft, &mo, err)))
		return fail(err->message, err);
	options = JIT_DRAFT_OPTIONS(.model = model, .kv = kv_type_option(opt.draft_kv_type),
	                            .context = (int)opt.draft_context, .max = (int)opt.draft_max,
	                            .min = (int)opt.draft_min, .min_p = (float)opt.draft_p_min);
	o->draft = &options;
	return true;
}

void jitrun_close_models(jit_model *m)
{
	jit_model_close(model);
	jit_model_close(m);
}

bool jitrun_draft_stats(const jit_session *s, jit_draft_stats *out)
{
	*out = JIT_DRAFT_STATS();
	return opt.draft && jit_session_get_draft_stats(s, out, NULL) == JIT_OK;
}

void jitrun_print_draft(const jit_session *s)
{
	jit_draft_stats d;

	if (!jitrun_draft_stats(s, &d))
		return;
	fprintf(stderr, "draft   %8llu passes asked for, %llu tokens proposed, %llu of %llu accepted, %.3f s",
	        (unsigned long long)d.requests, (unsigned long long)d.proposed, (unsigned long long)d.accepted,
	        (unsigned long long)d.used, d.seconds);
	if (d.trouble)
		fprintf(stderr, "; then no more: %s", d.trouble);
	else if (d.gain > 0)
		fprintf(stderr, "; %.2f times as fast as without: %s", d.gain,
		        d.gain > 1 ? "it pays" : "it does not pay");
	else
		fputs("; it was not measured", stderr);
	fputc('\n', stderr);
}
