/* runtime/model/model_notes.h - what programs say of a model that is open, beside what jitrun.h has. */
#ifndef RUNTIME_MODEL_NOTES_H
#define RUNTIME_MODEL_NOTES_H

#include "include/jitrun.h"

/* What the model's files ask of the choice of tokens that is not done: names of fields with commas between; NULL:
 * nothing. Lives as long as the model. */
const char *model_sampling_not_done(const jit_model *m);

#endif
