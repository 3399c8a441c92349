/* server/routes.c - which handler answers what. */
#include "server/endpoints.h"

const struct route routes[] = {
	{ "GET", "/health", ROUTE_OPEN, answer_health },
	{ "GET", "/v1/health", ROUTE_OPEN, answer_health },
	{ "GET", "/readyz", ROUTE_OPEN, answer_health },
	{ "GET", "/livez", ROUTE_OPEN, answer_live },
	{ "GET", "/models", ROUTE_KEY | ROUTE_MODEL, answer_models },
	{ "GET", "/v1/models", ROUTE_KEY | ROUTE_MODEL, answer_models },
	{ "POST", "/v1/chat/completions", ROUTE_KEY | ROUTE_MODEL, answer_chat },
	{ "POST", "/chat/completions", ROUTE_KEY | ROUTE_MODEL, answer_chat },
	{ "POST", "/v1/completions", ROUTE_KEY | ROUTE_MODEL, answer_completions },
	{ NULL, NULL, 0, NULL },
};
