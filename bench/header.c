/* bench/header.c - see header.h. */
#include "bench/header.h"

#include "bench/jitbench_options.h"
#include "loaders/model/model_load.h"
#include "programs/common/shapes.h"
#include "programs/synth/synth.h"

bool bench_open_header(struct model *m, struct packed **packed, const char *path, uint8_t **header, struct error *err)
{
	size_t n;

	if (!opt.shape)
		return packed_or_files(m, packed, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
	*header = synth_header(&n, shape_find(opt.shape), mixture_find(opt.weights ? opt.weights : "q8_0"), err);
	return *header && model_open_memory(m, *header, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
}
