/* chat/go_template_escape.c - html, js and urlquery of Go's templates. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "chat/go_template.h"

/* What stands for this character; NULL: itself. */
static const char *html(uint32_t c)
{
	switch (c) {
	case 0: return "\357\277\275";
	case '"': return "&#34;";
	case '\'': return "&#39;";
	case '&': return "&amp;";
	case '<': return "&lt;";
	case '>': return "&gt;";
	default: return NULL;
	}
}

static const char *js(uint32_t c, char out[12])
{
	switch (c) {
	case '\\': return "\\\\";
	case '\'': return "\\'";
	case '"': return "\\\"";
	default: break;
	}
	const bool plain = c < 0x80 ? c >= 0x20 && !strchr("<>&=", (int)c) : character_prints(c);
	if (plain)
		return NULL;
	snprintf(out, 12, "\\u%04X", (unsigned)c);
	return out;
}

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("-_.~", c));
}

static void query(struct build *b, const struct text *t)
{
	char text[4];

	for (size_t i = 0; i < t->n && !b->r->failed; i++) {
		if (is_plain(t->p[i])) {
			build_part(b, t, i, 1);
			continue;
		}
		snprintf(text, sizeof text, t->p[i] == ' ' ? "+" : "%%%02X", (unsigned)(unsigned char)t->p[i]);
		build_string(b, text, text_user_at(t, i));
	}
}

void go_escape(struct build *b, const char *how, const struct text *t)
{
	char scratch[12];

	if (strcmp(how, "urlquery") == 0) {
		query(b, t);
		return;
	}
	for (size_t i = 0; i < t->n && !b->r->failed;) {
		uint32_t c = 0xfffd;
		unsigned n = text_char(t->p + i, t->n - i, &c);
		const char *instead = !n ? NULL : *how == 'h' ? html(c) : js(c, scratch);
		n = n ? n : 1;
		if (instead)
			build_string(b, instead, text_user_at(t, i));
		else
			build_part(b, t, i, n);
		i += n;
	}
}
