/* server/responses/responses_sealed.c - reasoning that a client keeps for the server, and sends back as it is.
 *
 * It is base64 of the text: clients must not read it, but nothing of it is secret from the client that got the
 * reasoning.
 */
#include <string.h>

#include "base/json_write.h"
#include "server/responses/responses.h"

static const char begins[] = "jitrun-1:";
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

json_t *responses_seal(const char *text, size_t n)
{
	struct bytes b = { 0 };

	bytes_text(&b, begins);
	for (size_t i = 0; i < n; i += 3) {
		const size_t left = n - i < 3 ? n - i : 3;
		uint32_t bits = 0;
		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < left ? (unsigned char)text[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			bytes_add(&b, k <= left ? &digits[bits >> (18 - 6 * k) & 63] : "=", 1);
	}
	json_t *o = b.lost ? NULL : json_text(b.p, b.n);
	bytes_free(&b);
	return o;
}

void responses_unseal(const char *sealed, struct bytes *out)
{
	uint32_t bits = 0;
	unsigned have = 0;

	if (strncmp(sealed, begins, strlen(begins)) != 0)
		return;
	for (const char *p = sealed + strlen(begins); *p && *p != '='; p++) {
		const char *digit = strchr(digits, *p);
		if (!digit)
			return;
		bits = bits << 6 | (uint32_t)(digit - digits);
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		bytes_add(out, &(char){ (char)(bits >> have & 0xff) }, 1);
	}
}
