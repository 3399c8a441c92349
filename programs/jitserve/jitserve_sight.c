/* programs/jitserve/jitserve_sight.c - image encoders of served models: which model has one, and what the command line
 * says of pictures. */
#include <stdio.h>
#include <stdlib.h>

#include "include/jitrun_images.h"
#include "programs/common/model_search.h"
#include "programs/jitserve/jitserve.h"
#include "runtime/model/model.h"
#include "server/engine/sight.h"
#include "vision/seer.h"

/* Where the command line says nothing: pictures of a request, millions of pixels of each, and memory for features. */
enum { USUAL_IMAGES = 64, USUAL_MP = 32, USUAL_MIB = 256 };

static bool open_file(const struct served *m, const char *file, struct sight_options *o, jit_error *err)
{
	o->compute = jit_compute_open(
		&JIT_COMPUTE_OPTIONS(.device = serve_device_of(m), .isa = serve.isa, .threads = (int)serve.threads,
	                             .cache_dir = serve.no_cache ? "" : serve.cache_dir, .sealed = serve.sealed),
		err);
	o->encoder = o->compute ? jit_image_encoder_open(m->model, o->compute, m->path, file, err) : NULL;
	if (o->encoder)
		return true;
	jit_compute_close(o->compute);
	return false;
}

/* o->encoder stays NULL where the model has no image encoder, which is no failure. */
static bool open_encoder(const struct served *m, struct sight_options *o, jit_error *err)
{
	struct error e = { 0 };

	if (m->info.encodes || serve.no_images)
		return true;
	char *own = serve.mmproj ? NULL : model_search_projector(m->path, &e);
	const char *file = own ? own : serve.mmproj;
	bool ok = e.code == ERROR_NONE;
	if (!ok)
		model_report(err, &e);
	else if (file || seer_may_see(m->path))
		ok = open_file(m, file, o, err);
	free(own);
	return ok;
}

/* A model whose image encoder cannot be opened answers texts, unless it was named. */
bool serve_sight_enter(struct served *m, jit_error *err)
{
	struct sight_options o = {
		.images = serve.max_images ? (size_t)serve.max_images : USUAL_IMAGES,
		.pixels = (serve.image_mp ? (uint64_t)serve.image_mp : USUAL_MP) * 1000000,
		.cache_bytes = (serve_given("image-cache") ? (uint64_t)serve.image_mib : USUAL_MIB) << 20,
		.queue = (unsigned)(serve.parallel + serve.queue),
		.folder = serve.image_dir,
		.device_failed = serve_device_failed,
		.user = m,
		.hosts = serve.image_hosts,
		.fetcher = serve.image_with ? serve.image_with : "jitpull"
	};

	m->sight = NULL;
	m->sees = false;
	if (!open_encoder(m, &o, err)) {
		if (serve.mmproj)
			return false;
		if (!serve.quiet)
			fprintf(stderr, "jitserve: %s: takes no pictures: %s\n", m->name, err->message);
		*err = (jit_error){ 0 };
		return true;
	}
	if (!o.encoder)
		return true;
	m->sight = sight_open(&o);
	m->sees = m->sight != NULL;
	if (!m->sees)
		*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for pictures" };
	return m->sees;
}

bool serve_sight_start(struct served *m, jit_error *err)
{
	if (!m->sight || sight_start(m->sight, m->batcher))
		return true;
	*err = (jit_error){ .code = JIT_ERROR_IO, .message = "the thread that encodes pictures cannot be started" };
	return false;
}

void serve_sight_leave(struct served *m)
{
	sight_close(m->sight);
	m->sight = NULL;
}
