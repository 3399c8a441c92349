/* addon.c - the addon's entry: what the other files export, and the library's version. */
#include "addon.h"

static napi_value version(napi_env env, napi_callback_info info)
{
	(void)info;
	return from_text(env, jit_version(), NAPI_AUTO_LENGTH);
}

int32_t node_api_module_get_api_version_v1(void); /* the macro defines it, and declares it nowhere */

NAPI_MODULE_INIT()
{
	if (!start_jobs(env, exports))
		return NULL;
	export_function(env, exports, "version", version);
	export_constants(env, exports);
	export_boxes(env, exports);
	export_opening(env, exports);
	export_tokens(env, exports);
	export_session(env, exports);
	export_computing(env, exports);
	export_batch(env, exports);
	export_hooks(env, exports);
	export_chat(env, exports);
	return exports;
}
