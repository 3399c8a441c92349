/* programs/jitrun/jitrun_adapters.c - --lora and its like: adapters that are laid over the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_adapters.h"
#include "programs/common/adapter_args.h"
#include "programs/jitrun/jitrun_parts.h"

static jit_adapter *adapter[JIT_ADAPTERS_TOGETHER];
static float scale[JIT_ADAPTERS_TOGETHER];
static size_t n_adapters;
static bool invoked;            /* the one adapter there is counts from its invocation tokens on */
static size_t began = SIZE_MAX; /* where it does in the session; SIZE_MAX: nowhere */

static bool refuse(jit_error *err, const char *format, const char *text)
{
	*err = (jit_error){ .code = JIT_ERROR_ARGUMENT };
	snprintf(err->message, sizeof err->message, format, text);
	return false;
}

static bool open_one(jit_model *m, const char *value, bool needs_scale, jit_error *err)
{
	char *path = strdup(value);

	if (!path)
		return refuse(err, "no memory for %s", value);
	float s;
	const bool cut = adapter_args_cut(path, &s);
	bool ok = n_adapters < JIT_ADAPTERS_TOGETHER ||
	          refuse(err, "--lora: %s is one adapter too many, expected at most 8", value);
	if (ok && needs_scale && !cut)
		ok = refuse(err, "--lora-scaled is %s, expected FILE:SCALE", value);
	if (ok)
		ok = (adapter[n_adapters] = jit_adapter_open(m, path, err)) != NULL;
	if (ok)
		scale[n_adapters++] = s;
	free(path);
	return ok;
}

static bool check_invocation(jit_error *err)
{
	for (size_t i = 0; i < n_adapters; i++) {
		jit_adapter_info info = JIT_ADAPTER_INFO();
		if (jit_adapter_get_info(adapter[i], &info, err) != JIT_OK)
			return false;
		invoked |= info.invocation > 0;
	}
	if (invoked && n_adapters > 1)
		return refuse(err, "%s: an adapter with invocation tokens goes with no other one", "--lora");
	return !invoked || !opt.perplexity ||
	       refuse(err, "%s goes without an adapter that has invocation tokens", "--perplexity");
}

bool jitrun_open_adapters(jit_model *m, jit_error *err)
{
	for (int i = 0; i < opt.lora.n; i++)
		if (!open_one(m, opt.lora.value[i], false, err))
			return false;
	for (int i = 0; i < opt.lora_scaled.n; i++)
		if (!open_one(m, opt.lora_scaled.value[i], true, err))
			return false;
	return check_invocation(err);
}

bool jitrun_use_adapters(jit_session *s, jit_error *err)
{
	return opt.lora_unapplied || !n_adapters || invoked ||
	       jit_session_set_adapters(s, adapter, scale, n_adapters, err) == JIT_OK;
}

bool jitrun_begin_adapters(jit_session *s, const int32_t *ids, size_t n, size_t *have, jit_error *err)
{
	if (opt.lora_unapplied || !invoked)
		return true;
	const size_t from = jit_adapter_begins(adapter[0], ids, n), to = from == n ? SIZE_MAX : from,
		     first = to < began ? to : began;
	if (to == began)
		return true;
	if (*have > first) {
		if (jit_session_rewind(s, first, err) != JIT_OK)
			return false;
		*have = first;
	}
	began = to;
	return jit_session_set_adapters_from(s, adapter, scale, to != SIZE_MAX, from, err) == JIT_OK;
}

void jitrun_close_adapters(void)
{
	while (n_adapters)
		jit_adapter_close(adapter[--n_adapters]);
}
