/* loaders/model/model_channel.c - what files say of layers with the selective scan of channels (Mamba 1, Falcon Mamba,
 * Jamba): which they are, their sizes, and which of Jamba's layers are mixtures of experts. For GGUF and config.json.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "loaders/model/model_load.h"

bool model_channel_sizes(struct model *m, uint32_t inner, const char *label, struct error *err)
{
	struct model_recurrent *c = &m->spec.recurrent;

	if (!hparam_range(label, "the number of channels with a state", inner, 1, MODEL_MAX_WIDTH, err) ||
	    !hparam_range(label, "the rank of a state's steps", c->step_rank, 1, MODEL_MAX_WIDTH, err) ||
	    !hparam_limit(label, "the size of a channel's state", c->key_dim, 1, MODEL_MAX_CHANNEL_STATE, err))
		return false;
	if (inner % 32)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: %" PRIu32
		                 " channels have a state, which is not supported: jitrun runs multiples of 32",
		                 label, inner);
	c->channels = inner;
	c->key_heads = 1;
	c->value_heads = inner / 32;
	c->value_dim = 32;
	return true;
}
