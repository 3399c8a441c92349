/* grammar/rules/lark_common.c - the terminals of Lark's library "common", each as one expression. */
#include <string.h>

#include "grammar/rules/lark_parts.h"

#define EXPONENT "[eE][+-]?[0-9]+"
#define DECIMAL "(?:[0-9]+\\.[0-9]*|\\.[0-9]+)"
#define FLOAT "(?:[0-9]+" EXPONENT "|" DECIMAL "(?:" EXPONENT ")?)"

static const struct {
	const char *name, *body;
} terminals[] = {
	{ "DIGIT", "/[0-9]/" },
	{ "HEXDIGIT", "/[0-9a-fA-F]/" },
	{ "INT", "/[0-9]+/" },
	{ "SIGNED_INT", "/[+-]?[0-9]+/" },
	{ "DECIMAL", "/" DECIMAL "/" },
	{ "_EXP", "/" EXPONENT "/" },
	{ "FLOAT", "/" FLOAT "/" },
	{ "SIGNED_FLOAT", "/[+-]?" FLOAT "/" },
	{ "NUMBER", "/" FLOAT "|[0-9]+/" },
	{ "SIGNED_NUMBER", "/[+-]?(?:" FLOAT "|[0-9]+)/" },
	{ "ESCAPED_STRING", "/\"(?:[^\"\\\\\\n]|\\\\.)*\"/" },
	{ "LCASE_LETTER", "/[a-z]/" },
	{ "UCASE_LETTER", "/[A-Z]/" },
	{ "LETTER", "/[A-Za-z]/" },
	{ "WORD", "/[A-Za-z]+/" },
	{ "CNAME", "/[A-Za-z_][A-Za-z_0-9]*/" },
	{ "WS_INLINE", "/[ \\t]+/" },
	{ "WS", "/[ \\t\\f\\r\\n]+/" },
	{ "CR", "/\\r/" },
	{ "LF", "/\\n/" },
	{ "NEWLINE", "/(?:\\r?\\n)+/" },
	{ "SH_COMMENT", "/#[^\\n]*/" },
	{ "CPP_COMMENT", "/\\/\\/[^\\n]*/" },
	{ "C_COMMENT", "/\\/\\*(?:[^*]|\\*+[^*\\/])*\\*+\\//" },
	{ "SQL_COMMENT", "/--[^\\n]*/" },
};

const char *lark_common(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++)
		if (strlen(terminals[i].name) == n && memcmp(terminals[i].name, name, n) == 0)
			return terminals[i].body;
	return NULL;
}
