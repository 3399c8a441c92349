/* server/routes.c - which handler answers what. */
#include "server/endpoints.h"

const struct route routes[] = {
	{ "GET", "/health", ROUTE_OPEN, answer_health },
	{ "GET", "/v1/health", ROUTE_OPEN, answer_health },
	{ "GET", "/readyz", ROUTE_OPEN, answer_health },
	{ "GET", "/livez", ROUTE_OPEN, answer_live },
	{ "GET", "/models", ROUTE_KEY | ROUTE_MODEL, answer_models },
	{ "GET", "/v1/models", ROUTE_KEY | ROUTE_MODEL, answer_models },
	{ "GET", "/v1/models/", ROUTE_KEY | ROUTE_MODEL | ROUTE_BELOW, answer_model },
	{ "POST", "/v1/chat/completions", ROUTE_KEY | ROUTE_MODEL, answer_chat },
	{ "POST", "/chat/completions", ROUTE_KEY | ROUTE_MODEL, answer_chat },
	{ "POST", "/v1/completions", ROUTE_KEY | ROUTE_MODEL, answer_completions },
	{ "POST", "/v1/messages", ROUTE_KEY | ROUTE_MODEL, answer_messages },
	{ "POST", "/v1/messages/count_tokens", ROUTE_KEY | ROUTE_MODEL, answer_count_tokens },
	{ "POST", "/v1/embeddings", ROUTE_KEY | ROUTE_MODEL, answer_embeddings },
	{ "POST", "/completion", ROUTE_KEY | ROUTE_MODEL, answer_native },
	{ "POST", "/completions", ROUTE_KEY | ROUTE_MODEL, answer_native },
	{ "POST", "/tokenize", ROUTE_KEY | ROUTE_MODEL, answer_tokenize },
	{ "POST", "/detokenize", ROUTE_KEY | ROUTE_MODEL, answer_detokenize },
	{ "POST", "/apply-template", ROUTE_KEY | ROUTE_MODEL, answer_apply_template },
	{ "GET", "/props", ROUTE_KEY | ROUTE_MODEL, answer_props },
	{ "GET", "/slots", ROUTE_KEY | ROUTE_MODEL, answer_slots },
	{ "GET", "/metrics", ROUTE_KEY | ROUTE_MODEL, answer_metrics },
	{ NULL, NULL, 0, NULL },
};
