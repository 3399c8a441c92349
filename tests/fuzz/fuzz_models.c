/* tests/fuzz/fuzz_models.c - what people and programs keep beside models, and what clients say of their tools: Go
 * templates and manifests of ollama's store, presets and Modelfiles, configuration files, tools with a type instead of
 * a schema, and grammars of calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_read.h"
#include "chat/chat.h"
#include "grammar/call/call.h"
#include "programs/common/model_search.h"
#include "programs/common/options.h"
#include "programs/common/preset.h"
#include "server/anthropic/anthropic_tools.h"
#include "tests/fuzz/fuzz.h"

/* ---- Go templates: the text and, behind a NUL, the JSON text of its messages */

void fuzz_go(const uint8_t *p, size_t n)
{
	static const char messages
		[] = "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"a\\u00e9"
		     "\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
		     "\"arguments\":{\"a\":[1,2.5,null]}}}]},{\"role\":\"tool\",\"content\":\"b\"}]",
	tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":{"
		  "\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"array\",\"null\"],\"enum\":[1,\"x\"]}}}}}]";
	const uint8_t *zero = n ? memchr(p, 0, n) : NULL;
	const size_t n_text = zero ? (size_t)(zero - p) : n;
	const struct chat_variable variables[] = { { "messages", zero ? (const char *)zero + 1 : messages,
		                                     zero ? n - n_text - 1 : sizeof messages - 1, CHAT_MESSAGES },
		                                   { "tools", tools, sizeof tools - 1, CHAT_USER },
		                                   { "add_generation_prompt", "true", 4, CHAT_MODEL } };
	static const struct tm now = { .tm_year = 126, .tm_mday = 2, .tm_wday = 5 };
	const struct chat_request request = { variables, sizeof variables / sizeof *variables, &now, true };
	struct error err = { 0 };
	struct chat_text out;
	bool refused;
	struct chat_template *t = chat_template_parse((const char *)p, n_text, "fuzz", &err);

	if (t && chat_render(t, &request, &out, &refused, &err))
		chat_text_free(&out);
	else if (!err.code || !err.text[0])
		abort();
	chat_template_free(t);
}

/* ---- files beside models */

static void read_preset(const char *path)
{
	struct preset p = { 0 };
	struct error err = { 0 };

	if (preset_read(&p, path, &err) != (err.code == ERROR_NONE) || (err.code && !err.text[0]))
		abort();
	if (p.n_set > PRESET_SETTINGS)
		abort();
	preset_free(&p);
}

/* The first byte says which of its forms the file has by its name. */
void fuzz_preset(const uint8_t *p, size_t n)
{
	if (n == 0)
		return;
	const char *path = fuzz_file(0, p[0] & 1 ? "Modelfile" : "a.preset", p + 1, n - 1);
	read_preset(path);
	unlink(path);
}

/* A manifest, whose layers name no blobs that are there. */
void fuzz_manifest(const uint8_t *p, size_t n)
{
	struct store_layer layer[8];
	const char *path = fuzz_file(0, "latest", p, n);
	struct preset preset = { 0 };
	struct error err = { 0 };

	if (store_layers(path, layer, 8) > 8)
		abort();
	store_renders(path);
	if (preset_find(&preset, "none.gguf", path, &err) != (err.code == ERROR_NONE))
		abort();
	preset_free(&preset);
	unlink(path);
}

/* ---- configuration files */

void fuzz_settings(const uint8_t *p, size_t n)
{
	static struct {
		const char *text, *choice;
		struct option_list list;
		long number;
		double real;
		bool flag;
	} o;
	static const struct option_row rows[] = {
		{ "text", 't', OPTION_TEXT, "TEXT", "a text", 0, 0, &o.text },
		{ "choice", 'c', OPTION_CHOICE, "one|two", "a choice", 0, 0, &o.choice },
		{ "list", 'l', OPTION_LIST, "TEXT", "several", 0, 0, &o.list },
		{ "number", 'n', OPTION_INT, "N", "a number", -5, 1000, &o.number },
		{ "real", 'r', OPTION_FLOAT, "X", "a real number", 0, 2, &o.real },
		{ "flag", 0, OPTION_FLAG, 0, "a flag", 0, 0, &o.flag },
	};
	enum { ROWS = sizeof rows / sizeof *rows };
	char name[] = "fuzz", *argv[] = { name, NULL }, said[1000];
	bool given[ROWS] = { false };
	struct option_program program = {
		.name = "fuzz",
		.usage = "",
		.purpose = "try",
		.row = rows,
		.n_rows = ROWS,
		.given = given,
		.said = said,
		.room = sizeof said
	};
	const struct option_settings s = { .file = fuzz_file(0, "settings", p, n), .prefix = "JITRUN_FUZZ_" };

	memset(&o, 0, sizeof o);
	said[0] = 0;
	if (!options_parse(&program, 1, argv))
		abort();
	if (!options_settings(&program, &s) && !said[0])
		abort();
	if (o.number < -5 || o.number > 1000 || !(o.real >= 0 && o.real <= 2) || o.list.n > OPTION_LIST_MAX)
		abort();
	free(program.settings);
	unlink(s.file);
}

/* ---- what clients say of tools */

void fuzz_typed(const uint8_t *p, size_t n)
{
	json_t *tools = json_read_plain((const char *)p, n), *warnings = json_array();
	struct refusal r = { 0 };
	json_t *made = json_is_array(tools) ? anthropic_tools(tools, warnings, &r) : NULL;

	if (json_is_array(tools) && (made == NULL) != (r.status != 0))
		abort();
	if (r.status && (r.status != 400 || !r.message[0]))
		abort();
	json_decref(made);
	json_decref(warnings);
	json_decref(tools);
}

/* A grammar of calls up to a NUL, then a text. */
void fuzz_call(const uint8_t *p, size_t n)
{
	const uint8_t *end = n ? memchr(p, 0, n) : NULL;
	const size_t source = end ? (size_t)(end - p) : n;
	struct error err = { 0 };
	struct machine *m = machine_of_call((const char *)p, source, 0, &err);

	if ((m != NULL) != (err.code == ERROR_NONE))
		abort();
	free(call_marks((const char *)p, source));
	uint32_t state = m ? m->start : MACHINE_DEAD;
	for (size_t i = source + 1; i < n && i < source + 300 && state != MACHINE_DEAD; i++) {
		machine_ends(m, state);
		for (unsigned class = EASY_ANY; class < EASY_CLASSES; class ++)
			machine_easy(m, state, (enum easy) class);
		if (m->is_free)
			m->is_free(m, state);
		state = machine_step(m, state, p[i]);
	}
	machine_close(m);
}

/* ---- what they begin with */

static const struct {
	enum fuzz_number target;
	const char *text;
} seeds[] = {
	{ FUZZ_go, "{{ .System }}{{ range .Messages }}<|{{ .Role }}|>{{ .Content }}{{ end }}<|assistant|>" },
	{ FUZZ_go, "{{- if .Tools }}{{ range $i, $t := .Tools }}{{ json $t.Function }}{{ end }}{{- end }}{{ "
	           ".Prompt }}" },
	{ FUZZ_go, "{{ with .Messages }}{{ $last := eq (len (slice . 1)) 1 }}{{ range . }}{{ if and $last (ne "
	           ".Role \"user\") "
	           "}}{{ printf \"%q-%5.2f\" .Content 1.5 }}{{ else if .ToolCalls }}{{ range .ToolCalls }}{{ "
	           ".Function.Name }}"
	           "{{ .Function.Arguments }}{{ end }}{{ end }}{{ end }}{{ end }}{{ .Response }}" },
	{ FUZZ_go, "{{ define \"a\" }}{{ . }}{{ end }}{{ template \"a\" .System }}{{ block \"b\" . }}{{ break "
	           "}}{{ end }}" },
	{ FUZZ_go, "{{/* c */ -}} {{ $x := 0x1F }}{{ $x = index .Messages 0 }}{{ `raw` | html | js | urlquery "
	           "}}{{ not nil }}" },
	{ FUZZ_preset,
	  "1FROM ./a.gguf\nSYSTEM \"\"\"Be\nbrief.\"\"\"\nPARAMETER temperature 0.5\nPARAMETER stop \"a\"\n"
	  "TEMPLATE \"{{ .Prompt }}\"\nMESSAGE user hello\nLICENSE x\nADAPTER ./b\n# c\n" },
	{ FUZZ_preset, "0system = Be brief.\ntemp = 0.5\nstop = \"a\\n\"\nctx-size = 100\n[a]\n; c\n" },
	{ FUZZ_preset, "0{\"system\":\"a\",\"temperature\":1,\"stop\":[\"x\"],\"messages\":[{\"role\":\"user\","
	               "\"content\":\"b\"}]}" },
	{ FUZZ_manifest,
	  "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/"
	  "vnd.docker.container.image.v1+json\",\"digest\":"
	  "\"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"size\":"
	  "5},\"layers\":[{"
	  "\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":"
	  "\"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"size\":"
	  "7},{\"mediaType\":"
	  "\"application/vnd.ollama.image.params\",\"digest\":\"sha256:../../x\"}]}" },
	{ FUZZ_settings, "# c\ntext = a b\nchoice=two\nnumber = 7\nreal=0.5\nflag = true\nlist = a\nlist = \"b c\"\n" },
	{ FUZZ_settings, "[section]\nflag\nno-flag = 1\n--text=x\nJITRUN_TEXT=y\n\xef\xbb\xbfnumber=-5\r\n" },
	{ FUZZ_typed,
	  "[{\"type\":\"bash_20250124\",\"name\":\"bash\"},{\"type\":\"computer_20250124\",\"name\":"
	  "\"computer\","
	  "\"display_width_px\":100,\"display_height_px\":50},{\"name\":\"f\",\"input_schema\":{\"type\":"
	  "\"object\"},\"strict\":true,\"cache_control\":{}},{\"type\":\"web_search_20250305\",\"name\":\"w\"}"
	  "]" },
	{ FUZZ_call,
	  "{\"schema\":{\"properties\":{\"name\":{\"const\":\"f\"},\"arguments\":{\"type\":\"object\"}},"
	  "\"required\":["
	  "\"name\",\"arguments\"]},\"values\":\"json\",\"behind_name\":\"[ARGS]\",\"gaps\":[\"[ID]\",\":\"],"
	  "\"gap_goes_on\":\"words\",\"openings\":[{\"text\":\"[CALL]\",\"then\":\"\\nf.\"},{\"text\":\"{"
	  "\\\"a\\\"\","
	  "\"first\":true,\"loose\":true}],\"close\":\"[/CALL]\",\"spelled\":[\"<|x|>\"]}" },
	{ FUZZ_formula, "eml(1, x)^2/3 - sin(-y)*1.5e-7" },
	{ FUZZ_formula, "-(x + 1)^-2^q_1/(y*2)*pi*e - i*sqrt(ln(0.5)) - -3*-x" },
	{ FUZZ_formula, "exp(x + 0.3)*exp(x - 0.3)^-1 + tan(asin(1/(1/y)))/(2/x/(3*y)) - (2 - (x - 2))" },
	{ FUZZ_formula, "(((x)" },
	{ FUZZ_formula, "exp(x + 4e12*4e200*4e200 + 4e26*5e300)^-0*(x + (y - 1e300*1e300))" },
	{ FUZZ_call, "{\"schema\":{\"type\":\"object\"},\"begun\":\"{\",\"openings\":[{\"text\":\"<t>\","
	             "\"begun\":\"\\\"\"}]}" },
	{ FUZZ_call, "{\"schema\":{\"type\":\"object\"},\"values\":\"plain\",\"behind_name\":\">\",\"first_"
	             "key\":\"<p=\",\"next_key\":"
	             "\"<p=\",\"behind_key\":\">\",\"behind_value\":\"</p>\",\"end\":\"</"
	             "f>\",\"loose\":true,\"cdata\":true}" },
};

void fuzz_models_seeds(enum fuzz_number target, void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char text[] =
		"Well: [CALL]\nf.f[ID]1[ARGS]{\"a\": [1, \"b\"]} [/CALL] <t>\"x\":1} f><p=a>1</p></f>";

	if (target == FUZZ_optimiser || target == FUZZ_training)
		fuzz_learned_seeds(target, take, user);
	if (target == FUZZ_pictures)
		fuzz_pictures_seeds(take, user);
	if (target == FUZZ_processor)
		fuzz_processor_seeds(take, user);
	if (target == FUZZ_towers)
		fuzz_towers_seeds(take, user);
	if (target == FUZZ_table)
		fuzz_table_seeds(take, user);
	if (target == FUZZ_npy)
		fuzz_npy_seeds(take, user);
	if (target == FUZZ_language)
		fuzz_language_seeds(take, user);
	if (target == FUZZ_graph)
		fuzz_graph_seeds(take, user);
	if (target == FUZZ_onnx)
		fuzz_onnx_seeds(take, user);
	for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
		char both[3000];
		const size_t n = strlen(seeds[i].text);
		if (seeds[i].target != target)
			continue;
		take(user, (const uint8_t *)seeds[i].text, n);
		if (target != FUZZ_call)
			continue;
		memcpy(both, seeds[i].text, n + 1);
		memcpy(both + n + 1, text, sizeof text - 1);
		take(user, (const uint8_t *)both, n + sizeof text);
	}
}
