/* programs/jittrain/jittrain_main.c - jittrain's command line. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "programs/common/allocator.h"
#include "programs/common/model_names.h"
#include "programs/common/output.h"
#include "programs/jittrain/jittrain.h"
#include "runtime/host/system.h"
#include "train/new.h"

struct train_arguments train = {
	.batch = 4,
	.context = 512,
	.rank = 16,
	.warmup = -1,
	.save_every = 50,
	.epochs = 1,
	.clip = 1,
	.schedule = "cosine",
	.too_long = "refuse",
	.format = "peft"
};
jit_cancel *train_cancel;

static struct option_about about;
static const char *operand[2];
static char isa_choices[256];

static struct option_row rows[] = {
	{ .name = "Data", .kind = OPTION_GROUP },
	{ .name = "data",
	  .letter = 'd',
	  .kind = OPTION_LIST,
	  .value = "FILE",
	  .help = "what is learnt: JSON lines (.jsonl) of conversations, of prompts and completions or of texts; any "
	          "other "
	          "file is one text; may be given several times",
	  .target = &train.data },
	{ .name = "eval",
	  .letter = 'e',
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "data whose perplexity is computed before, after, and every --eval-every steps",
	  .target = &train.eval },
	{ .name = "context",
	  .letter = 'c',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "tokens of a row (512)",
	  .low = 2,
	  .high = 131072,
	  .target = &train.context },
	{ .name = "apart",
	  .kind = OPTION_FLAG,
	  .help = "put each text into a row of its own, instead of several that do not see each other",
	  .target = &train.apart },
	{ .name = "long",
	  .kind = OPTION_CHOICE,
	  .value = "refuse|cut|skip",
	  .help = "what becomes of a conversation that is longer than a row (refuse)",
	  .target = &train.too_long },
	{ .name = "chat-template",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "the chat template for conversations, instead of the model's own",
	  .target = &train.template_file },
	{ .name = "in-order",
	  .kind = OPTION_FLAG,
	  .help = "take rows in the order of the data, instead of one that --seed decides",
	  .target = &train.in_order },
	{ .name = "Steps", .kind = OPTION_GROUP },
	{ .name = "steps",
	  .letter = 'n',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "steps; 0: as many as --epochs asks for (0)",
	  .high = 1 << 30,
	  .target = &train.steps },
	{ .name = "epochs",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "how often each row is learnt from (1)",
	  .low = 0.001,
	  .high = 1e6,
	  .target = &train.epochs },
	{ .name = "batch",
	  .letter = 'b',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "rows of a step, whose gradients are added up (4)",
	  .low = 1,
	  .high = 65536,
	  .target = &train.batch },
	{ .name = "rate",
	  .letter = 'r',
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "the learning rate (1e-4; of full 1e-5)",
	  .high = 1,
	  .target = &train.rate },
	{ .name = "schedule",
	  .kind = OPTION_CHOICE,
	  .value = "cosine|linear|constant",
	  .help = "how the rate falls behind the warm-up (cosine)",
	  .target = &train.schedule },
	{ .name = "least-rate",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "the part of the rate that the schedule ends with (0)",
	  .high = 1,
	  .target = &train.least_rate },
	{ .name = "warmup",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "steps in which the rate grows; -1: 3 of 100 (-1)",
	  .low = -1,
	  .high = 1 << 30,
	  .target = &train.warmup },
	{ .name = "clip",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "the gradients' norm at most; 0: they are not clipped (1)",
	  .high = 1e12,
	  .target = &train.clip },
	{ .name = "weight-decay",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of AdamW (0)",
	  .high = 1000,
	  .target = &train.weight_decay },
	{ .name = "beta1",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of AdamW (0.9)",
	  .high = 0.9999,
	  .target = &train.beta1 },
	{ .name = "beta2",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of AdamW (0.999)",
	  .high = 0.99999,
	  .target = &train.beta2 },
	{ .name = "epsilon",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "of AdamW (1e-8)",
	  .high = 1,
	  .target = &train.epsilon },
	{ .name = "seed",
	  .letter = 's',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of the first values, the order of rows, and dropout (0)",
	  .high = 1e15,
	  .target = &train.seed },
	{ .name = "The adapter", .kind = OPTION_GROUP },
	{ .name = "rank",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "of its matrices (16)",
	  .low = 1,
	  .high = 4096,
	  .target = &train.rank },
	{ .name = "alpha",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "its scale is alpha / rank; 0: twice the rank (0)",
	  .high = 1e6,
	  .target = &train.alpha },
	{ .name = "targets",
	  .kind = OPTION_TEXT,
	  .value = "NAMES",
	  .help = "which matrices get one, with commas between "
	          "(q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj,in_proj_qkv,in_proj_z,in_proj,x_proj,dt_"
	          "proj,"
	          "out_proj)",
	  .target = &train.targets },
	{ .name = "init",
	  .kind = OPTION_FILE,
	  .value = "DIR",
	  .help = "begin with the adapter of that folder, as peft or jittrain wrote it, of the same rank and targets",
	  .target = &train.init },
	{ .name = "rslora", .kind = OPTION_FLAG, .help = "the scale is alpha / sqrt(rank)", .target = &train.rslora },
	{ .name = "dora",
	  .kind = OPTION_FLAG,
	  .help = "rows of matrices have a magnitude of their own (DoRA)",
	  .target = &train.dora },
	{ .name = "dropout",
	  .kind = OPTION_FLOAT,
	  .value = "X",
	  .help = "the part of what adapters read that a step leaves out (0)",
	  .high = 0.99,
	  .target = &train.dropout },
	{ .name = "What is written", .kind = OPTION_GROUP },
	{ .name = "out",
	  .letter = 'o',
	  .kind = OPTION_FILE,
	  .value = "DIR",
	  .help = "the folder for the adapter or model, the state, and the losses",
	  .target = &train.out },
	{ .name = "format",
	  .letter = 'f',
	  .kind = OPTION_CHOICE,
	  .value = "peft|gguf",
	  .help = "the adapter as peft has it, or as adapter.gguf (peft)",
	  .target = &train.format },
	{ .name = "save-every",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "write the state every N steps, from which --resume goes on; 0: at the end alone (50)",
	  .high = 1 << 30,
	  .target = &train.save_every },
	{ .name = "eval-every",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "compute the perplexity of --eval every N steps; 0: before and after alone (0)",
	  .high = 1 << 30,
	  .target = &train.eval_every },
	{ .name = "resume",
	  .kind = OPTION_FLAG,
	  .help = "go on from the state in --out, with the same bytes in the end; without one begin",
	  .target = &train.resume },
	{ .name = "no-plot", .kind = OPTION_FLAG, .help = "draw no losses.png", .target = &train.no_plot },
	{ .name = "json", .kind = OPTION_FLAG, .help = "print a JSON object for each event", .target = &train.json },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = OPTION_FLAG,
	  .help = "say nothing but errors",
	  .target = &train.quiet },
	{ .name = "Where", .kind = OPTION_GROUP },
	{ .name = "keep-activations",
	  .kind = OPTION_FLAG,
	  .help = "keep what gradients need, instead of computing each layer twice: more memory, and the same bytes",
	  .target = &train.keep },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "threads; 0: one for each core that may be used; the bytes are the same (0)",
	  .high = 1024,
	  .target = &train.threads },
	{ .name = "device",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "where it is computed, as jitrun --device has it (cpu)",
	  .target = &train.device },
	{ .name = "isa",
	  .kind = OPTION_CHOICE,
	  .value = isa_choices,
	  .help = "instruction set to generate for (the best this CPU has)",
	  .target = &train.isa },
	{ .name = "cache",
	  .kind = OPTION_FILE,
	  .value = "PATH",
	  .help = "where generated code is kept, as jitrun --cache has it",
	  .target = &train.cache },
	{ .name = "no-cache", .kind = OPTION_FLAG, .help = "keep no code", .target = &train.no_cache },
	OPTION_ABOUT(about),
};

static const struct option_command commands[] = {
	{ "lora", "MODEL", "train an adapter for MODEL, whose own weights stay as they are" },
	{ "full", "MODEL", "train all weights of MODEL, a folder of safetensors" },
	{ "new", "FOLDER", "make a model of random weights from FOLDER's config.json and tokenizer" },
};

static const struct option_foreign foreign[] = {
	OPTION_AS("learning-rate lr", "rate"),
	OPTION_AS("num-epochs num-train-epochs", "epochs"),
	OPTION_AS("lora-rank lora-r", "rank"),
	OPTION_AS("lora-alpha", "alpha"),
	OPTION_AS("lora-modules target-modules", "targets"),
	OPTION_AS("max-length max-seq-length ctx-size", "context"),
	OPTION_TOLD("assistant-loss-only", OPTION_UNUSED, "of conversations only the assistant's turns count anyway"),
};

static struct option_program program = {
	.name = "jittrain",
	.usage = "lora MODEL --data FILE --out DIR [options]",
	.purpose = "train an adapter for a model, or all of its weights",
	.description =
		"jittrain learns from conversations or texts. It writes an adapter (LoRA) that other programs read, or "
		"a "
		"model. The same data, options and seed give the same bytes for any number of threads and instruction "
		"set, and when the training was interrupted between.\n"
		"Of conversations only the assistant's turns count; the model's own chat template writes them. Several "
		"short texts share a row, and do not see each other.",
	.examples = "jittrain lora Qwen3-0.6B --data chat.jsonl --out adapter\n"
		    "jittrain lora model.gguf --data story.txt --eval other.txt --out adapter --steps 100 --rate 1e-3\n"
		    "jittrain lora model.gguf --data story.txt --out adapter --resume\n"
		    "jittrain full model --data text.jsonl --out tuned --epochs 2\n"
		    "jittrain new form --out model --seed 1",
	.exit_status = ".TP\n0\nDone.\n.TP\n1\nSomething failed.\n.TP\n2\nThe command line is wrong.\n.TP\n130\n"
		       "Interrupted; the state was written, and --resume goes on.",
	.environment = ".TP\n.B JITRUN_CACHE\nWhere generated code is kept.\n.TP\n.B COLUMNS\nColumns of the terminal, "
		       "for help.",
	.files =
		".TP\n.I DIR/adapter_config.json\\fR, \\fIDIR/adapter_model.safetensors\nThe adapter, as peft has it.\n"
		".TP\n.I DIR/adapter.gguf\nThe adapter with --format gguf.\n.TP\n.I DIR/model.safetensors\nOf full: "
		"the "
		"weights, beside the model's other files.\n.TP\n.I DIR/losses.csv\\fR, \\fIDIR/losses.png\nThe loss of "
		"each step, and its curve, where gnuplot is installed.\n.TP\n.I DIR/state\\fR, \\fIDIR/run.json\nWhat "
		"--resume goes on from.",
	.see_also = ".BR jitrun (1),\n.BR jitserve (1)",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.command = commands,
	.n_commands = sizeof commands / sizeof commands[0],
	.foreign = foreign,
	.n_foreign = sizeof foreign / sizeof foreign[0],
	.operand_name = "MODEL",
	.quiet = &train.quiet,
	.operand = operand,
	.max_operands = 2
};

int train_fail(const char *sentence)
{
	fprintf(stderr, "jittrain: %s.\n", sentence);
	return TRAIN_FAILED;
}

static int usage(const char *text)
{
	fprintf(stderr, "jittrain: %s\nTry 'jittrain --help'.\n", text);
	return TRAIN_USAGE;
}

static void on_interrupt(int signal)
{
	(void)signal;
	/* It may be called from signal handlers. NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c) */
	jit_cancel_set(train_cancel, 1);
}

static int make_new(void)
{
	struct error err = { 0 };
	uint64_t weights;

	if (!train.model)
		return usage("a model of which form? Give a folder with its config.json");
	if (!train.out)
		return usage("where to? Give --out DIR");
	if (!train_new(train.model, train.out, (uint64_t)train.seed, &weights, &err))
		return train_fail(err.text);
	report_new(train.out, weights);
	return TRAIN_DONE;
}

static int begin(int argc, char **argv)
{
	struct error err = { 0 };
	int status;

	target_list(isa_choices, sizeof isa_choices, TARGETS_OF_CPUS, "", "|");
	if (!options_parse(&program, argc, argv))
		return TRAIN_USAGE;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	train.command = program.n_operands > 0 ? operand[0] : "";
	train.model = program.n_operands > 1 ? operand[1] : NULL;
	if (strcmp(train.command, "new") == 0)
		return make_new();
	if (strcmp(train.command, "lora") != 0 && strcmp(train.command, "full") != 0)
		return usage("what is to be done? Give lora, full or new, and a model");
	if (!train.model)
		return usage("which model? Give its path or name");
	if (!train.data.n)
		return usage("what is to be learnt? Give --data FILE");
	if (!train.out)
		return usage("where to? Give --out DIR");
	if (!model_path(&train.model, &err))
		return train_fail(err.text);
	train_cancel = jit_cancel_open(NULL);
	signal(SIGINT, on_interrupt);
	signal(SIGTERM, on_interrupt);
	status = train_run();
	jit_cancel_close(train_cancel);
	return status;
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	return output_end("jittrain", begin(argc, argv), TRAIN_FAILED);
}
