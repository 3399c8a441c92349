/* programs/jitrun/info_ranks.c - jitrun info --ranks: what each rank would have, and what they would exchange. */
#include <inttypes.h>

#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_parts.h"
#include "runtime/device/device.h"
#include "runtime/ranks/forecast.h"

bool jitrun_look_at_ranks(const char *ranks, const char *split, const struct model_spec *s, uint32_t context,
                          struct ranks_forecast *out, struct error *err)
{
	const struct target *t = device_host_target(NULL, true, err);
	unsigned n;

	if (!ranks)
		return !split || error_set(err, ERROR_ARGUMENT, "split: nothing is split without ranks");
	if (!t || !ranks_count(ranks, &n, err))
		return false;
	return s ? ranks_forecast(s, t, DTYPE_F16, context, n, split, out, err)
	         : error_set(err, ERROR_UNSUPPORTED, "ranks: the model cannot be read");
}

static void print_rank(const struct ranks_forecast *f, unsigned r)
{
	char a[FACTS_SIZE], b[FACTS_SIZE], c[FACTS_SIZE], layers[64] = "";

	if (!f->by_rows)
		snprintf(layers, sizeof layers, "layers %" PRIu32 " to %" PRIu32 "%s: ", f->range[r].first,
		         f->range[r].end - 1, r ? "" : " and both ends");
	facts_row(stdout, "", "rank %u: %sweights %s, of which a token reads %s, KV cache %s", r, layers,
	          facts_size(a, f->weights[r]), facts_size(b, f->token[r]), facts_size(c, f->kv[r]));
}

void jitrun_print_ranks(const struct ranks_forecast *f, uint64_t available)
{
	char a[FACTS_SIZE], b[FACTS_SIZE];
	uint64_t all = 0, largest = 0;

	facts_row(stdout, "ranks", "%u, by %s", f->ranks, f->by_rows ? "rows" : "layers");
	for (unsigned r = 0; r < f->ranks; r++) {
		const uint64_t own = f->weights[r] + f->kv[r];
		print_rank(f, r);
		all += own;
		largest = own > largest ? own : largest;
	}
	facts_row(stdout, "",
	          "a token: %" PRIu64 " exchanges of %" PRIu64 " bytes together, and %" PRIu64 " bytes of logits",
	          f->exchanges, f->exchanged, f->logits);
	if (available == UINT64_MAX)
		return;
	facts_row(stdout, "", "all on this machine: %s, which %s; one of them on it: at most %s, which %s",
	          facts_size(a, all), all <= available ? "fits" : "does not fit", facts_size(b, largest),
	          largest <= available ? "fits" : "does not fit");
}

static json_t *json_numbers(const uint64_t *of, unsigned n)
{
	json_t *list = json_array();

	for (unsigned r = 0; r < n; r++)
		json_array_append_new(list, json_integer((json_int_t)of[r]));
	return list;
}

json_t *jitrun_json_ranks(const struct ranks_forecast *f)
{
	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:I, s:I, s:I}", "ranks", (int)f->ranks, "split",
	                 f->by_rows ? "rows" : "pipeline", "weight_bytes", json_numbers(f->weights, f->ranks),
	                 "token_bytes", json_numbers(f->token, f->ranks), "kv_bytes", json_numbers(f->kv, f->ranks),
	                 "exchanges", (json_int_t)f->exchanges, "exchanged_bytes", (json_int_t)f->exchanged,
	                 "logit_bytes", (json_int_t)f->logits);
}
