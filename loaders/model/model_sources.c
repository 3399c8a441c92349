/* loaders/model/model_sources.c - what a model is opened from, asked back and given as bytes.
 *
 * Rule: bytes that are given go the same way as a file's, through the same checks.
 */
#include <stdlib.h>

#include "loaders/model/model_load.h"

static const char *const role_name[MODEL_SOURCE_ROLES] = {
	[MODEL_SOURCE_GGUF] = "gguf-header",
	[MODEL_SOURCE_SAFETENSORS] = "safetensors-header",
	[MODEL_SOURCE_CONFIG] = "config.json",
	[MODEL_SOURCE_GENERATION_CONFIG] = "generation_config.json",
	[MODEL_SOURCE_TOKENIZER] = "tokenizer.json",
	[MODEL_SOURCE_TOKENIZER_CONFIG] = "tokenizer_config.json",
	[MODEL_SOURCE_CHAT_TEMPLATE] = "chat_template.jinja",
	[MODEL_SOURCE_ROPE_FACTORS] = "rotary-factors",
	[MODEL_SOURCE_LONG_FACTORS] = "long-rotary-factors",
	[MODEL_SOURCE_CHAT_JSON] = "chat_template.json",
	[MODEL_SOURCE_NAMED_TEMPLATES] = "additional_chat_templates",
	[MODEL_SOURCE_POOLING] = "1_Pooling/config.json",
	[MODEL_SOURCE_CLASSIFIER] = "classifier",
	[MODEL_SOURCE_DENSE] = "dense-layers"
};

const char *model_source_name(enum model_source_role role) { return role_name[role]; }

static struct file *file_of(struct model_file *f, enum model_source_role role)
{
	switch (role) {
	case MODEL_SOURCE_CONFIG: return &f->config;
	case MODEL_SOURCE_GENERATION_CONFIG: return &f->generation_config;
	case MODEL_SOURCE_TOKENIZER: return &f->tokenizer_json;
	case MODEL_SOURCE_TOKENIZER_CONFIG: return &f->tokenizer_config;
	case MODEL_SOURCE_CHAT_TEMPLATE: return &f->chat_jinja;
	case MODEL_SOURCE_ROPE_FACTORS: return &f->rope_factors;
	case MODEL_SOURCE_LONG_FACTORS: return &f->rope_long_factors;
	case MODEL_SOURCE_CHAT_JSON: return &f->chat_json;
	case MODEL_SOURCE_NAMED_TEMPLATES: return &f->chat_named;
	case MODEL_SOURCE_POOLING: return &f->pooling_config;
	case MODEL_SOURCE_CLASSIFIER: return &f->classifier_given;
	case MODEL_SOURCE_DENSE: return &f->dense_given;
	default: return NULL;
	}
}

/* Numbers, which a model that was opened from files has elsewhere. */
static bool is_floats(enum model_source_role role)
{
	return role == MODEL_SOURCE_ROPE_FACTORS || role == MODEL_SOURCE_LONG_FACTORS ||
	       role == MODEL_SOURCE_CLASSIFIER || role == MODEL_SOURCE_DENSE;
}

static bool is_part(enum model_source_role role)
{
	return role == MODEL_SOURCE_GGUF || role == MODEL_SOURCE_SAFETENSORS;
}

uint32_t model_part_count(const struct model *m) { return m->file->n_parts; }

struct model_part_facts model_part_facts(const struct model *m, uint32_t part)
{
	const struct model_part *p = &m->file->part[part];
	const struct file *f = &p->file;

	return (struct model_part_facts){
		.bytes = f->size,
		.device = f->device,
		.inode = f->inode,
		.written = f->written,
		.header = f->base,
		.header_bytes = p->format == MODEL_GGUF ? p->gguf.header_bytes : p->st.data_start
	};
}

struct model_source *model_sources(const struct model *m, size_t *n, struct error *err)
{
	struct model_file *f = m->file;
	struct model_source *out = calloc(f->n_parts + MODEL_SOURCE_ROLES, sizeof *out);

	*n = 0;
	if (!out) {
		error_set(err, ERROR_MEMORY, "no memory for the list of a model's %u files", f->n_parts);
		return NULL;
	}
	for (uint32_t i = 0; i < f->n_parts; i++) {
		const struct model_part_facts p = model_part_facts(m, i);
		bool gguf = f->format == MODEL_GGUF;
		out[(*n)++] = (struct model_source){ .role = gguf ? MODEL_SOURCE_GGUF : MODEL_SOURCE_SAFETENSORS,
			                             .bytes = p.header,
			                             .n = p.header_bytes };
	}
	for (int role = MODEL_SOURCE_CONFIG; role < MODEL_SOURCE_ROLES; role++) {
		const struct file *text = file_of(f, (enum model_source_role)role);
		if (text->base && !is_floats((enum model_source_role)role))
			out[(*n)++] = (struct model_source){ (enum model_source_role)role, text->base, text->size };
	}
	const uint64_t n_factors = m->spec.rope.dims / 2 * sizeof(float);
	const struct model_source floats[] = {
		{ MODEL_SOURCE_ROPE_FACTORS, f->freq_factors, n_factors },
		{ MODEL_SOURCE_LONG_FACTORS, f->long_factors, n_factors },
		{ MODEL_SOURCE_CLASSIFIER, f->classifier, f->n_classifier * sizeof(float) }
	};
	for (size_t i = 0; i < sizeof floats / sizeof *floats && f->format == MODEL_GGUF; i++)
		if (floats[i].bytes)
			out[(*n)++] = floats[i];
	if (f->dense)
		out[(*n)++] = (struct model_source){ MODEL_SOURCE_DENSE, f->dense, f->dense_bytes };
	return out;
}

static bool take(struct model_file *f, const struct model_source *s, const char *path, struct error *err)
{
	struct file *to = is_part(s->role) ? &f->part[f->n_parts++].file : file_of(f, s->role);
	char label[sizeof to->label];

	file_label(label, path);
	if (to->base)
		return error_set(err, ERROR_FORMAT, "%s: holds %s twice", label, role_name[s->role]);
	file_memory(to, s->bytes, s->n, path);
	return s->n || error_set(err, ERROR_FORMAT, "%s: its %s is empty", label, role_name[s->role]);
}

static bool take_all(struct model_file *f, const struct model_source *s, size_t n, const char *path, struct error *err)
{
	size_t gguf = 0, safetensors = 0;
	char label[200];

	for (size_t i = 0; i < n; i++) {
		gguf += s[i].role == MODEL_SOURCE_GGUF;
		safetensors += s[i].role == MODEL_SOURCE_SAFETENSORS;
	}
	file_label(label, path);
	if (!gguf == !safetensors || gguf + safetensors > UINT32_MAX)
		return error_set(err, ERROR_FORMAT,
		                 "%s: holds %zu GGUF headers and %zu of safetensors, expected one kind of them", label,
		                 gguf, safetensors);
	f->format = gguf ? MODEL_GGUF : MODEL_HF;
	if (!(f->part = calloc(gguf + safetensors, sizeof *f->part)))
		return error_set(err, ERROR_MEMORY, "no memory for a model of %zu files", gguf + safetensors);
	for (size_t i = 0; i < n; i++)
		if (!take(f, &s[i], path, err))
			return false;
	if (safetensors && !f->config.base)
		return error_set(err, ERROR_FORMAT, "%s: holds no config.json", label);
	for (uint32_t i = 0; i < f->n_parts; i++)
		if (!model_parse_part(f, &f->part[i], err))
			return false;
	return safetensors || model_check_split(f, err);
}

bool model_open_sources(struct model *out, const struct model_source *s, size_t n, const char *path, unsigned flags,
                        struct error *err)
{
	if (!model_begin(out, flags | MODEL_HEADER_ONLY, err))
		return false;
	out->file->from_sources = true;
	if (take_all(out->file, s, n, path, err) && model_finish(out, err))
		return true;
	model_close(out);
	return false;
}
