/* server/control/page.c - the web page at /.
 *
 * Owns: who gets it, and what browsers let the page do. Nothing runs in it but the one script that has this answer's
 * nonce, nothing comes from elsewhere, it talks to this server alone, no other page may show it in a frame, and no text
 * becomes markup, even if the script asked for that.
 */
#include "server/control/page.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "server/api/endpoints.h"
#include "server/http/server.h"

enum { NONCE_BYTES = 16 };

static bool make_nonce(char out[2 * NONCE_BYTES + 1])
{
	unsigned char drawn[NONCE_BYTES];

	if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
		return false;
	for (int i = 0; i < NONCE_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", drawn[i]);
	return true;
}

static void put_page(struct bytes *b, const char *nonce)
{
	static const char mark[] = "\"NONCE\"";
	const char *at = (const char *)page_bytes, *end = at + page_size;

	for (const char *m; (m = memmem(at, (size_t)(end - at), mark, sizeof mark - 1)); at = m + sizeof mark - 1) {
		bytes_add(b, at, (size_t)(m - at));
		bytes_print(b, "\"%s\"", nonce);
	}
	bytes_add(b, at, (size_t)(end - at));
}

/* Browsers name text/html. Clients of ollama look here whether it runs, by its very words. */
static bool wants_page(const struct exchange *x)
{
	const char *accepts = exchange_header(x, "Accept");

	return !accepts || strcasestr(accepts, "text/html");
}

bool answer_page(struct exchange *x)
{
	char nonce[2 * NONCE_BYTES + 1];

	if (!wants_page(x))
		return exchange_text(x, "text/plain; charset=utf-8", strdup("Ollama is running"));
	if (x->server->o.no_page)
		return refuse(&x->refusal, 404, NULL, "There is no page here: the server was started with --no-page.");
	if (!make_nonce(nonce))
		return refuse(&x->refusal, 503, NULL, "The system gives no random numbers.");
	put_page(&x->answer, nonce);
	snprintf(x->policy, sizeof x->policy,
	         "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; img-src data:; "
	         "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
	         nonce, nonce);
	x->type = "text/html; charset=utf-8";
	x->answered = true;
	return true;
}
