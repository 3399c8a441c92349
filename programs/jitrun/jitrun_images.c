/* programs/jitrun/jitrun_images.c - the model's image encoder, and --image: pictures that stand in the prompt. Those of
 * conversations are in jitrun_pictures.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/model_search.h"
#include "programs/jitrun/jitrun_parts.h"
#include "runtime/graph/graph_api.h"
#include "runtime/model/model.h"
#include "vision/prompt.h"

static jit_compute *compute;
static jit_image_encoder *encoder;
static jit_image **picture;
static size_t pictures;
static struct jit_prompt prompt;
static char blind[sizeof((jit_error *)0)->message]; /* why it takes no pictures */

static bool fail(jit_error *err, const struct error *e)
{
	model_report(err, e);
	return false;
}

int jitrun_check_images(bool chat)
{
	if (opt.mmproj && !opt.image.n && !chat)
		return jitrun_usage("--mmproj goes with --image, or with a conversation");
	if (opt.image.n && opt.perplexity)
		return jitrun_usage("--image goes with --prompt, --file, --prompt-ids or a conversation, and not with "
		                    "--perplexity");
	return 0;
}

jit_image_encoder *jitrun_encoder(const char **why)
{
	*why = *blind ? blind : "it has no image encoder";
	return encoder;
}

jit_image *jitrun_read_image(const char *path, struct error *err)
{
	size_t n;
	char *bytes = graph_read_file(path, &n, err);
	jit_image *image = bytes ? seer_read(encoder, bytes, n, path, NULL, err) : NULL;

	free(bytes);
	return image;
}

static bool open_encoder(jit_model *m, jit_error *err)
{
	const jit_model_options o = jitrun_model_options();
	struct error e = { 0 };
	char *own = opt.mmproj ? NULL : model_search_projector(opt.model, &e);

	if (e.code != ERROR_NONE)
		return fail(err, &e);
	compute = jit_compute_open(
		&JIT_COMPUTE_OPTIONS(.device = o.device, .isa = o.isa, .threads = o.threads, .cache_dir = o.cache_dir,
	                             .cache_limit = o.cache_limit, .sealed = o.sealed),
		err);
	encoder = compute ? jit_image_encoder_open(m, compute, opt.model, own ? own : opt.mmproj, err) : NULL;
	free(own);
	return encoder != NULL;
}

static bool may_see(void)
{
	struct error e = { 0 };
	char *own = model_search_projector(opt.model, &e);
	const bool sees = own || e.code != ERROR_NONE || seer_may_see(opt.model);

	free(own);
	return sees;
}

/* A conversation begins without pictures where the encoder cannot be had, unless somebody asked for it. */
static bool open_for_chat(jit_model *m, jit_error *err)
{
	jit_error own = { 0 };

	if (opt.image.n || opt.mmproj)
		return open_encoder(m, err);
	if (!may_see() || open_encoder(m, &own))
		return true;
	snprintf(blind, sizeof blind, "%s", own.message);
	jit_compute_close(compute);
	compute = NULL;
	return true;
}

bool jitrun_open_images(jit_model *m, bool chat, jit_error *err)
{
	struct error e = { 0 };

	if (chat)
		return open_for_chat(m, err);
	if (!opt.image.n)
		return true;
	if (!open_encoder(m, err))
		return false;
	picture = calloc((size_t)opt.image.n, sizeof *picture);
	if (!picture)
		error_set(&e, ERROR_MEMORY, "there is no memory for pictures");
	for (int i = 0; e.code == ERROR_NONE && i < opt.image.n; i++)
		if ((picture[i] = jitrun_read_image(opt.image.value[i], &e)))
			pictures++;
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

/* With a file of --prompt-cache, pictures that it has are not encoded. */
int jitrun_feed_images(struct run *r, jit_error *err)
{
	size_t reused = 0;

	if (!jitrun_cache_begin(r, err))
		return err->code;
	const size_t had = jit_session_length(r->session);
	r->cache_is_old = had < prompt.n || jit_session_ids(r->session)[prompt.n - 1] != prompt.ids[prompt.n - 1];
	const int status = jit_session_feed_prompt(r->session, &prompt, &reused, err);
	r->cache_is_old = r->cache_is_old || reused + 1 < prompt.n;
	if (had && !opt.quiet)
		fprintf(stderr, "prompt cache: %zu of %zu tokens are there\n", reused, prompt.n);
	return interrupted && status == JIT_ERROR_CANCELLED ? JIT_OK : status;
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
