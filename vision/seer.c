/* vision/seer.c - a model's image encoder with its processor, and the pictures that it looks at. See seer.h. */
#include "vision/seer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "language/kernel.h"
#include "loaders/model/model_load.h"
#include "runtime/model/model.h"
#include "runtime/session/session_pictures.h"

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "there is no memory for a picture"); }

/* ---- opening */

static bool read_processor(struct jit_image_encoder *s, const char *path, struct error *err)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	char *folder = is_folder ? strdup(path) : slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	const bool ok = folder ? processor_read_folder(&s->processor, folder, err) : no_memory(err);

	free(folder);
	return ok;
}

/* mmproj files name no image token: it is the one of that text in the model's vocabulary. Those of older files of LLaVA
 * have none; token 0 then stands for pictures, which no text becomes. */
static bool find_image_token(struct jit_image_encoder *s, struct error *err)
{
	const struct tower_spec *spec = tower_spec_of(s->tower);
	int32_t *ids = NULL;
	size_t n = 0;
	jit_error e = { 0 };

	s->image_token = spec->image_token;
	if (s->image_token >= 0 || !s->model->file.tokenizer)
		return true;
	const char *text = spec->row->image_text;
	if (jit_model_tokenize(s->model, text, strlen(text), 0, true, &ids, &n, &e) != JIT_OK)
		return error_set(err, ERROR_UNSUPPORTED, "%s", e.message);
	s->image_token = n == 1 ? ids[0] : 0;
	free(ids);
	return true;
}

static struct jit_image_encoder *open_with(const char *path, bool is_pair, jit_model *m, jit_compute *compute,
                                           struct error *err)
{
	struct jit_image_encoder *s = calloc(1, sizeof *s);

	if (!s || pthread_mutex_init(&s->lock, NULL)) {
		no_memory(err);
		free(s);
		return NULL;
	}
	s->model = m;
	s->tower = tower_open(path, compute, err);
	if (s->tower && find_image_token(s, err) && images_attach(s->tower, m, err) &&
	    (is_pair ? tower_read_processor(s->tower, &s->processor, err) : read_processor(s, path, err)))
		return s;
	seer_close(s);
	return NULL;
}

struct jit_image_encoder *seer_open(const char *path, jit_model *m, jit_compute *compute, struct error *err)
{
	const bool is_gguf = m->file.file->format == MODEL_GGUF;
	char *pair = is_gguf ? seer_find_pair(path, err) : NULL;
	struct jit_image_encoder *s = NULL;

	if (pair)
		s = open_with(pair, true, m, compute, err);
	else if (!err->code && is_gguf)
		error_set(err, ERROR_ARGUMENT,
		          "%.200s: there is no image encoder beside it, expected a file mmproj-*.gguf; --mmproj FILE "
		          "names another one",
		          path);
	else if (!err->code)
		s = open_with(path, false, m, compute, err);
	free(pair);
	return s;
}

struct jit_image_encoder *seer_open_pair(const char *mmproj, jit_model *m, jit_compute *compute, struct error *err)
{
	return open_with(mmproj, true, m, compute, err);
}

void seer_close(struct jit_image_encoder *s)
{
	if (!s)
		return;
	tower_close(s->tower);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- pictures */

static void find_key(struct jit_image *p)
{
	const uint32_t sides[] = { p->pixels.width, p->pixels.height };
	const void *const bytes[] = { sides, p->pixels.rgb };
	const size_t n[] = { sizeof sides, (size_t)p->pixels.width * p->pixels.height * 3 };

	jk_sha256(bytes, n, 2, p->digest);
	memcpy(&p->key, p->digest, sizeof p->key);
}

struct jit_image *seer_read(struct jit_image_encoder *s, const void *bytes, size_t n, const char *name,
                            const struct picture_limits *limits, struct error *err)
{
	struct jit_image *p = calloc(1, sizeof *p);

	if (!p) {
		no_memory(err);
		return NULL;
	}
	atomic_init(&p->holders, 1);
	p->seer = s;
	if (!picture_decode(&p->pixels, bytes, n, name, limits, err) ||
	    !processor_plan(&s->processor, p->pixels.width, p->pixels.height, &p->image, err)) {
		image_release(p);
		return NULL;
	}
	find_key(p);
	return p;
}

struct jit_image *image_hold(const struct jit_image *p)
{
	struct jit_image *own = (struct jit_image *)(uintptr_t)p; /* one more holder is no change to others */

	atomic_fetch_add(&own->holders, 1);
	return own;
}

static void free_parts(struct image_features **part, uint32_t n)
{
	for (uint32_t i = 0; part && i < n; i++)
		picture_release(part[i]);
	free(part);
}

void image_release(struct jit_image *p)
{
	if (!p || atomic_fetch_sub(&p->holders, 1) != 1)
		return;
	free_parts(p->part, p->image.n_parts);
	processed_image_free(&p->image);
	picture_free(&p->pixels);
	free(p);
}

/* ---- features */

static struct image_features *encode_part(struct jit_image *p, const struct processed_image *made, uint32_t i,
                                          struct error *err)
{
	const struct image_part *part = &made->parts[i];
	const bool planes = made->layout == IMAGE_PLANES;
	const struct tower_spec *spec = tower_spec_of(p->seer->tower);
	const struct tower_pixels pixels = { part->values, 1, planes ? part->height : part->rows,
		                             planes ? part->width : part->columns };
	const uint64_t numbers = planes ? (uint64_t)pixels.height * pixels.width * spec->channels
	                                : (uint64_t)pixels.height * pixels.width * tower_patch_numbers(spec);

	if (planes != !(spec->flags & TOWER_ROWS) || numbers != part->n_values) {
		error_set(err, ERROR_FORMAT,
		          "the image processor's patches are not those of the model's image encoder");
		return NULL;
	}
	struct image_features *f = images_encode(p->seer->tower, &pixels, err);
	if (!f)
		return NULL;
	f->key = p->key + i;
	if (f->tokens == part->tokens)
		return f;
	error_set(err, ERROR_FORMAT,
	          "the image processor has %u tokens for a picture, and the image encoder gives %llu", part->tokens,
	          (unsigned long long)f->tokens);
	picture_release(f);
	return NULL;
}

/* Under the lock. */
static bool encode(struct jit_image *p, struct error *err)
{
	struct processed_image made;

	if (!processor_run(&p->seer->processor, &p->pixels, &made, err))
		return false;
	struct image_features **part = calloc(made.n_parts + (size_t)1, sizeof(struct image_features *));
	bool ok = part || no_memory(err);
	for (uint32_t i = 0; ok && i < made.n_parts; i++)
		ok = (part[i] = encode_part(p, &made, i, err)) != NULL;
	if (ok)
		p->part = part;
	else
		free_parts(part, made.n_parts);
	processed_image_free(&made);
	return ok;
}

bool image_encode(struct jit_image *p, struct error *err)
{
	if (atomic_load(&p->encoded))
		return true;
	pthread_mutex_lock(&p->seer->lock);
	const bool ok = p->part || encode(p, err);
	if (ok && !atomic_exchange(&p->encoded, true))
		picture_free(&p->pixels);
	pthread_mutex_unlock(&p->seer->lock);
	return ok;
}

uint64_t image_bytes(const struct jit_image *p)
{
	const struct tower_spec *s = tower_spec_of(p->seer->tower);

	return (uint64_t)p->image.tokens * s->out * (1 + (uint64_t)s->n_deep) * sizeof(float);
}
