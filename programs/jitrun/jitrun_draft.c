/* programs/jitrun/jitrun_draft.c - the draft model of the command line. See jitrun_parts.h. */
#include <stdio.h>

#include "include/jitrun_draft.h"
#include "programs/jitrun/jitrun_parts.h"

static jit_model *model;
static jit_draft_options options;

const char *jitrun_check_draft(void) { return draft_model_refused(&opt.draft, opt.speculate); }

bool jitrun_open_draft(jit_session_options *o, jit_error *err)
{
	jit_model_options mo = jitrun_model_options();

	if (!opt.draft.model)
		return true;
	mo.device = opt.device;
	mo.cancel = o->cancel;
	if (!(model = draft_model_open(&opt.draft, mo, &options, err)))
		return false;
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
	return opt.draft.model && jit_session_get_draft_stats(s, out, NULL) == JIT_OK;
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
