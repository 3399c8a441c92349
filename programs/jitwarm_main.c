/* programs/jitwarm_main.c - the jitwarm program: makes the code objects a model needs before it runs, and looks after
 * those that are kept.
 *
 * Owns: the options, the choice of the command, and what models and targets an invocation is about. Only headers are
 * read, never weights.
 */
#include <stdlib.h>
#include <string.h>

#include "programs/synth.h"
#include "kernels-templates/templates.h"
#include "loaders/model_load.h"
#include "programs/allocator.h"
#include "runtime/jitrun.h"
#include "programs/jitwarm.h"
#include "runtime/session.h"
#include "runtime/host/system.h"

struct warm_arguments warm = {
	.weights = "q8_0", .activations = "auto", .numerics = "exact", .kv_type = "any", .limit = -1
};

static struct option_about about;
static char target_choices[64 + TARGET_LIST_MAX] = "native";

static const struct option_row rows[] = {
	{ "Models", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "shape", 0, OPTION_LIST, "SHAPE",
	  "instead of a file, or besides: a model of this shape, " SHAPE_NAMES
	  " or sizes such as hidden=1024,layers=28,heads=16,kv_heads=8,"
	  "head_dim=128,ffn=3072,vocab=151936,arch=qwen3,tied=1; may be given several times",
	  0, 0, &warm.shapes },
	{ "weights", 0, OPTION_CHOICE, MIXTURE_NAMES, "the format of the weights of --shape (q8_0)", 0, 0,
	  &warm.weights },
	{ "What for", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "target", 't', OPTION_LIST, target_choices,
	  "make code for this processor, which need not be this machine's, x86 and rdna for all of those; may be given "
	  "several times (native)",
	  0, 0, &warm.targets },
	{ "activations", 0, OPTION_CHOICE, "auto|f32|any",
	  "what sessions will be opened with: auto: int8 blocks against quantised weights; f32; or either (auto)", 0, 0,
	  &warm.activations },
	{ "numerics", 0, OPTION_CHOICE, "exact|bounded|any", "numerics class of those sessions (exact)", 0, 0,
	  &warm.numerics },
	{ "kv-type", 0, OPTION_CHOICE, "f16|f32|q8_0|any", "type of the KV cache in those sessions (any)", 0, 0,
	  &warm.kv_type },
	{ "batch", 0, OPTION_INT, "N",
	  "most prompt tokens those sessions compute in one pass; 0: the most there can be (0)", 0, SESSION_MAX_TOKENS,
	  &warm.batch },
	{ "tuned", 0, OPTION_FLAG, 0,
	  "also the schedules that this processor was found to like, from the cache; a pack then depends on where it "
	  "is made",
	  0, 0, &warm.tuned },
	{ "seconds", 0, OPTION_INT, "N", "how long tune searches, about; 0: until nothing is found any more (0)", 0,
	  3600, &warm.seconds },
	{ "Where", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "out", 'o', OPTION_FILE, "PATH",
	  "write a pack when PATH ends in .jkp, which is the same file wherever and whenever it is made; otherwise add "
	  "to the directory PATH",
	  0, 0, &warm.out },
	{ "cache", 0, OPTION_FILE, "PATH",
	  "the cache looked at: directories and packs with colons between ($JITRUN_CACHE, or $XDG_CACHE_HOME/jitrun)",
	  0, 0, &warm.cache },
	{ "limit", 0, OPTION_INT, "MIB", "what gc leaves in a directory, the most recently used (256)", 0, 1 << 30,
	  &warm.limit },
	{ "remove", 0, OPTION_FLAG, 0, "verify takes what is damaged or differs out of directories", 0, 0,
	  &warm.remove },
	{ "unverified", 0, OPTION_FLAG, 0,
	  "import takes a pack's code as it is, that of other versions too, without making it anew to compare; whoever "
	  "wrote the pack then decides what is executed",
	  0, 0, &warm.unverified },
	{ "Output", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "json", 0, OPTION_FLAG, 0, "print one JSON line instead of text", 0, 0, &warm.json },
	{ "quiet", 'q', OPTION_FLAG, 0, "no progress bar and no summary", 0, 0, &warm.quiet },
	OPTION_ABOUT(about),
};

static const struct option_command commands[] = {
	{ "", "MODEL... --out PATH",
	  "make every code object the models can need, for the targets asked for; only the models' headers are read" },
	{ "list", "[CACHE]", "print what is kept: keys, sizes, where" },
	{ "show", "KEY",
	  "print a kernel: sizes, registers, its IR as comments, and its bytes as an assembler accepts them; says "
	  "whether what is kept is the same" },
	{ "verify", "[CACHE]", "make every code object kept anew and compare the bytes" },
	{ "gc", "[CACHE]", "remove what this version cannot use, and the least recently used beyond --limit" },
	{ "export", "FILE.jkp", "write what is kept to a pack, for the targets asked for (all)" },
	{ "import", "FILE.jkp",
	  "make every code object of a pack anew, compare, and add them to the first directory that can be written; "
	  "nothing is added when one differs" },
	{ "explain", "MODEL...",
	  "print every kernel the models can need, whether it is kept, and if not, what the nearest one kept has "
	  "instead" },
	{ "tune", "MODEL",
	  "run the model to find out which schedules of its kernels this processor likes, for decoding, guesses and "
	  "prompts, all anew and among more of them than sessions try in passing; keep that in the cache" },
};

static int (*const functions[])(void) = { warm_make,   warm_list,   warm_show,    warm_verify, warm_gc,
	                                  warm_export, warm_import, warm_explain, warm_tune };
enum { N_COMMANDS = sizeof commands / sizeof *commands };
_Static_assert(sizeof functions / sizeof *functions == N_COMMANDS, "a function for each command");

/* How many operands each command takes. */
static const struct {
	int least, most;
	const char *says;
} operands[N_COMMANDS] = {
	{ 0, WARM_MAX_OPERANDS, "" },
	{ 0, 1, "list takes one cache at most" },
	{ 1, 1, "show takes one key" },
	{ 0, 1, "verify takes one cache at most" },
	{ 0, 1, "gc takes one cache at most" },
	{ 1, 1, "export takes the pack to write" },
	{ 1, 1, "import takes the pack to read" },
	{ 0, WARM_MAX_OPERANDS, "" },
	{ 1, 1, "tune takes one model" },
};

int warm_fail(const struct error *e)
{
	fprintf(stderr, "jitwarm: %s.\n", e->text);
	return WARM_FAILED;
}

int warm_usage(const char *text)
{
	fprintf(stderr, "jitwarm: %s\nTry 'jitwarm --help'.\n", text);
	return WARM_USAGE;
}

/* ---- targets */

static void add_target(const struct target *out[TARGET_COUNT], int *n, const struct target *t)
{
	for (int i = 0; i < *n; i++)
		if (out[i] == t)
			return;
	out[(*n)++] = t;
}

int warm_targets(const struct target *out[TARGET_COUNT], struct error *err)
{
	int n = 0;

	for (int i = 0; i < warm.targets.n || (i == 0 && warm.targets.n == 0); i++) {
		const char *name = warm.targets.n ? warm.targets.value[i] : "native";
		const struct backend *all = backend_find(name);
		for (int k = TARGET_NONE + 1; all && k < TARGET_COUNT; k++)
			if (target_table[k].backend == all)
				add_target(out, &n, &target_table[k]);
		if (all)
			continue;
		const struct target *t = strcmp(name, "native") == 0 ? target_native(err) : target_find(name);
		if (!t)
			return 0; /* only of native: the others were choices of the option */
		add_target(out, &n, t);
	}
	return n;
}

/* ---- models */

static bool visit_file(const char *path, bool (*visit)(const struct model *, const char *, void *, struct error *),
                       void *user, struct error *err)
{
	struct model m;

	if (!model_open(&m, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err))
		return false;
	bool ok = visit(&m, path, user, err);
	model_close(&m);
	return ok;
}

static bool visit_shape(const char *text, bool (*visit)(const struct model *, const char *, void *, struct error *),
                        void *user, struct error *err)
{
	struct shape shape;
	struct model m;
	size_t n;

	if (!shape_parse(&shape, text, err))
		return false;
	uint8_t *header = synth_header(&n, &shape, mixture_find(warm.weights), err);
	bool ok = header && model_open_memory(&m, header, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
	if (ok) {
		ok = visit(&m, text, user, err);
		model_close(&m);
	}
	free(header);
	return ok;
}

int warm_model_count(void) { return warm.n_operands + warm.shapes.n; }

bool warm_each_model(bool (*visit)(const struct model *, const char *, void *, struct error *), void *user,
                     struct error *err)
{
	for (int i = 0; i < warm.n_operands; i++)
		if (!visit_file(warm.operand[i], visit, user, err))
			return false;
	for (int i = 0; i < warm.shapes.n; i++)
		if (!visit_shape(warm.shapes.value[i], visit, user, err))
			return false;
	return true;
}

bool warm_model_keys(const struct model *m, const struct target *t, struct key **keys, size_t *n, struct error *err)
{
	struct warm_options o = { .target = t, .tokens = (uint32_t)warm.batch };

	o.activations = strcmp(warm.activations, "any") == 0   ? WARM_ANY_ACTIVATIONS
	                : strcmp(warm.activations, "f32") == 0 ? WARM_F32_ACTIVATIONS
	                                                       : WARM_INT8_ACTIVATIONS;
	/* classes differ where there are products of matrices */
	o.numerics = !t->has_mma || strcmp(warm.numerics, "exact") == 0 ? WARM_EXACT
	             : strcmp(warm.numerics, "any") == 0                ? WARM_ANY_NUMERICS
	                                                                : WARM_BOUNDED;
	o.kv = strcmp(warm.kv_type, "any") == 0    ? WARM_KV_ANY
	       : strcmp(warm.kv_type, "f32") == 0  ? WARM_KV_F32
	       : strcmp(warm.kv_type, "q8_0") == 0 ? WARM_KV_Q8_0
	                                           : WARM_KV_F16;
	if (warm.tuned && t->backend->host_runs && !(o.tune = warm_open_tune(true, err)))
		return false;
	bool ok = warm_keys(&m->spec, &o, keys, n, err);
	tune_close(o.tune);
	return ok;
}

/* ---- the rest */

struct cache *warm_open_cache(bool read_only, struct error *err)
{
	char path[4096];
	const struct cache_options o = { .read_only = read_only };

	if (warm.cache)
		return cache_open(warm.cache, &o, err);
	if (!cache_default_path(path, sizeof path)) {
		error_set(err, ERROR_ARGUMENT,
		          "there is no cache to look at: --cache is not given, $JITRUN_CACHE is not set, and neither "
		          "$XDG_CACHE_HOME nor $HOME is an absolute path");
		return NULL;
	}
	return cache_open(path, &o, err);
}

static int run_command(void)
{
	int c = 0;

	for (int i = 1; i < N_COMMANDS && warm.n_operands; i++)
		if (strcmp(warm.operand[0], commands[i].name) == 0)
			c = i;
	if (c) {
		warm.n_operands--;
		memmove(warm.operand, warm.operand + 1, (size_t)warm.n_operands * sizeof *warm.operand);
	}
	if (warm.n_operands < operands[c].least || warm.n_operands > operands[c].most)
		return warm_usage(operands[c].says);
	if (functions[c] == warm_list || functions[c] == warm_verify || functions[c] == warm_gc)
		warm.cache = warm.n_operands ? warm.operand[0] : warm.cache;
	return functions[c]();
}

static int run(int argc, char **argv)
{
	struct option_program program = {
		.name = "jitwarm",
		.usage = "[COMMAND] [options]",
		.purpose = "make the machine code a model needs before it runs",
		.description =
			"jitwarm makes every code object that jitrun can need for a model, for this machine or for "
			"another, from the model's header alone: for every length of prompt, "
			"guesses included. It writes them to a cache directory or to a pack, one file that is the same "
			"wherever and whenever it is made. With them, jitrun "
			"--sealed runs without generating any code. jitrun executes what it finds in a cache or a "
			"pack: the checksums find damage, not forgery, and who may write the files decides what is "
			"executed, so files of anybody but you and root, and files that others may write, are refused. "
			"verify, and import unless told otherwise, make every code object anew and compare, "
			"which finds forgery as well. Exit status: 0 done, 1 something failed, 2 a wrong command line, "
			"3 the answer is no: something is missing, "
			"damaged or differs.",
		.examples = "jitwarm model.gguf --target x86 --out kernels.jkp\njitrun model.gguf --cache kernels.jkp "
			    "--sealed --prompt \"Once upon a time\"\n"
			    "jitwarm --shape qwen3-0.6b --weights q4_k_m --out kernels.jkp\njitwarm explain model.gguf "
			    "--cache kernels.jkp\njitwarm verify kernels.jkp",
		.row = rows,
		.n_rows = sizeof rows / sizeof rows[0],
		.command = commands,
		.n_commands = N_COMMANDS,
		.operand = warm.operand,
		.max_operands = WARM_MAX_OPERANDS
	};

	allocator_begin();
	system_file_limit_is_error();
	size_t at = strlen(target_choices);
	for (size_t i = 0; i < backend_count; i++)
		at += (size_t)snprintf(target_choices + at, sizeof target_choices - at, "|%s", backend_table[i]->name);
	target_choices[at++] = '|';
	target_list(target_choices + at, sizeof target_choices - at, TARGETS_ALL, "", "|");
	if (!options_parse(&program, argc, argv))
		return WARM_USAGE;
	warm.n_operands = program.n_operands;
	int status;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	return run_command();
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("jitwarm", run(argc, argv), WARM_FAILED);
}
