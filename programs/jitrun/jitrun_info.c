/* programs/jitrun/jitrun_info.c - jitrun info: what a model is, whether it runs here, in how much memory, and on what.
 *
 * Only headers are read. What the files say of themselves comes from programs/common/model_facts.h, so that a model
 * that does not run is described as well; all else comes from the loaders and from what sizes a model's memory.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "chat/chat.h"
#include "loaders/model/model.h"
#include "loaders/tokenizer/tokenizer.h"
#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/model_facts.h"
#include "programs/common/output.h"
#include "programs/common/shared_rows.h"
#include "runtime/model/load_weights.h"
#include "runtime/host/system.h"
#include "runtime/model/packed.h"
#include "runtime/ranks/forecast.h"
#include "runtime/session/session.h"
#include "runtime/session/session_memory.h"
#include "runtime/speculate/speculate.h"

static const char *model_word;

static const char *ranks_word, *split_word;

static const struct option_row rows[] = {
	{ .name = "json",
	  .kind = OPTION_FLAG,
	  .help = "print one JSON line instead of a table",
	  .target = &jitrun_command.json },
	{ .name = "ranks",
	  .kind = OPTION_TEXT,
	  .value = "CARRIER",
	  .help = "also what each rank would have, and what they would exchange; fork:N or mpi:N",
	  .target = &ranks_word },
	ROW_SPLIT(split_word),
	OPTION_ABOUT(jitrun_command.about),
};

static struct option_program program = {
	.name = "jitrun info",
	.usage = "MODEL [--json]",
	.purpose = "say what a model is, whether it runs here, and in how much memory",
	.description = "Only the header of the model is read. Exit status: 0 it runs "
		       "here, 1 there is no model or it cannot be read, 2 a wrong "
		       "command line, 3 it does not run here.",
	.row = rows,
	.n_rows = sizeof rows / sizeof *rows,
	.operand = &model_word,
	.max_operands = 1
};

/* The memory of a session with so many positions. */
struct session_size {
	uint32_t context;
	uint64_t kv, kv_q8_0, activations;
};

struct info {
	struct model_facts facts;
	struct model model;
	struct packed *packed; /* NULL: it is none */
	bool opened;           /* what is in `model` is known */
	struct weights weights;
	bool measured;                      /* what is in these two is known */
	struct session_size usual, trained; /* trained.context 0: the same, or not known */
	uint64_t available;                 /* UINT64_MAX: not known */
	struct ranks_forecast ranks;        /* with --ranks, else its number of ranks is 0 */
	struct error why_not;               /* code 0: it runs */
};

/* ---- finding out */

static bool measure_session(struct session_size *size, const struct info *i, const struct target *t, uint32_t context,
                            struct error *err)
{
	const struct model_spec *s = &i->model.spec;
	uint32_t tokens = session_usual_batch(t, context);
	struct session_memory m = { .kv.type = DTYPE_F16 };
	struct pass_memory p = { 0 };
	uint32_t widest = tokens < SPECULATE_MAX ? SPECULATE_MAX : tokens;

	session_memory_measure(&m, s, widest, context);
	if (!pass_memory_measure(&p, s, &(struct plan_layout_options){ .tokens = widest }, err))
		return false;
	*size = (struct session_size){
		.context = context, .kv = m.kv_bytes, .activations = p.buffers_bytes + p.shared_bytes
	};
	m.kv.type = DTYPE_Q8_0;
	session_memory_measure(&m, s, tokens, context);
	size->kv_q8_0 = m.kv_bytes;
	return true;
}

static uint64_t weight_memory(const struct info *i) { return i->weights.arena_bytes + i->weights.vectors_bytes; }

static bool measure(struct info *i, struct error *err)
{
	const struct model_spec *s = &i->model.spec;
	const struct target *t = device_host_target(NULL, true, err);

	if (!t || !weights_measure(&i->weights, s, t, err))
		return false;
	i->measured = true;
	i->available = system_available_memory();
	uint64_t weights = weight_memory(i), left = i->available > weights ? i->available - weights : 0;
	uint32_t usual = session_usual_context(s, DTYPE_F16, left / 2);
	if (!measure_session(&i->usual, i, t, usual, err) ||
	    (s->context_train > usual && !measure_session(&i->trained, i, t, s->context_train, err)))
		return false;
	uint64_t needed = weights + i->usual.kv + i->usual.activations;
	char a[FACTS_SIZE], b[FACTS_SIZE];
	return needed <= i->available ||
	       error_set(err, ERROR_MEMORY, "with a context of %u tokens it needs %s of memory, and %s are available",
	                 usual, facts_size(a, needed), facts_size(b, i->available));
}

/* False: there is nothing to say of such a path but err. */
static bool look(struct info *i, struct error *err)
{
	struct error ignored = { 0 };

	if (container_is(model_word)) {
		i->opened = packed_or_files(&i->model, &i->packed, model_word, 0, err);
		if (!i->opened)
			return false;
		model_facts_of(&i->facts, &i->model, "packed");
		if (container_trusted(packed_container(i->packed), &i->why_not))
			measure(i, &i->why_not);
		return true;
	}
	if (!model_facts_read(&i->facts, model_word, err))
		return false;
	i->opened = model_open(&i->model, model_word, 0, &i->why_not) ||
	            model_open(&i->model, model_word, MODEL_HEADER_ONLY, &ignored);
	if (i->opened)
		measure(i, &i->why_not);
	return true;
}

/* ---- for people */

static void print_embeddings(const struct model *m)
{
	char sizes[200] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < m->n_dense && n < sizeof sizes; i++)
		n += (size_t)snprintf(sizes + n, sizeof sizes - n, "%s%" PRIu32, i ? " to " : ", then dense layers to ",
		                      m->dense[i].out);
	facts_row(stdout, "embeddings", "%s%s",
	          m->pooling == POOLING_NOT_SAID ? "nothing says of which tokens"
	          : m->pooling == POOLING_MEAN   ? "the mean of all tokens"
	          : m->pooling == POOLING_CLS    ? "the first token"
	          : m->pooling == POOLING_RANK   ? "none: the model ranks texts"
	                                         : "the last token",
	          sizes);
}

static void print_shape(const struct info *i)
{
	const struct model_spec *s = &i->model.spec;

	if (!i->opened) {
		if (i->facts.layers)
			facts_row(stdout, "layers", "%" PRIu64, i->facts.layers);
		if (i->facts.context)
			facts_row(stdout, "context", "%" PRIu64 " tokens in training", i->facts.context);
		return;
	}
	facts_row(stdout, "layers", "%u, hidden size %u, feed-forward size %u", s->layers, s->hidden, s->ffn);
	if (s->latent.rank)
		facts_row(stdout, "attention", "%u heads of %u, a latent vector of %u and %u for all", s->heads,
		          s->head_dim, s->latent.rank, s->latent.rotating);
	else
		facts_row(stdout, "attention", "%u heads of %u, %u of keys and values%s", s->heads, s->head_dim,
		          s->kv_heads, s->sliding_window ? ", a sliding window" : "");
	facts_row(stdout, "context", "%u tokens in training", s->context_train);
	if (i->model.pooling != POOLING_NOT_SAID || i->model.n_dense)
		print_embeddings(&i->model);
}

/* Whether there is one, and the names of others that --template takes. */
static void print_templates(const struct model *m)
{
	char names[400] = "", one[80];
	size_t n = 0;

	for (uint32_t i = 0; i < m->n_chat_templates && n < sizeof names; i++) {
		const char *name = m->chat_template[i].name;
		if (strcmp(name, "default") != 0)
			n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "; --template takes ",
			                      error_quote(one, sizeof one, name, strlen(name)));
	}
	facts_row(stdout, "chat template", "%s%s", model_find_chat_template(m, NULL) ? "yes" : "none", names);
}

static void print_texts(const struct info *i)
{
	const struct model *m = &i->model;

	if (!i->opened)
		return;
	if (m->tokenizer)
		facts_row(stdout, "tokenizer", "%s, %zu tokens", tokenizer_kind(m->tokenizer),
		          tokenizer_size(m->tokenizer));
	else
		facts_row(stdout, "tokenizer", "%s%s",
		          m->tokenizer_error.code ? "cannot be used: " : "none; token ids can be used",
		          m->tokenizer_error.text);
	if (m->chat_template_error.code)
		facts_row(stdout, "chat template", "cannot be used: %s", m->chat_template_error.text);
	else
		print_templates(m);
}

static void print_types(const struct model_facts *f)
{
	const char *name = "weights";
	char parameters[FACTS_SIZE], bytes[FACTS_SIZE];

	for (int t = 0; t < DTYPE_COUNT; t++)
		if (f->type[t].tensors) {
			facts_row(stdout, name, "%s: %" PRIu64 " tensor%s, %s parameters, %s", dtype_table[t].name,
			          f->type[t].tensors, f->type[t].tensors == 1 ? "" : "s",
			          facts_count(parameters, f->type[t].parameters), facts_size(bytes, f->type[t].bytes));
			name = "";
		}
}

static void print_session(const char *what, const struct session_size *s)
{
	char kv[FACTS_SIZE], small[FACTS_SIZE], activations[FACTS_SIZE];

	facts_row(stdout, "", "context of %u tokens (%s): KV cache %s (%s with --kv-type q8_0), activations %s",
	          s->context, what, facts_size(kv, s->kv), facts_size(small, s->kv_q8_0),
	          facts_size(activations, s->activations));
}

static void print_memory(const struct info *i)
{
	char a[FACTS_SIZE], b[FACTS_SIZE];

	if (!i->measured)
		return;
	facts_row(stdout, "memory", "weights %s, of which a token reads %s", facts_size(a, weight_memory(i)),
	          facts_size(b, i->weights.token_bytes));
	print_session("the default", &i->usual);
	if (i->trained.context)
		print_session("as in training", &i->trained);
	if (i->available != UINT64_MAX)
		facts_row(stdout, "", "%s are available", facts_size(a, i->available));
}

static void print_devices(void)
{
	size_t n = jit_device_count(), simulated = 0;
	const char *name = "devices";

	for (size_t d = 0; d < n; d++) {
		jit_device_info e = JIT_DEVICE_INFO();
		if (jit_device_get_info(d, &e, NULL) != JIT_OK)
			continue;
		if (strncmp(e.name, "sim:", 4) == 0) {
			simulated++;
			continue;
		}
		facts_row(stdout, name, "%s%s%s", e.name, *e.why_not ? " cannot be used: " : "", e.why_not);
		name = "";
	}
	facts_row(stdout, name, "%zu simulated cards, for tests (jitrun --devices)", simulated);
}

static bool is_go(const char *template_text) { return chat_template_is_go(template_text, strlen(template_text)); }

/* What is kept with the model. */
static void print_preset(const struct preset *p)
{
	const char *name = "preset";

	if (!p->path || (!p->system && !p->template && !p->messages && !p->n_set && !p->other_template))
		return;
	facts_row(stdout, name, "%s", p->path);
	if (p->system)
		facts_row(stdout, "", "system: %s", p->system);
	for (unsigned k = 0; k < p->n_set; k++)
		facts_row(stdout, "", "%s: %s", p->set[k].name, p->set[k].value);
	if (p->messages)
		facts_row(stdout, "", "messages: %zu", json_array_size(p->messages));
	if (p->template)
		facts_row(stdout, "", "template: of its own, in %s", is_go(p->template) ? "Go's language" : "Jinja");
	if (p->other_template)
		facts_row(stdout, "", "template: ollama has code instead of one; the one in the model's file is used");
}

/* null: nothing is. */
static json_t *json_preset(const struct preset *p)
{
	json_t *o = p->path ? json_object() : json_null(), *set = json_array();

	for (unsigned k = 0; k < p->n_set; k++)
		json_array_append_new(set, json_pack("{s:s, s:o}", "name", p->set[k].name, "value",
		                                     output_string(p->set[k].value)));
	if (p->path) {
		json_object_set_new(o, "path", output_string(p->path));
		json_object_set_new(o, "system", p->system ? output_string(p->system) : json_null());
		json_object_set_new(o, "template", json_boolean(p->template != NULL));
		json_object_set_new(o, "messages", p->messages ? json_incref(p->messages) : json_array());
		json_object_set(o, "settings", set);
		json_object_set_new(o, "template_language",
		                    p->template ? json_string(is_go(p->template) ? "go" : "jinja") : json_null());
	}
	json_decref(set);
	return o;
}

static void print_info(const struct info *i)
{
	const struct model_facts *f = &i->facts;
	char size[FACTS_SIZE], parameters[FACTS_SIZE];

	if (jitrun_model.name)
		facts_row(stdout, "called", "%s", jitrun_model.name);
	facts_row(stdout, "model", "%s", model_word);
	if (*f->name)
		facts_row(stdout, "name", "%s", f->name);
	facts_row(stdout, "files", "%" PRIu32 " %s file%s, %s", f->files, f->format, f->files == 1 ? "" : "s",
	          facts_size(size, f->file_bytes));
	facts_row(stdout, "architecture", "%s", *f->architecture ? f->architecture : "not named");
	facts_row(stdout, "parameters", "%s", facts_count(parameters, f->parameters));
	print_shape(i);
	print_texts(i);
	print_types(f);
	print_memory(i);
	if (i->ranks.ranks)
		jitrun_print_ranks(&i->ranks, i->available);
	print_preset(&jitrun_preset);
	if (i->why_not.code == ERROR_NONE)
		print_devices();
	facts_row(stdout, "runs here", "%s%s", i->why_not.code ? "no: " : "yes", i->why_not.text);
}

/* ---- for machines */

static void set(json_t *o, const char *name, json_t *value) { json_object_set_new(o, name, value); }
static void set_number(json_t *o, const char *name, uint64_t n) { set(o, name, json_integer((json_int_t)n)); }

static json_t *json_types(const struct model_facts *f)
{
	json_t *list = json_array();

	for (int t = 0; t < DTYPE_COUNT; t++)
		if (f->type[t].tensors)
			json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I}", "type", dtype_table[t].name,
			                                      "tensors", (json_int_t)f->type[t].tensors, "parameters",
			                                      (json_int_t)f->type[t].parameters, "bytes",
			                                      (json_int_t)f->type[t].bytes));
	return list;
}

static void set_shape(json_t *o, const struct info *i)
{
	const struct model_spec *s = &i->model.spec;

	if (!i->opened) {
		set_number(o, "layers", i->facts.layers);
		set_number(o, "context_trained", i->facts.context);
		return;
	}
	set_number(o, "layers", s->layers);
	set_number(o, "hidden", s->hidden);
	set_number(o, "embedding", model_embedding(&i->model));
	set_number(o, "ffn", s->ffn);
	set_number(o, "heads", s->heads);
	set_number(o, "kv_heads", s->kv_heads);
	set_number(o, "head_dim", s->head_dim);
	set_number(o, "vocab", s->vocab);
	set_number(o, "context_trained", s->context_train);
	set_number(o, "sliding_window", s->sliding_window);
	set(o, "tokenizer",
	    i->model.tokenizer ? json_pack("{s:s, s:I}", "kind", tokenizer_kind(i->model.tokenizer), "tokens",
	                                   (json_int_t)tokenizer_size(i->model.tokenizer))
	                       : json_null());
	set(o, "tokenizer_why_not",
	    i->model.tokenizer_error.code ? output_string(i->model.tokenizer_error.text) : json_null());
	set(o, "pooling",
	    i->model.pooling == POOLING_NOT_SAID
	            ? json_null()
	            : json_string(i->model.pooling == POOLING_MEAN   ? "mean"
	                          : i->model.pooling == POOLING_CLS  ? "cls"
	                          : i->model.pooling == POOLING_RANK ? "rank"
	                                                             : "last"));
	set(o, "chat_template", json_boolean(model_find_chat_template(&i->model, NULL) != NULL));
}

static json_t *json_session(const struct session_size *s)
{
	return !s->context ? json_null()
	                   : json_pack("{s:I, s:I, s:I, s:I}", "context", (json_int_t)s->context, "kv_bytes",
	                               (json_int_t)s->kv, "kv_q8_0_bytes", (json_int_t)s->kv_q8_0, "activation_bytes",
	                               (json_int_t)s->activations);
}

static json_t *json_memory(const struct info *i)
{
	if (!i->measured)
		return json_null();
	return json_pack("{s:I, s:I, s:o, s:o, s:o}", "weight_bytes", (json_int_t)weight_memory(i), "token_bytes",
	                 (json_int_t)i->weights.token_bytes, "default", json_session(&i->usual), "trained",
	                 json_session(&i->trained), "available_bytes",
	                 i->available == UINT64_MAX ? json_null() : json_integer((json_int_t)i->available));
}

static json_t *json_devices(void)
{
	json_t *list = json_array();
	size_t n = jit_device_count();

	for (size_t d = 0; d < n; d++) {
		jit_device_info e = JIT_DEVICE_INFO();
		if (jit_device_get_info(d, &e, NULL) == JIT_OK)
			json_array_append_new(list, json_pack("{s:o, s:o}", "name", output_string(e.name), "why_not",
			                                      *e.why_not ? output_string(e.why_not) : json_null()));
	}
	return list;
}

static void print_json(const struct info *i)
{
	const struct model_facts *f = &i->facts;
	json_t *o = json_object();

	set(o, "model", output_string(model_word));
	set(o, "called", jitrun_model.name ? output_string(jitrun_model.name) : json_null());
	set(o, "name", *f->name ? output_string(f->name) : json_null());
	set(o, "format", json_string(f->format));
	set_number(o, "files", f->files);
	set_number(o, "file_bytes", f->file_bytes);
	set(o, "architecture", output_string(f->architecture));
	set_number(o, "parameters", f->parameters);
	set_number(o, "tensors", f->tensors);
	set_shape(o, i);
	set(o, "types", json_types(f));
	set(o, "memory", json_memory(i));
	set(o, "ranks", i->ranks.ranks ? jitrun_json_ranks(&i->ranks) : json_null());
	set(o, "preset", json_preset(&jitrun_preset));
	set(o, "devices", json_devices());
	set(o, "runs", json_boolean(i->why_not.code == ERROR_NONE));
	set(o, "why_not", i->why_not.code ? output_string(i->why_not.text) : json_null());
	json_dumpf(o, stdout, output_json_flags(stdout));
	putchar('\n');
	json_decref(o);
}

int jitrun_info(int argc, char **argv)
{
	static struct info i;
	struct error err = { 0 };
	int status = EXIT_USAGE;

	if (!options_parse(&program, argc, argv) ||
	    options_about(&program, &jitrun_command.about, jit_version(), &status))
		return status;
	if (!model_word)
		return jitrun_usage("which model? Give a .gguf or .safetensors file or a model directory");
	if (!jitrun_find_model(model_word, NULL, &status))
		return status;
	if (!jitrun_use_preset(&program, &status))
		return status;
	model_word = jitrun_model.path;
	if (!look(&i, &err) || !jitrun_look_at_ranks(ranks_word, split_word, i.measured ? &i.model.spec : NULL,
	                                             i.usual.context, &i.ranks, &err)) {
		jit_error e = { 0 };
		snprintf(e.message, sizeof e.message, "%s", err.text);
		return jitrun_fail_to_open(model_word, &e);
	}
	(jitrun_command.json ? print_json : print_info)(&i);
	if (i.measured)
		weights_close(&i.weights);
	if (i.opened)
		model_close(&i.model);
	packed_close(i.packed);
	return i.why_not.code ? EXIT_NO : 0;
}
