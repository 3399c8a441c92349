/* server/routes.c - which handler answers what. */
#include <stdio.h>
#include <string.h>

#include "runtime/host/system.h"
#include "server/api/endpoints.h"
#include "server/http/guards.h"

/* A key where there are keys, and a model: what most of them ask for. */
enum { KEY_MODEL = ROUTE_KEY | ROUTE_MODEL };

static const struct route routes[] = {
	{ "GET", "/", ROUTE_OPEN, answer_page },
	{ "GET", "/health", ROUTE_V1, answer_health },
	{ "GET", "/readyz", ROUTE_OPEN, answer_health },
	{ "GET", "/livez", ROUTE_OPEN, answer_live },
	{ "GET", "/models", KEY_MODEL | ROUTE_V1, answer_models },
	{ "GET", "/v1/models/", KEY_MODEL | ROUTE_BELOW, answer_model },
	{ "POST", "/models", KEY_MODEL, answer_models_fetch },
	{ "DELETE", "/models", KEY_MODEL, answer_models_remove },
	{ "GET", "/models/sse", ROUTE_KEY, answer_models_events },
	{ "POST", "/models/load", KEY_MODEL, answer_models_load },
	{ "POST", "/models/unload", KEY_MODEL, answer_models_unload },
	{ "POST", "/chat/completions", KEY_MODEL | ROUTE_V1, answer_chat },
	{ "POST", "/chat/completions/input_tokens", KEY_MODEL | ROUTE_V1, answer_chat_tokens },
	{ "POST", "/v1/completions", KEY_MODEL, answer_completions },
	{ "POST", "/v1/messages", KEY_MODEL, answer_messages },
	{ "POST", "/v1/messages/count_tokens", KEY_MODEL, answer_count_tokens },
	{ "POST", "/responses", KEY_MODEL | ROUTE_V1, answer_responses },
	{ "POST", "/responses/input_tokens", KEY_MODEL | ROUTE_V1, answer_input_tokens },
	{ "GET", "/v1/responses/", ROUTE_KEY | ROUTE_BELOW, answer_stored },
	{ "DELETE", "/v1/responses/", ROUTE_KEY | ROUTE_BELOW, answer_drop_stored },
	{ "POST", "/v1/responses/", ROUTE_KEY | ROUTE_BELOW, answer_cancel_stored },
	{ "POST", "/embeddings", KEY_MODEL | ROUTE_V1, answer_embeddings },
	{ "POST", "/embedding", KEY_MODEL, answer_embedding },
	{ "POST", "/score", ROUTE_KEY | ROUTE_V1, answer_score },
	{ "POST", "/rerank", ROUTE_KEY | ROUTE_V1, answer_rerank },
	{ "POST", "/reranking", ROUTE_KEY | ROUTE_V1, answer_rerank },
	{ "POST", "/completion", KEY_MODEL, answer_native },
	{ "POST", "/completions", KEY_MODEL, answer_native },
	{ "POST", "/infill", KEY_MODEL, answer_infill },
	{ "POST", "/tokenize", KEY_MODEL, answer_tokenize },
	{ "POST", "/detokenize", KEY_MODEL, answer_detokenize },
	{ "POST", "/apply-template", KEY_MODEL, answer_apply_template },
	{ "GET", "/props", KEY_MODEL | ROUTE_EXACT, answer_props },
	{ "GET", "/slots", KEY_MODEL | ROUTE_EXACT, answer_slots },
	{ "POST", "/slots/", KEY_MODEL | ROUTE_BELOW | ROUTE_EXACT, answer_slot_action },
	{ "POST", "/api/chat", KEY_MODEL, answer_ollama_chat },
	{ "POST", "/api/generate", KEY_MODEL, answer_ollama_generate },
	{ "POST", "/api/embed", KEY_MODEL, answer_ollama_embed },
	{ "POST", "/api/embeddings", KEY_MODEL, answer_ollama_embeddings },
	{ "GET", "/api/version", ROUTE_KEY, answer_ollama_version },
	{ "GET", "/api/tags", KEY_MODEL, answer_ollama_tags },
	{ "POST", "/api/show", KEY_MODEL, answer_ollama_show },
	{ "GET", "/api/ps", KEY_MODEL, answer_ollama_ps },
	{ "POST", "/api/pull", ROUTE_KEY, answer_ollama_pull },
	{ "POST", "/api/push", ROUTE_KEY, answer_ollama_push },
	{ "POST", "/api/create", ROUTE_KEY, answer_ollama_create },
	{ "POST", "/api/copy", ROUTE_KEY, answer_ollama_copy },
	{ "DELETE", "/api/delete", ROUTE_KEY, answer_ollama_delete },
	{ "GET", "/api/blobs/", ROUTE_KEY | ROUTE_BELOW, answer_ollama_blob },
	{ "POST", "/api/blobs/", ROUTE_KEY | ROUTE_BELOW, answer_ollama_put_blob },
	{ "GET", "/metrics", KEY_MODEL | ROUTE_EXACT, answer_metrics },
	{ "GET", "/lora-adapters", ROUTE_KEY, answer_adapters },
	{ "POST", "/lora-adapters", ROUTE_KEY, answer_set_adapters },
	{ "POST", "/load_lora_adapter", KEY_MODEL | ROUTE_V1, answer_load_adapter },
	{ "POST", "/unload_lora_adapter", KEY_MODEL | ROUTE_V1, answer_unload_adapter },
	{ "POST", "/props", ROUTE_KEY | ROUTE_EXACT, answer_not_done },
	{ "POST", "/chat/completions/control", ROUTE_KEY | ROUTE_V1, answer_not_done },
	{ "GET", "/v1/stream", ROUTE_KEY, answer_not_done },
	{ "DELETE", "/v1/stream", ROUTE_KEY, answer_not_done },
	{ "POST", "/v1/streams/lookup", ROUTE_KEY, answer_not_done },
	{ "GET", "/tools", ROUTE_KEY, answer_not_done },
	{ "POST", "/tools", ROUTE_KEY, answer_not_done },
	{ "GET", "/cors-proxy", ROUTE_KEY, answer_not_done },
	{ "POST", "/cors-proxy", ROUTE_KEY, answer_not_done },
	{ "POST", "/audio/transcriptions", ROUTE_KEY | ROUTE_V1, answer_not_done },
	{ "POST", "/audio/translations", ROUTE_KEY | ROUTE_V1, answer_not_done },
	{ "POST", "/audio/speech", ROUTE_KEY | ROUTE_V1, answer_not_done },
	{ "POST", "/images/generations", ROUTE_KEY | ROUTE_V1, answer_not_done },
	{ "POST", "/images/edits", ROUTE_KEY | ROUTE_V1, answer_not_done },
	{ "POST", "/moderations", ROUTE_KEY | ROUTE_V1, answer_not_done },
	{ "POST", "/api/me", ROUTE_KEY, answer_not_done },
	{ "POST", "/api/signout", ROUTE_KEY, answer_not_done },
	{ "POST", "/api/web_search", ROUTE_KEY, answer_not_done },
	{ "POST", "/api/web_fetch", ROUTE_KEY, answer_not_done },
	{ NULL, NULL, 0, NULL },
};

/* Base URLs are often written with a slash too many: how many bytes of the path are those of the route, a row of
 * slashes being one; 0: they differ. */
static size_t same_path(const char *route, const char *path, bool exact)
{
	const char *at = path;

	for (const char *r = route; *r; r++) {
		if (*at++ != *r)
			return 0;
		while (!exact && *r == '/' && *at == '/')
			at++;
	}
	return (size_t)(at - path);
}

void route_name(struct exchange *x, const char *path)
{
	const size_t n = same_path("/v1/messages", path, false);

	x->anthropic = (n && (path[n] == 0 || path[n] == '/')) || exchange_header(x, "anthropic-version");
	x->ollama = strncmp(path + strspn(path, "/"), "api/", 4) == 0;
	x->arrived = system_seconds();
	request_id_make(x->id);
}

/* How many bytes of the path are those of the route, with "/v1" before them or without. */
static size_t same_as(const struct route *r, const char *path)
{
	bool exact = r->needs & ROUTE_EXACT;
	size_t n = same_path(r->path, path, exact), version = same_path("/v1", path, exact);

	if (n || !version || !(r->needs & ROUTE_V1))
		return n;
	n = same_path(r->path, path + version, exact);
	return n ? version + n : 0;
}

/* Whether a path is this route's; what is behind it is kept. */
static bool is_at(struct exchange *x, const struct route *r, const char *path)
{
	bool exact = r->needs & ROUTE_EXACT;
	size_t n = same_as(r, path), more = strlen(path), slashes = n ? strspn(path + n, "/") : 0;

	if (!(r->needs & ROUTE_BELOW))
		return n && path[exact ? n : n + slashes] == 0;
	while (!exact && more > n && path[more - 1] == '/')
		more--;
	if (n == 0 || more <= n || more - n >= sizeof x->rest)
		return false;
	memcpy(x->rest, path + n, more - n);
	x->rest[more - n] = 0;
	guard_decode(x->rest);
	return true;
}

/* The methods of all routes of a path, as in "Allow: GET, HEAD, POST". */
static void allow(struct exchange *x, const char *method)
{
	const size_t n = strlen(x->allow);

	snprintf(x->allow + n, sizeof x->allow - n, "%s%s%s", n ? ", " : "", method,
	         strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

bool route_find(struct exchange *x, const char *method, const char *path)
{
	for (const struct route *r = routes; r->path; r++) {
		if (!is_at(x, r, path))
			continue;
		allow(x, r->method);
		x->route = r;
		if (strcmp(r->method, method) == 0 || (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0))
			return true;
	}
	if (x->allow[0])
		return refuse(&x->refusal, 405, NULL, "%s is not answered with %s here.", path, method);
	return refuse(&x->refusal, 404, NULL, "There is nothing at %.200s.", path);
}
