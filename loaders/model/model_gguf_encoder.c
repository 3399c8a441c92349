/* loaders/model/model_gguf_encoder.c - what GGUF keys say of models that encode a text. */
#include "loaders/model/model_gguf_fields.h"

bool gguf_read_encoder(struct gguf_reader *r)
{
	const struct arch_encoder *e = r->row->encoder;
	struct model_spec *s = &r->m->spec;
	struct found_tensor t;
	double alibi = s->alibi;
	bool causal = false, found;

	if (!e)
		return true;
	if (!gguf_bool(r->g, gguf_key(r, "attention.causal"), &causal, &found, r->err))
		return false;
	if (causal)
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: key %s is true, which is not supported, expected false: tokens of an encoder see "
		                 "what is behind them",
		                 r->g->path, r->key);
	if (e->alibi != 0 && (!gguf_get_f64(r, "attention.max_alibi_bias", OPTIONAL, &alibi) ||
	                      !hparam_range(r->g->path, "the greatest bias by distance", alibi, 1e-6, 1e6, r->err)))
		return false;
	s->alibi = alibi;
	if (e->types && model_find_tensor(r->m->file, "token_types.weight", &t)) {
		if (!hparam_range(r->g->path, "the number of token types", (double)t.dim[1], 1, MODEL_MAX_WIDTH,
		                  r->err))
			return false;
		s->token_types = (uint32_t)t.dim[1];
	}
	model_widen_window(s);
	return true;
}
