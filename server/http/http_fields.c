/* server/http/http_fields.c - what stands in the head of every answer, and how a refusal is written. */
#include <microhttpd.h>

#include "server/http/http.h"
#include "server/http/origin.h"
#include "server/http/server.h"

void http_add_fields(const struct exchange *x, struct MHD_Response *r, const char *type)
{
	const char *page = origin_allowed(&x->server->origin, exchange_header(x, "Origin"));

	if (type)
		MHD_add_response_header(r, "Content-Type", type);
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, x->anthropic ? "request-id" : "X-Request-Id", x->id);
	if (x->header[0])
		MHD_add_response_header(r, "X-Jitrun-Replay", x->header);
	if (x->policy[0]) {
		MHD_add_response_header(r, "Content-Security-Policy", x->policy);
		MHD_add_response_header(r, "Cache-Control", "no-store");
		MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
		MHD_add_response_header(r, "X-Frame-Options", "DENY");
	}
	if (!page)
		return;
	MHD_add_response_header(r, "Access-Control-Allow-Origin", page);
	MHD_add_response_header(r, "Access-Control-Expose-Headers", origin_exposed);
	MHD_add_response_header(r, "Vary", "Origin, Access-Control-Request-Headers");
}

char *http_refusal_text(const struct exchange *x)
{
	if (x->anthropic)
		return refusal_json_anthropic(&x->refusal, x->id);
	return x->ollama ? refusal_json_ollama(&x->refusal) : refusal_json(&x->refusal);
}

/* ---- whole answers */

bool exchange_text(struct exchange *x, const char *type, char *text)
{
	bytes_take(&x->answer, text);
	x->type = type;
	x->answered = true;
	return true;
}

bool exchange_json(struct exchange *x, char *text) { return exchange_text(x, "application/json; charset=utf-8", text); }
