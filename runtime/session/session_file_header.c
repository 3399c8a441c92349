/* runtime/session/session_file_header.c - which model, library and numerics a saved session belongs to. */
#include "runtime/session/session_file.h"

#include <stdio.h>
#include <string.h>

#include "jit/store/record.h"
#include "runtime/model/fingerprint.h"
#include "runtime/session/session_state.h"

static const char magic[8] = "jitr\nkv";

bool session_file_header(uint8_t p[HEADER], jit_session *s, struct error *err)
{
	const struct model_spec *spec = &s->model->file.spec;
	uint64_t model;

	if (!model_fingerprint(s->model, s->engine->pool, &model, err))
		return false;
	memset(p, 0, HEADER);
	memcpy(p, magic, sizeof magic);
	record_put32(p + AT_VERSION, s->pictures.n            ? VERSION_OF_PICTURES
	                             : s->memory.states.bytes ? STATE_VERSION
	                                                      : VERSION_OF_ONE_STATE);
	record_put32(p + AT_LAYOUT, weight_layout_of(s->model->target));
	memcpy(p + AT_LIBRARY, JITRUN_VERSION, sizeof JITRUN_VERSION);
	record_put64(p + AT_MODEL, rope_checksum(&s->engine->rope, model) ^ s->adapters.key);
	record_put32(p + AT_KV, s->memory.kv.type);
	record_put32(p + AT_NUMERICS, (uint32_t)s->model->f32_activations | (uint32_t)s->model->bounded << 1);
	record_put32(p + AT_LAYERS, spec->layers);
	record_put32(p + AT_HEADS, spec->kv_heads);
	record_put32(p + AT_DIM, spec->latent.rank ? model_cache_dim(spec, 0) : spec->head_dim);
	record_put32(p + AT_VOCAB, spec->vocab);
	snprintf((char *)p + AT_ABOUT, ABOUT_MAX, "%.*s", ABOUT_MAX - 1, s->model->description);
	return true;
}

static const char *kv_name(uint32_t type) { return type < DTYPE_COUNT ? dtype_table[type].name : "an unknown type"; }

/* Text of the file, which may be any bytes. */
static const char *text_at(const uint8_t *p, unsigned max, char out[ABOUT_MAX + 1])
{
	memcpy(out, p, max);
	out[max] = 0;
	return out;
}

/* What the file was written by and for; own: what the session would write. */
bool session_file_is_ours(const char *path, const uint8_t *p, const uint8_t *own, struct error *err)
{
	static const char *const numerics[] = { "int8 activations, exact", "f32 activations, exact",
		                                "int8 activations, bounded", "f32 activations, bounded" };
	char theirs[ABOUT_MAX + 1], ours[ABOUT_MAX + 1];

	if (memcmp(p + AT_LIBRARY, own + AT_LIBRARY, AT_MODEL - AT_LIBRARY) != 0)
		return error_set(err, ERROR_UNSUPPORTED, "%s was saved by jitrun %s, and this is %s", path,
		                 text_at(p + AT_LIBRARY, AT_MODEL - AT_LIBRARY, theirs), JITRUN_VERSION);
	if (memcmp(p + AT_ABOUT, own + AT_ABOUT, ABOUT_MAX) != 0)
		return error_set(err, ERROR_ARGUMENT, "%s was saved with the model \"%s\", and this is \"%s\"", path,
		                 text_at(p + AT_ABOUT, ABOUT_MAX, theirs), text_at(own + AT_ABOUT, ABOUT_MAX, ours));
	if (record_get32(p + AT_LAYOUT) != record_get32(own + AT_LAYOUT))
		return error_set(err, ERROR_ARGUMENT,
		                 "%s was saved on another kind of device, whose KV cache has another layout", path);
	if (record_get64(p + AT_MODEL) != record_get64(own + AT_MODEL))
		return error_set(
			err, ERROR_ARGUMENT,
			"%s was saved with another model of this kind: its weights or numbers are others, or the "
			"adapters",
			path);
	if (record_get32(p + AT_NUMERICS) != record_get32(own + AT_NUMERICS))
		return error_set(err, ERROR_ARGUMENT, "%s was saved with other numerics: %s, and this is %s", path,
		                 numerics[record_get32(p + AT_NUMERICS) & 3],
		                 numerics[record_get32(own + AT_NUMERICS) & 3]);
	if (record_get32(p + AT_KV) != record_get32(own + AT_KV))
		return error_set(err, ERROR_ARGUMENT, "%s has a KV cache of %s, and the session has %s", path,
		                 kv_name(record_get32(p + AT_KV)), kv_name(record_get32(own + AT_KV)));
	return memcmp(p + AT_LAYERS, own + AT_LAYERS, AT_LENGTH - AT_LAYERS) == 0 ||
	       error_set(err, ERROR_FORMAT, "%s: its sizes are not the model's; the file is damaged", path);
}
