/* programs/jitrun/jitrun_images.c - --image: pictures that stand in the prompt. */
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/jitrun_parts.h"
#include "runtime/graph/graph_api.h"
#include "runtime/model/model.h"
#include "vision/prompt.h"

static jit_compute *compute;
static jit_image_encoder *encoder;
static jit_image **picture;
static size_t pictures;
static struct jit_prompt prompt;

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
	encoder = compute ? jit_image_encoder_open(m, compute, opt.model, opt.mmproj, err) : NULL;
	if (!encoder)
		return false;
	picture = calloc((size_t)opt.image.n, sizeof *picture);
	if (!picture)
		error_set(&e, ERROR_MEMORY, "there is no memory for pictures");
	for (int i = 0; e.code == ERROR_NONE && i < opt.image.n; i++) {
		size_t n;
		char *bytes = graph_read_file(opt.image.value[i], &n, &e);
		if (bytes && (picture[i] = seer_read(encoder, bytes, n, opt.image.value[i], NULL, &e)))
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
	const struct prompt_text text = { p->text, p->n, opt.special, NULL, NULL };
	const bool ok = p->ids ? prompt_of_ids(&prompt, encoder, p->ids, p->n_ids, picture, pictures, &e)
	                       : prompt_of_text(&prompt, encoder, &text, picture, pictures, &e);
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

int jitrun_feed_images(struct run *r, jit_error *err)
{
	return jit_session_feed_prompt(r->session, &prompt, NULL, err);
}

void jitrun_close_images(void)
{
	prompt_close(&prompt);
	while (pictures)
		jit_image_close(picture[--pictures]);
	free(picture);
	picture = NULL;
	jit_image_encoder_close(encoder);
	encoder = NULL;
	jit_compute_close(compute);
	compute = NULL;
}
