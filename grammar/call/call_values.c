/* grammar/call/call_values.c - arguments of calls as they are written, and as JSON. */
#include <stdio.h>
#include <string.h>

#include "grammar/call/call_parts.h"

/* THREAD_JSON and THREAD_PYTHON: flags below how deep they are. */
enum { BEGUN = 1, IN_TEXT = 2, ESCAPED = 4, SINGLE = 8, DEPTH = 256 };
/* THREAD_TEXT: what would be right as JSON must not be a text. Behind GUARD_WORD a word that is read as JSON, and how
 * much of it. GUARD_BEGIN has a bit for each first byte of JSON that the schema allows, from GUARD_KIND on. */
enum { GUARD_NONE, GUARD_BEGIN, GUARD_WORD, GUARD_KIND = 256 };
/* THREAD_BRACES: what is expected. */
enum { EXPECT_VALUE, EXPECT_ITEM, EXPECT_KEY, EXPECT_MEMBER, IN_KEY, IN_WORD, EXPECT_MORE = '.' };

static const char *const words[] = { "true", "false", "null", "True", "False", "None" };
enum { WORDS = sizeof words / sizeof *words };
/* How JSON begins; the first three as the words do. */
static const char begins[] = "tfn\"{[-0123456789";

static bool is_white(uint8_t b) { return b == ' ' || b == '\n' || b == '\t' || b == '\r'; }
static bool is_digit(uint8_t b) { return b >= '0' && b <= '9'; }

/* A byte of a text, between the quotes of JSON. */
static uint32_t feed_byte(struct call_machine *m, uint32_t json, uint8_t byte)
{
	static const char plain[] = "\"\\\n\t\r\b\f", letter[] = "\"\\ntrbf";
	const char *at = byte ? strchr(plain, byte) : NULL;
	char escape[8];

	if (at || byte < ' ') {
		if (at)
			snprintf(escape, sizeof escape, "\\%c", letter[at - plain]);
		else
			snprintf(escape, sizeof escape, "\\u%04x", byte);
		return byte ? call_feed(m, json, escape) : MACHINE_DEAD;
	}
	return machine_step(m->json, json, byte);
}

/* Whether a value that stands in an object ends here. */
static bool is_whole(struct call_machine *m, uint32_t json)
{
	return machine_step(m->json, json, ',') != MACHINE_DEAD || machine_step(m->json, json, '}') != MACHINE_DEAD;
}

static uint32_t guard_of(struct call_machine *m, uint32_t json)
{
	uint32_t guard = GUARD_BEGIN;

	for (uint32_t i = 0; begins[i]; i++)
		if (machine_step(m->json, json, (uint8_t)begins[i]) != MACHINE_DEAD)
			guard |= (uint32_t)GUARD_KIND << i;
	return guard;
}

void call_value(struct call_machine *m, uint32_t json)
{
	if (m->values == VALUES_PYTHON) {
		call_add(m, (struct thread){ THREAD_PYTHON, 0, 0, json });
	} else if (m->values == VALUES_BRACES) {
		call_add(m, (struct thread){ THREAD_BRACES, EXPECT_VALUE, 1, json });
	} else {
		bool plain = !m->told && call_wants_text(m->json, json);
		uint32_t text = m->told ? MACHINE_DEAD : call_feed(m, json, "\"");
		call_add(m, (struct thread){ THREAD_TEXT, 0, plain ? GUARD_NONE : guard_of(m, json), text });
		if (m->mark[MARK_CDATA][0])
			call_add(m, (struct thread){ THREAD_MARK + MARK_CDATA, 0, 0, text });
		if (!plain)
			call_add(m, (struct thread){ THREAD_JSON, 0, 0, json });
	}
}

/* ---- texts as they are */

/* What is known of a text that must not be read as JSON, behind one more byte. False: it might be. */
static bool guard(uint32_t *aux, uint8_t byte)
{
	if (*aux == GUARD_NONE)
		return true;
	if (*aux % GUARD_KIND == GUARD_BEGIN) {
		const uint32_t kinds = *aux / GUARD_KIND;
		const char *at = byte ? strchr(begins, byte) : NULL;
		*aux = GUARD_NONE;
		for (uint32_t w = 0; w < WORDS; w++)
			if (byte == (uint8_t)words[w][0] && kinds >> w % 3 & 1)
				*aux = GUARD_WORD + 16 * w + 1;
		return !is_white(byte) && (!at || at < begins + 3 || !(kinds >> (at - begins) & 1));
	}
	const char *word = words[(*aux - GUARD_WORD) / 16];
	uint32_t had = (*aux - GUARD_WORD) % 16;
	if (!word[had] && is_white(byte))
		return true;
	*aux = (uint8_t)word[had] == byte && byte ? *aux + 1 : GUARD_NONE;
	return true;
}

static bool guarded(uint32_t aux)
{
	return aux >= GUARD_WORD && aux < GUARD_KIND && !words[(aux - GUARD_WORD) / 16][(aux - GUARD_WORD) % 16];
}

static void text_step(struct call_machine *m, struct thread t, uint8_t byte)
{
	if (t.mode == THREAD_TEXT && !guard(&t.aux, byte))
		return;
	if (t.mode == THREAD_TEXT && m->mark[MARK_CDATA][0] && t.at == 0 && byte == '<')
		return; /* the text would need CDATA */
	while (t.at && (uint8_t)m->stop[t.at] != byte)
		t.at = m->fallback[t.at - 1];
	t.at += (uint8_t)m->stop[t.at] == byte;
	if (m->stop[t.at])
		call_add(m, (struct thread){ t.mode, t.at, t.aux, feed_byte(m, t.inner, byte) });
}

/* ---- JSON */

static void json_step(struct call_machine *m, struct thread t, uint8_t byte)
{
	bool whole = m->values == VALUES_JSON;

	if (t.aux & IN_TEXT) {
		if (t.aux & ESCAPED)
			t.aux &= ~(uint32_t)ESCAPED;
		else
			t.aux ^= byte == '\\' ? ESCAPED : byte == '"' ? IN_TEXT : 0;
	} else {
		if (t.aux < DEPTH && is_white(byte))
			return;
		if (!(t.aux & BEGUN) && ((whole && byte != '{') || (m->told && byte == '"')))
			return;
		if ((byte == '}' || byte == ']' || byte == ',') && t.aux < DEPTH)
			return; /* it would be the argument's */
		t.aux |= BEGUN | (byte == '"' ? IN_TEXT : 0);
		t.aux += byte == '{' || byte == '[' ? DEPTH : 0;
		t.aux -= byte == '}' || byte == ']' ? DEPTH : 0;
	}
	t.inner = machine_step(m->json, t.inner, byte);
	if (t.inner == MACHINE_DEAD)
		return;
	bool done = t.aux < DEPTH && !(t.aux & IN_TEXT) && is_whole(m, t.inner);
	if (whole && done)
		call_add(m, (struct thread){ THREAD_MARK + MARK_END, 0, 0, call_feed(m, t.inner, "}") });
	else if (done)
		call_add(m, (struct thread){ THREAD_MARK + MARK_BEHIND_VALUE, 0, 0, t.inner });
	if (!done || is_digit(byte))
		call_add(m, t);
}

/* ---- Python */

/* Behind a backslash. */
static uint32_t python_escape(struct call_machine *m, uint32_t json, uint8_t byte)
{
	const char escape[] = { '\\', (char)byte, 0 };

	if (byte == '\'')
		return machine_step(m->json, json, byte);
	return byte && strchr("nrtbf\\\"", byte) ? call_feed(m, json, escape) : MACHINE_DEAD;
}

static uint32_t python_text(struct call_machine *m, struct thread *t, uint8_t byte)
{
	if (t->aux & ESCAPED) {
		t->aux &= ~(uint32_t)ESCAPED;
		return python_escape(m, t->inner, byte);
	}
	if (byte == '\\') {
		bool any = false;
		for (const char *p = "nrtbf\\\"'"; *p; p++)
			any |= python_escape(m, t->inner, (uint8_t)*p) != MACHINE_DEAD;
		t->aux |= ESCAPED;
		return any ? t->inner : MACHINE_DEAD;
	}
	if (byte == (t->aux & SINGLE ? '\'' : '"')) {
		t->aux &= ~(uint32_t)(IN_TEXT | SINGLE);
		return machine_step(m->json, t->inner, '"');
	}
	return byte == '\n' ? MACHINE_DEAD : feed_byte(m, t->inner, byte);
}

static uint32_t python_byte(struct call_machine *m, struct thread *t, uint8_t byte)
{
	static const char rest[] = "one";

	if (t->at) { /* null was given already */
		uint32_t json = (uint8_t)rest[t->at - 1] == byte ? t->inner : MACHINE_DEAD;
		t->at = t->at == 3 ? 0 : t->at + 1;
		return json;
	}
	if ((is_white(byte) || byte == '}' || byte == ']' || byte == ',') && t->aux < DEPTH)
		return MACHINE_DEAD;
	t->aux |= BEGUN;
	switch (byte) {
	case 't':
	case 'f':
	case 'n': return MACHINE_DEAD;
	case 'T': return machine_step(m->json, t->inner, 't');
	case 'F': return machine_step(m->json, t->inner, 'f');
	case 'N': t->at = 1; return call_feed(m, t->inner, "null");
	case '\'':
	case '"': t->aux |= IN_TEXT | (byte == '"' ? 0 : SINGLE); return machine_step(m->json, t->inner, '"');
	case '{':
	case '[': t->aux += DEPTH; break;
	case '}':
	case ']': t->aux -= DEPTH; break;
	default: break;
	}
	return machine_step(m->json, t->inner, byte);
}

static void python_step(struct call_machine *m, struct thread t, uint8_t byte)
{
	t.inner = t.aux & IN_TEXT ? python_text(m, &t, byte) : python_byte(m, &t, byte);
	if (t.inner == MACHINE_DEAD)
		return;
	bool done = t.aux < DEPTH && !(t.aux & IN_TEXT) && t.at == 0 && is_whole(m, t.inner);
	if (done)
		call_add(m, (struct thread){ THREAD_MARK + MARK_BEHIND_VALUE, 0, 0, t.inner });
	if (!done || is_digit(byte))
		call_add(m, t);
}

/* ---- braces */

static bool is_name(uint8_t b)
{
	return is_digit(b) || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '_' || b == '-' || b == '.';
}

/* What follows a value, inside of another. */
static void braces_more(struct call_machine *m, struct thread t, uint8_t byte)
{
	bool object = t.aux & 1;

	if (t.aux == 1)
		return; /* it is the argument's: call_value_follow() */
	if (byte == ',')
		call_add(m, (struct thread){ THREAD_BRACES, object ? EXPECT_KEY : EXPECT_VALUE, t.aux,
		                             call_feed(m, t.inner, object ? ",\"" : ",") });
	else if (byte == (object ? '}' : ']'))
		call_add(m, (struct thread){ THREAD_BRACES, EXPECT_MORE, t.aux >> 1,
		                             machine_step(m->json, t.inner, byte) });
}

static void braces_value(struct call_machine *m, struct thread t, uint8_t byte)
{
	const uint32_t json = machine_step(m->json, t.inner, byte);

	if (t.at == EXPECT_ITEM && byte == ']') {
		call_add(m, (struct thread){ THREAD_BRACES, EXPECT_MORE, t.aux >> 1, json });
	} else if (byte == '<') {
		call_add(m, (struct thread){ THREAD_MARK + MARK_QUOTE, 1, t.aux, call_feed(m, t.inner, "\"") });
	} else if (byte == '{' || byte == '[') {
		if (t.aux < UINT32_MAX / 4)
			call_add(m, (struct thread){ THREAD_BRACES, byte == '{' ? EXPECT_MEMBER : EXPECT_ITEM,
			                             t.aux << 1 | (byte == '{'), json });
	} else if (is_digit(byte) || byte == '-' || (byte >= 'a' && byte <= 'z')) {
		call_add(m, (struct thread){ THREAD_BRACES, IN_WORD, t.aux, json });
	}
}

static void braces_step(struct call_machine *m, struct thread t, uint8_t byte)
{
	uint32_t json = t.inner;

	switch (t.at) {
	case EXPECT_VALUE:
	case EXPECT_ITEM: braces_value(m, t, byte); break;
	case EXPECT_MEMBER:
		if (byte == '}') {
			braces_more(m, t, byte);
			break;
		}
		json = machine_step(m->json, json, '"'); /* fall through */
	case EXPECT_KEY:
	case IN_KEY:
		if (byte == ':' && t.at == IN_KEY)
			call_add(m, (struct thread){ THREAD_BRACES, EXPECT_VALUE, t.aux, call_feed(m, json, "\":") });
		else if (is_name(byte) && json != MACHINE_DEAD)
			call_add(m, (struct thread){ THREAD_BRACES, IN_KEY, t.aux, machine_step(m->json, json, byte) });
		break;
	case IN_WORD:
		if (is_digit(byte) || (byte >= 'a' && byte <= 'z') || strchr("+-.E", byte ? byte : ' '))
			call_add(m,
			         (struct thread){ THREAD_BRACES, IN_WORD, t.aux, machine_step(m->json, json, byte) });
		else
			braces_more(m, t, byte);
		break;
	default: braces_more(m, t, byte); break;
	}
}

/* ---- all */

void call_value_step(struct call_machine *m, struct thread t, uint8_t byte)
{
	switch (t.mode) {
	case THREAD_TEXT:
	case THREAD_CDATA:
	case THREAD_QUOTED: text_step(m, t, byte); break;
	case THREAD_JSON: json_step(m, t, byte); break;
	case THREAD_PYTHON: python_step(m, t, byte); break;
	case THREAD_BRACES: braces_step(m, t, byte); break;
	default: break;
	}
}

void call_value_follow(struct call_machine *m, const struct thread *t)
{
	uint32_t mark = MARK_BEHIND_VALUE, json = MACHINE_DEAD;

	if (t->mode == THREAD_TEXT || t->mode == THREAD_CDATA || t->mode == THREAD_QUOTED) {
		mark = t->mode == THREAD_TEXT    ? MARK_BEHIND_VALUE
		       : t->mode == THREAD_CDATA ? MARK_CDATA_END
		                                 : MARK_QUOTE_END;
		json = t->mode == THREAD_TEXT && guarded(t->aux) ? MACHINE_DEAD : machine_step(m->json, t->inner, '"');
	} else if (t->mode == THREAD_BRACES && t->aux == 1 && (t->at == EXPECT_MORE || t->at == IN_WORD)) {
		json = is_whole(m, t->inner) ? t->inner : MACHINE_DEAD;
	}
	if (json != MACHINE_DEAD)
		call_add(m, (struct thread){ THREAD_MARK + mark, 0, t->mode == THREAD_QUOTED ? t->aux : 0, json });
}

uint32_t call_value_easy(struct call_machine *m, const struct thread *t, enum easy class)
{
	bool text =
		(t->mode == THREAD_TEXT && t->aux == GUARD_NONE) || t->mode == THREAD_CDATA || t->mode == THREAD_QUOTED;
	bool quoted = (t->mode == THREAD_JSON || (t->mode == THREAD_PYTHON && class >= EASY_WORD)) &&
	              (t->aux & IN_TEXT) && !(t->aux & ESCAPED);
	uint32_t left = text ? (uint32_t)strlen(m->stop) - t->at - 1 : quoted ? UINT32_MAX : 0;
	/* A text with < needs CDATA where there is such a thing. */
	if (t->mode == THREAD_TEXT && m->mark[MARK_CDATA][0] && class < EASY_WORD)
		left = 0;
	uint32_t max = left ? machine_easy(m->json, t->inner, class) : 0;

	return max < left ? max : left;
}
