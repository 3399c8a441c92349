/* programs/common/draft_model.h - the draft model of a command line.
 *
 * Owns: what its options rule out, and how it is opened.
 */
#ifndef PROGRAMS_DRAFT_MODEL_H
#define PROGRAMS_DRAFT_MODEL_H

#include "include/jitrun_draft.h"

/* What the rows of draft_rows.def fill in. */
struct draft_arguments {
	const char *model, *device, *kv_type;
	long context, max, min;
	double min_p;
};

/* What they rule out, beside --speculate of that value, as a sentence; NULL: nothing. */
const char *draft_model_refused(const struct draft_arguments *a, const char *speculate);
/* Opens the model with these options, but on its own device where it has one, and fills in *out, which holds it. The
 * caller closes the model. NULL: err, which says that it is about --draft. */
jit_model *draft_model_open(struct draft_arguments *a, jit_model_options mo, jit_draft_options *out, jit_error *err);

#endif
