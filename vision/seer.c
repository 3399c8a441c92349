/* vision/seer.c - pictures in prompts. See seer.h. */
#include "vision/seer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "loaders/model/model_load.h"
#include "runtime/model/model.h"
#include "runtime/session/session_pictures.h"

struct seer {
	jit_model *model;
	struct tower *tower;
	struct image_processor processor;
	int32_t image_token; /* -1: not known, as the model has no tokenizer */
};

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "there is no memory for a picture"); }

/* ---- opening */

static bool read_processor(struct seer *s, const char *path, struct error *err)
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
static bool find_image_token(struct seer *s, struct error *err)
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

static struct seer *open_with(const char *path, bool is_pair, jit_model *m, jit_compute *compute, struct error *err)
{
	struct seer *s = calloc(1, sizeof *s);

	if (!s) {
		no_memory(err);
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

struct seer *seer_open(const char *path, jit_model *m, jit_compute *compute, struct error *err)
{
	const bool is_gguf = m->file.file->format == MODEL_GGUF;
	char *pair = is_gguf ? seer_find_pair(path, err) : NULL;
	struct seer *s = NULL;

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

struct seer *seer_open_pair(const char *mmproj, jit_model *m, jit_compute *compute, struct error *err)
{
	return open_with(mmproj, true, m, compute, err);
}

void seer_close(struct seer *s)
{
	if (s)
		tower_close(s->tower);
	free(s);
}

/* ---- pictures */

static bool look_at(struct seer *s, struct seen *out, uint32_t i, struct error *err)
{
	const struct image_part *part = &out->image.parts[i];
	const bool planes = out->image.layout == IMAGE_PLANES;
	const struct tower_spec *spec = tower_spec_of(s->tower);
	const struct tower_pixels p = { part->values, 1, planes ? part->height : part->rows,
		                        planes ? part->width : part->columns };
	const uint64_t numbers = planes ? (uint64_t)p.height * p.width * spec->channels
	                                : (uint64_t)p.height * p.width * tower_patch_numbers(spec);

	if (planes != !(spec->flags & TOWER_ROWS) || numbers != part->n_values)
		return error_set(err, ERROR_FORMAT,
		                 "the image processor's patches are not those of the model's image encoder");
	out->part[i] = images_encode(s->tower, &p, err);
	if (!out->part[i])
		return false;
	return out->part[i]->tokens == part->tokens ||
	       error_set(err, ERROR_FORMAT,
	                 "the image processor has %u tokens for a picture, and the image encoder gives %llu",
	                 part->tokens, (unsigned long long)out->part[i]->tokens);
}

bool seer_look(struct seer *s, const void *bytes, size_t n, const char *name, struct seen *out, struct error *err)
{
	struct picture picture;

	*out = (struct seen){ 0 };
	if (!picture_decode(&picture, bytes, n, name, NULL, err))
		return false;
	bool ok = processor_run(&s->processor, &picture, &out->image, err);
	picture_free(&picture);
	if (ok) {
		out->part = calloc(out->image.n_parts + (size_t)1, sizeof(struct jit_image *));
		ok = out->part || no_memory(err);
	}
	for (uint32_t i = 0; ok && i < out->image.n_parts; i++)
		ok = look_at(s, out, i, err);
	if (!ok) {
		seen_free(out);
		return false;
	}
	free(out->image.values);
	out->image.values = NULL;
	for (uint32_t i = 0; i < out->image.n_parts; i++)
		out->image.parts[i].values = NULL;
	return true;
}

void seen_free(struct seen *p)
{
	for (uint32_t i = 0; p->part && i < p->image.n_parts; i++)
		picture_release(p->part[i]);
	free(p->part);
	processed_image_free(&p->image);
	*p = (struct seen){ 0 };
}

/* ---- prompts of tokens */

struct assembly {
	const struct seen *picture;
	size_t pictures, number; /* number: of the picture whose segments come next */
	uint32_t segment, taken; /* its next segment, and features of that which have a token */
	size_t room;
};

/* The segment whose features come next; NULL: there are no more. */
static const struct prompt_segment *next_segment(struct assembly *a)
{
	for (; a->number < a->pictures; a->number++, a->segment = 0)
		for (; a->segment < a->picture[a->number].image.n_segments; a->segment++) {
			const struct prompt_segment *p = &a->picture[a->number].image.segments[a->segment];
			if (p->n > a->taken)
				return p;
			a->taken = 0;
		}
	return NULL;
}

/* Tokens from `first` on, `n` of which are image tokens. */
static bool add_runs(struct assembly *a, struct seen_prompt *out, size_t first, size_t n, struct error *err)
{
	const struct prompt_segment *p;

	for (size_t take; n; first += take, n -= take) {
		if (!(p = next_segment(a)))
			return error_set(err, ERROR_ARGUMENT,
			                 "the prompt has more image tokens than its %zu pictures have features",
			                 a->pictures);
		take = p->n - a->taken < n ? p->n - a->taken : n;
		if (!array_grow((void **)&out->run, &a->room, out->runs + 1, sizeof *out->run))
			return no_memory(err);
		out->run[out->runs++] =
			(struct seen_run){ first, take, p->first + a->taken, a->picture[a->number].part[p->part] };
		a->taken += (uint32_t)take;
	}
	return true;
}

static bool find_runs(const struct seer *s, const struct seen *picture, size_t pictures, struct seen_prompt *out,
                      struct error *err)
{
	const int32_t token = s->image_token;
	struct assembly a = { .picture = picture, .pictures = pictures };

	for (size_t i = 0, end; i < out->n; i = end + !(end > i)) {
		for (end = i; end < out->n && out->ids[end] == token; end++)
			;
		if (end > i && !add_runs(&a, out, i, end - i, err))
			return false;
	}
	return !next_segment(&a) ||
	       error_set(err, ERROR_ARGUMENT, "the prompt has fewer image tokens than its %zu pictures have features",
	                 pictures);
}

bool seer_prompt_of_ids(const struct seer *s, const int32_t *ids, size_t n, const struct seen *picture, size_t pictures,
                        struct seen_prompt *out, struct error *err)
{
	*out = (struct seen_prompt){ 0 };
	if (s->image_token < 0)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the model has no tokenizer, so that nobody says which of the ids stand for pictures");
	*out = (struct seen_prompt){ .ids = malloc((n + 1) * sizeof *ids), .n = n };
	if (out->ids && n)
		memcpy(out->ids, ids, n * sizeof *ids);
	if (out->ids ? find_runs(s, picture, pictures, out, err) : no_memory(err))
		return true;
	seen_prompt_free(out);
	return false;
}

void seen_prompt_free(struct seen_prompt *p)
{
	free(p->ids);
	free(p->run);
	*p = (struct seen_prompt){ 0 };
}

/* ---- prompts of texts */

static bool add_ids(struct seen_prompt *out, const int32_t *ids, size_t n, struct error *err)
{
	int32_t *more = realloc(out->ids, (out->n + n + 1) * sizeof *more);

	if (!more)
		return no_memory(err);
	out->ids = more;
	for (size_t i = 0; i < n; i++)
		out->ids[out->n++] = ids[i];
	return true;
}

/* The first segment of a prompt begins it. */
static bool add_text(const struct seer *s, struct seen_prompt *out, bool *begun, const char *text, size_t n,
                     bool special, struct error *err)
{
	char *own = strndup(text, n);
	int32_t *ids = NULL;
	size_t n_ids = 0;
	jit_error e = { 0 };
	bool ok = own || no_memory(err);

	if (ok && !*begun) {
		ok = jit_model_tokenize(s->model, own, n, 1, special, &ids, &n_ids, &e) == JIT_OK ||
		     error_set(err, ERROR_ARGUMENT, "%s", e.message);
		*begun = true;
	} else if (ok && n) {
		ok = model_go_on(s->model, own, special, &ids, &n_ids, err);
	}
	ok = ok && add_ids(out, ids, n_ids, err);
	free(ids);
	free(own);
	return ok;
}

static bool add_picture(const struct seer *s, struct seen_prompt *out, bool *begun, const struct seen *picture,
                        struct error *err)
{
	const int32_t token = s->image_token;

	if (!*begun && !add_text(s, out, begun, "", 0, true, err))
		return false;
	for (uint32_t i = 0; i < picture->image.n_segments; i++) {
		const struct prompt_segment *p = &picture->image.segments[i];
		if (*p->text && !add_text(s, out, begun, p->text, strlen(p->text), true, err))
			return false;
		for (uint32_t k = 0; k < p->n; k++)
			if (!add_ids(out, &token, 1, err))
				return false;
	}
	return true;
}

/* Where the placeholder is next; the text's end: nowhere. */
static const char *find_placeholder(const struct seer *s, const char *text, const char *end)
{
	const char *mark = s->processor.placeholder,
		   *at = *mark ? memmem(text, (size_t)(end - text), mark, strlen(mark)) : NULL;

	return at ? at : end;
}

static bool add_all(const struct seer *s, struct seen_prompt *out, const char *text, size_t n, bool special,
                    const struct seen *picture, size_t pictures, struct error *err)
{
	const char *end = text + n, *at = find_placeholder(s, text, end);
	bool begun = false;
	size_t used = 0;

	for (; at == end && used < pictures; used++)
		if (!add_picture(s, out, &begun, &picture[used], err))
			return false;
	for (; at < end; text = at + strlen(s->processor.placeholder), at = find_placeholder(s, text, end)) {
		if (used == pictures)
			return error_set(err, ERROR_ARGUMENT, "the prompt has more places for pictures than %zu",
			                 pictures);
		if ((at > text && !add_text(s, out, &begun, text, (size_t)(at - text), special, err)) ||
		    !add_picture(s, out, &begun, &picture[used++], err))
			return false;
	}
	if (used < pictures)
		return error_set(err, ERROR_ARGUMENT, "the prompt has %zu places for %zu pictures", used, pictures);
	return add_text(s, out, &begun, text, (size_t)(end - text), special, err);
}

bool seer_prompt(const struct seer *s, const char *text, size_t n, bool special, const struct seen *picture,
                 size_t pictures, struct seen_prompt *out, struct error *err)
{
	*out = (struct seen_prompt){ 0 };
	if (add_all(s, out, text, n, special, picture, pictures, err) && find_runs(s, picture, pictures, out, err))
		return true;
	seen_prompt_free(out);
	return false;
}

int seen_prompt_feed(jit_session *s, const struct seen_prompt *p, jit_error *err)
{
	size_t at = 0;
	int status = JIT_OK;

	for (size_t i = 0; status == JIT_OK && i <= p->runs; i++) {
		const size_t end = i < p->runs ? p->run[i].first : p->n;
		if (end > at)
			status = jit_session_feed(s, p->ids + at, end - at, err);
		if (status == JIT_OK && i < p->runs)
			status = session_feed_image(s, p->run[i].of, p->run[i].at, p->run[i].n, p->ids[end], err);
		at = i < p->runs ? end + p->run[i].n : p->n;
	}
	return status;
}
