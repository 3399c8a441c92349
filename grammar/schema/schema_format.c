/* grammar/schema/schema_format.c - the formats of strings that JSON Schema names, as expressions of whole texts.
 *
 * Sources: RFC 3339 (dates and times), RFC 5321 (e-mail, without quoted names), RFC 1123 (host names), RFC 2673 and
 * 4291 (addresses). RFC 4122 (UUID), RFC 3986 (URI), RFC 6901 (JSON pointers), ISO 8601 as RFC 3339's appendix has it
 * (durations). A leap second can only be at 23:59:60 UTC. Each describes valid texts only; some rare valid ones are
 * left out.
 */
#include <string.h>

#include "grammar/schema/schema_parts.h"

#define YEAR "[0-9]{4}"
#define DAY_OF_MONTH \
	"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define LEAP_YEAR "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE "(" YEAR "-" DAY_OF_MONTH "|" LEAP_YEAR "-02-29)"
#define ZONE "([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define TIME "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?" ZONE "|23:59:60(\\.[0-9]+)?([zZ]|[+-]00:00))"
#define BYTE_OF_ADDRESS "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 "(" BYTE_OF_ADDRESS "\\.){3}" BYTE_OF_ADDRESS
#define H16 "[0-9A-Fa-f]{1,4}"
#define LS32 "(" H16 ":" H16 "|" IPV4 ")"
#define IPV6 \
	"((" H16 ":){6}" LS32 "|::(" H16 ":){5}" LS32 "|(" H16 ")?::(" H16 ":){4}" LS32 "|((" H16 ":){0,1}" H16 \
	")?::(" H16 ":){3}" LS32 "|((" H16 ":){0,2}" H16 ")?::(" H16 ":){2}" LS32 "|((" H16 ":){0,3}" H16 ")?::" H16 \
	":" LS32 "|((" H16 ":){0,4}" H16 ")?::" LS32 "|((" H16 ":){0,5}" H16 ")?::" H16 "|((" H16 ":){0,6}" H16 \
	")?::)"
/* Up to 63 letters, digits and dashes, but no dash at the edges, nor two as the third and fourth: those are names in
 * other scripts, which are not looked into. */
#define ALNUM "[A-Za-z0-9]"
#define ALNUM_DASH "[A-Za-z0-9-]"
#define LABEL \
	"(" ALNUM "(" ALNUM "|" ALNUM_DASH ALNUM ")?|" ALNUM ALNUM_DASH ALNUM ALNUM_DASH "{0,59}" ALNUM \
	"|" ALNUM ALNUM_DASH "-" ALNUM "(" ALNUM_DASH "{0,58}" ALNUM ")?)"
#define HOST LABEL "(\\." LABEL ")*"
#define ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define PCT "%[0-9A-Fa-f]{2}"
#define UNRESERVED "A-Za-z0-9._~" /* and a dash, which ends a set */
#define SUB "!$&'()*+,;="
#define PCHAR "([" UNRESERVED SUB ":@-]|" PCT ")"
#define AUTHORITY "(([" UNRESERVED SUB ":-]|" PCT ")*@)?(\\[" IPV6 "\\]|([" UNRESERVED SUB "-]|" PCT ")*)(:[0-9]*)?"
#define SEGMENTS "(/" PCHAR "*)*"
#define TAIL "(\\?(" PCHAR "|[/?])*)?(#(" PCHAR "|[/?])*)?"
#define URI "[A-Za-z][A-Za-z0-9+.-]*:(//" AUTHORITY SEGMENTS "|/(" PCHAR "+" SEGMENTS ")?|" PCHAR "+" SEGMENTS "|)" TAIL
#define RELATIVE \
	"(//" AUTHORITY SEGMENTS "|/(" PCHAR "+" SEGMENTS ")?|([" UNRESERVED SUB "@-]|" PCT ")+" SEGMENTS "|)" TAIL
#define POINTER "(/([^~/]|~[01])*)*"

const char *schema_format(const char *name)
{
	static const struct {
		const char *name, *expression;
	} formats[] = {
		{ "date", DATE },
		{ "time", TIME },
		{ "date-time", DATE "[tT]" TIME },
		{ "duration", "P([0-9]+W|([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)"
		              "(T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))?"
		              "|T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S))" },
		{ "email", ATOM "(\\." ATOM ")*@" HOST },
		{ "hostname", HOST },
		{ "ipv4", IPV4 },
		{ "ipv6", IPV6 },
		{ "uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}" },
		{ "uri", URI },
		{ "uri-reference", "(" URI "|" RELATIVE ")" },
		{ "json-pointer", POINTER },
		{ "relative-json-pointer", "(0|[1-9][0-9]*)(#|" POINTER ")" },
	};

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(formats[i].name, name) == 0)
			return formats[i].expression;
	return NULL;
}

bool schema_format_known(const char *name)
{
	static const char *const others[] = { "idn-email",     "idn-hostname", "iri",
		                              "iri-reference", "uri-template", "regex" };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(others[i], name) == 0)
			return true;
	return schema_format(name) != NULL;
}
