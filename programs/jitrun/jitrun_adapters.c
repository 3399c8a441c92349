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

bool jitrun_open_adapters(jit_model *m, jit_error *err)
{
	for (int i = 0; i < opt.lora.n; i++)
		if (!open_one(m, opt.lora.value[i], false, err))
			return false;
	for (int i = 0; i < opt.lora_scaled.n; i++)
		if (!open_one(m, opt.lora_scaled.value[i], true, err))
			return false;
	return true;
}

bool jitrun_use_adapters(jit_session *s, jit_error *err)
{
	return opt.lora_unapplied || !n_adapters ||
	       jit_session_set_adapters(s, adapter, scale, n_adapters, err) == JIT_OK;
}

void jitrun_close_adapters(void)
{
	while (n_adapters)
		jit_adapter_close(adapter[--n_adapters]);
}
