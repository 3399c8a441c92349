/* programs/jitrun/jitrun_images.c - --image: pictures that stand in the prompt. */
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/jitrun_parts.h"
#include "runtime/graph/graph_api.h"
#include "runtime/model/model.h"
#include "vision/seer.h"

static jit_compute *compute;
static struct seer *seer;
static struct seen *picture;
static size_t pictures;
static struct seen_prompt prompt;

static bool fail(jit_error *err, const struct error *e)
{
	model_report(err, e);
	return false;
}

int jitrun_check_images(bool chat)
{
	if (opt.mmproj && !opt.image.n)
		return jitrun_usage("--mmproj goes with --image");
	return opt.image.n && (chat || opt.perplexity || opt.prompt_cache)
	               ? jitrun_usage("--image goes with --prompt, --file or --prompt-ids, and not with --chat, "
	                              "--perplexity or --prompt-cache")
	               : 0;
}

/* Before sessions are opened. */
bool jitrun_open_images(jit_model *m, jit_error *err)
{
	struct error e = { 0 };

	if (!opt.image.n)
		return true;
	const jit_model_options o = jitrun_model_options();
	compute = jit_compute_open(
		&JIT_COMPUTE_OPTIONS(.device = o.device, .isa = o.isa, .threads = o.threads, .cache_dir = o.cache_dir,
	                             .cache_limit = o.cache_limit, .sealed = o.sealed),
		err);
	if (!compute)
		return false;
	seer = opt.mmproj ? seer_open_pair(opt.mmproj, m, compute, &e) : seer_open(opt.model, m, compute, &e);
	picture = seer ? calloc((size_t)opt.image.n, sizeof *picture) : NULL;
	if (seer && !picture)
		error_set(&e, ERROR_MEMORY, "there is no memory for pictures");
	for (int i = 0; e.code == ERROR_NONE && i < opt.image.n; i++) {
		size_t n;
		char *bytes = graph_read_file(opt.image.value[i], &n, &e);
		if (bytes && seer_look(seer, bytes, n, opt.image.value[i], &picture[i], &e))
			pictures++;
		free(bytes);
	}
	return e.code == ERROR_NONE || fail(err, &e);
}

/* The prompt's tokens, with those that stand for pictures. */
bool jitrun_put_images(struct prompt *p, jit_error *err)
{
	struct error e = { 0 };
	if (!opt.image.n)
		return true;
	const bool ok = p->ids ? seer_prompt_of_ids(seer, p->ids, p->n_ids, picture, pictures, &prompt, &e)
	                       : seer_prompt(seer, p->text, p->n, opt.special, picture, pictures, &prompt, &e);
	int32_t *ids = ok ? malloc((prompt.n + 1) * sizeof *ids) : NULL;

	if (!ok)
		return fail(err, &e);
	if (!ids) {
		error_set(&e, ERROR_MEMORY, "there is no memory for pictures");
		return fail(err, &e);
	}
	memcpy(ids, prompt.ids, prompt.n * sizeof *ids);
	free(p->ids);
	p->ids = ids;
	p->n_ids = prompt.n;
	return true;
}

int jitrun_feed_images(struct run *r, jit_error *err) { return seen_prompt_feed(r->session, &prompt, err); }

void jitrun_close_images(void)
{
	seen_prompt_free(&prompt);
	while (pictures)
		seen_free(&picture[--pictures]);
	free(picture);
	picture = NULL;
	seer_close(seer);
	seer = NULL;
	jit_compute_close(compute);
	compute = NULL;
}
