/* programs/common/model_facts.h - what the files of a model say of themselves, whether or not jitrun runs it.
 *
 * Owns: the reading of containers alone: which architecture, how many tensors of which type. Only headers are read, and
 * they may be all there is of the files. loaders/model/model.h says what a model is that runs.
 */
#ifndef PROGRAMS_MODEL_FACTS_H
#define PROGRAMS_MODEL_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "loaders/model/model.h"

struct model_facts {
	const char *format; /* "GGUF", "safetensors" */
	uint32_t version;   /* of GGUF files */
	uint32_t files;
	uint64_t file_bytes, tensors, parameters;
	char architecture[64], name[160]; /* as the files spell them; "": they do not say */
	uint64_t layers, context;         /* 0: they do not say */
	struct model_facts_type {
		uint64_t tensors, parameters, bytes;
	} type[DTYPE_COUNT];
};

/* Of a path as model_open() takes it. False: err. */
bool model_facts_read(struct model_facts *f, const char *path, struct error *err);
/* The same of a model that is open already, for formats that hold it in another way: of the tensors that it uses.
 * format: its name. */
void model_facts_of(struct model_facts *f, const struct model *m, const char *format);
/* The type that most bytes are of; DTYPE_COUNT: there are no tensors. */
enum dtype model_facts_main_type(const struct model_facts *f);

#endif
