/* programs/jitrun/jitrun_list.c - jitrun list: the models that other programs have put here, and whether jitrun runs
 * them. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/file.h"
#include "loaders/model/model.h"
#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/model_facts.h"
#include "programs/common/model_search.h"
#include "programs/common/output.h"

static struct option_program program = {
	.name = "jitrun list",
	.usage = "[--json]",
	.purpose = "list the models that ollama, Hugging Face, llama.cpp and LM Studio have put on this machine",
	.description =
		"Looks into ollama's store ($OLLAMA_MODELS, ~/.ollama/models, /usr/share/ollama), Hugging Face's "
		"cache ($HF_HUB_CACHE, $HF_HOME, ~/.cache/huggingface), llama.cpp's ($LLAMA_CACHE, "
		"~/.cache/llama.cpp) and LM Studio's (~/.lmstudio/models, ~/.cache/lm-studio/models). Headers "
		"alone are read, and nothing is written. The first column is the name by which all of jitrun's "
		"programs take the model. Its tag, its owner, or the name of its file may be left out where that is "
		"clear, and OWNER/NAME:Q4_K_M is the file of that type in a repository.",
	.row = jitrun_command_rows,
	.n_rows = JITRUN_COMMAND_ROWS
};

enum { NAME_COLUMNS = 34 };

/* What is said of a model beside its name and path. */
struct row {
	bool readable;
	struct model_facts facts;
	struct error why_not; /* code 0: it runs */
};

static bool read_row(struct row *r, const struct found_model *p)
{
	struct model m;

	memset(r, 0, sizeof *r);
	if (p->path)
		r->readable = model_facts_read(&r->facts, p->path, &r->why_not);
	if (r->readable && strcmp(r->facts.architecture, "clip") == 0)
		return false; /* sees pictures for another model */
	if (p->trouble)
		error_set(&r->why_not, ERROR_UNSUPPORTED, "%s", p->trouble);
	if (r->why_not.code == ERROR_NONE && model_open(&m, p->path, MODEL_NO_TOKENIZER, &r->why_not))
		model_close(&m);
	return true;
}

static const char *main_type(const struct row *r)
{
	enum dtype t = r->readable ? model_facts_main_type(&r->facts) : DTYPE_COUNT;

	return t == DTYPE_COUNT ? "" : dtype_table[t].name;
}

/* ---- for people */

/* Sentences about a file begin with its path, which stands in the line above. */
static const char *without_path(const char *sentence, const char *path)
{
	char label[200];

	if (!path)
		return sentence;
	file_label(label, path);
	size_t n = strlen(label);
	return strncmp(sentence, label, n) == 0 && strncmp(sentence + n, ": ", 2) == 0 ? sentence + n + 2 : sentence;
}

static void print_row(const struct found_model *p, const struct row *r)
{
	char name[400], type[64], parameters[FACTS_SIZE] = "", size[FACTS_SIZE] = "", quoted[FACTS_QUOTED];

	if (r->readable) {
		facts_count(parameters, r->facts.parameters);
		facts_size(size, r->facts.file_bytes);
	}
	/* A name is what a model is run by: it is never cut. */
	const char *whole = error_quote(quoted, sizeof quoted, p->name, strlen(p->name));
	bool is_long = strncmp(facts_cell(name, sizeof name, p->name, NAME_COLUMNS), whole, strlen(whole)) != 0;
	if (is_long)
		printf("%s\n", whole);
	printf("%s %s %13s %9s %s\n", facts_cell(name, sizeof name, is_long ? "" : p->name, NAME_COLUMNS),
	       facts_cell(type, sizeof type, main_type(r), 7), parameters, size, p->source);
	if (p->path)
		printf("  %s\n", error_quote(quoted, sizeof quoted, p->path, strlen(p->path)));
	if (r->why_not.code)
		facts_row(stdout, "  does not run:", "%s", without_path(r->why_not.text, p->path));
}

static void print_notes(const struct model_search *s, bool any)
{
	char quoted[FACTS_QUOTED];

	for (size_t i = 0; i < s->n_notes; i++)
		fprintf(stderr, "jitrun: %s.\n", s->note[i]);
	if (any)
		return;
	fprintf(stderr, "No models were found in:\n");
	for (size_t i = 0; i < s->n_searched; i++)
		fprintf(stderr, "  %s\n", error_quote(quoted, sizeof quoted, s->searched[i], strlen(s->searched[i])));
}

/* ---- for machines */

static json_t *json_row(const struct found_model *p, const struct row *r)
{
	json_t *o = json_pack("{s:o, s:s, s:o}", "name", output_string(p->name), "source", p->source, "path",
	                      p->path ? output_string(p->path) : json_null());

	if (r->readable) {
		json_object_set_new(o, "format", json_string(r->facts.format));
		json_object_set_new(o, "architecture", output_string(r->facts.architecture));
		json_object_set_new(o, "type", json_string(main_type(r)));
		json_object_set_new(o, "parameters", json_integer((json_int_t)r->facts.parameters));
		json_object_set_new(o, "files", json_integer((json_int_t)r->facts.files));
		json_object_set_new(o, "bytes", json_integer((json_int_t)r->facts.file_bytes));
	}
	json_object_set_new(o, "runs", json_boolean(r->why_not.code == ERROR_NONE));
	json_object_set_new(o, "why_not", r->why_not.code ? output_string(r->why_not.text) : json_null());
	return o;
}

static void print_json(const struct model_search *s, json_t *models)
{
	json_t *notes = json_array(), *searched = json_array();

	for (size_t i = 0; i < s->n_notes; i++)
		json_array_append_new(notes, output_string(s->note[i]));
	for (size_t i = 0; i < s->n_searched; i++)
		json_array_append_new(searched, output_string(s->searched[i]));
	json_t *o = json_pack("{s:o, s:o, s:o}", "models", models, "notes", notes, "folders", searched);
	json_dumpf(o, stdout, output_json_flags(stdout));
	putchar('\n');
	json_decref(o);
}

int jitrun_list(int argc, char **argv)
{
	struct model_search s;
	struct error err = { 0 };
	int status = EXIT_USAGE;
	bool any = false;

	if (!options_parse(&program, argc, argv) ||
	    options_about(&program, &jitrun_command.about, jit_version(), &status))
		return status;
	if (!model_search_all(&s, &err)) {
		model_search_free(&s);
		return jitrun_fail_with(&err);
	}
	json_t *models = json_array();
	for (size_t i = 0; i < s.n && !interrupted; i++) {
		struct row r;
		if (!read_row(&r, &s.found[i]))
			continue;
		any = true;
		if (jitrun_command.json)
			json_array_append_new(models, json_row(&s.found[i], &r));
		else
			print_row(&s.found[i], &r);
	}
	if (jitrun_command.json)
		print_json(&s, models);
	else {
		json_decref(models);
		print_notes(&s, any);
	}
	model_search_free(&s);
	return 0;
}
