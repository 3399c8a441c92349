/* programs/jitquant/jitquant_options.c - jitquant's command line. */
#include <string.h>

#include "programs/jitquant/jitquant.h"
#include "programs/common/model_names.h"
#include "runtime/host/pool.h"
#include "include/jitrun.h"

struct quant_arguments quant;

static struct option_about about;
static const char *operand[3];

static const struct option_row rows[] = {
	{ .name = "What is made", .kind = OPTION_GROUP },
	{ .name = "type",
	  .letter = 'q',
	  .kind = OPTION_OPEN_CHOICE,
	  .value = "f32|f16|bf16|q8_0|q6_k|q5_k_m|q5_k_s|q5_1|q5_0|q4_k_m|q4_k_s|q4_1|q4_0|iq4_nl|iq4_xs|mxfp4|q3_k_l|"
	           "q3_k_m|q3_k_s|q2_k|q2_k_s|iq5_ks|iq4_ks|iq2_ks",
	  .help = "the type of the weights, or a mixture of types by its usual name; may also stand behind OUT",
	  .target = &quant.type },
	{ .name = "imatrix",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "weigh errors by an importance matrix, as jitrun --imatrix-out and llama.cpp write it",
	  .target = &quant.imatrix },
	{ .name = "lora",
	  .kind = OPTION_LIST,
	  .value = "FILE[:SCALE]",
	  .help = "add an adapter (LoRA, DoRA) to the weights first, times SCALE (1): a folder of PEFT's, or a GGUF "
	          "file; "
	          "several times: one after the other",
	  .target = &quant.lora },
	{ .name = "pure",
	  .kind = OPTION_FLAG,
	  .help = "give every matrix the mixture's main type",
	  .target = &quant.pure },
	{ .name = "output-type",
	  .kind = OPTION_TEXT,
	  .value = "TYPE",
	  .help = "the type of output.weight, which logits are computed from, such as q8_0",
	  .target = &quant.output_type },
	{ .name = "token-embedding-type",
	  .kind = OPTION_TEXT,
	  .value = "TYPE",
	  .help = "the type of token_embd.weight",
	  .target = &quant.embedding_type },
	{ .name = "tensor-type",
	  .kind = OPTION_LIST,
	  .value = "PATTERN=TYPE",
	  .help = "the type of the matrices that PATTERN names: a part of their name, or with * ? [ the whole of it, "
	          "as "
	          "a shell does; may be given several times, the first that fits counts",
	  .target = &quant.tensor_types },
	{ .name = "How", .kind = OPTION_GROUP },
	{ .name = "dry-run",
	  .kind = OPTION_FLAG,
	  .help = "write nothing; print each tensor's type and size, and the sum",
	  .target = &quant.dry_run },
	{ .name = "threads",
	  .letter = 't',
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "threads; 0: one for each core that may be used; the file is the same (0)",
	  .high = POOL_MAX_THREADS,
	  .target = &quant.threads },
	{ .name = "quiet", .kind = OPTION_FLAG, .help = "no progress bar and no summary", .target = &quant.quiet },
	OPTION_ABOUT(about),
};

static const struct option_foreign foreign[] = {
	OPTION_AS("output-tensor-type", "output-type"),
	OPTION_AS("nthread n-threads", "threads"),
	OPTION_TOLD("leave-output-tensor", OPTION_REFUSED,
	            "give --output-type with the type that the model has, such as f16"),
	OPTION_TOLD("keep-split", OPTION_REFUSED, "jitquant writes one file"),
	OPTION_TOLD("allow-requantize", OPTION_REFUSED,
	            "jitquant reads F32, F16 and BF16; what was quantised once loses more"),
	OPTION_TOLD("include-weights exclude-weights override-kv prune-layers", OPTION_REFUSED,
	            "jitquant changes no metadata and leaves out nothing"),
};

static struct option_program program = {
	.name = "jitquant",
	.usage = "IN.gguf OUT.gguf --type TYPE [options]",
	.purpose = "make a model smaller: quantise the weights of a GGUF file",
	.description =
		"jitquant reads a GGUF file with weights in F32, F16 or BF16 and writes another, whose matrices "
		"are of the "
		"type asked for. Norms, biases and other small tensors stay as they are, and so does what the "
		"file says "
		"of the model. Where the rows of a matrix are no multiple of a type's block, it gets the "
		"nearest type that "
		"fits. The same model, type and importance matrix give the same file, on every machine and with "
		"any number "
		"of threads. The file appears under its name when it is complete. What is in it, for each type, "
		"docs/quantisation.md says; jitrun MODEL --perplexity FILE measures what a type costs.",
	.examples = "jitquant model-bf16.gguf model.gguf --type q4_k_m\n"
		    "jitquant model-bf16.gguf styled.gguf --type bf16 --lora adapter\n"
		    "jitquant model-bf16.gguf --type q4_k_m --dry-run\n"
		    "jitrun model-bf16.gguf --perplexity text.txt --imatrix-out model.imatrix\n"
		    "jitquant model-bf16.gguf model.gguf --type iq4_xs --imatrix model.imatrix\n"
		    "jitquant model-bf16.gguf model.gguf --type q4_k_m --tensor-type 'ffn_down=q6_k'",
	.exit_status = ".TP\n0\nDone.\n.TP\n1\nSomething failed, and nothing was written.\n.TP\n2\nThe command line is "
		       "wrong.\n.TP\n130\nInterrupted, and nothing was written.",
	.environment = ".TP\n.B COLUMNS\nColumns of the terminal, for help.",
	.files = ".TP\n.I .OUT\\-*.tmp\nWhat is written so far, in the directory of OUT; gone when the program ends.",
	.see_also = ".BR jitrun (1),\n.BR jitwarm (1),\n.BR jitbench (1)",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0],
	.foreign = foreign,
	.n_foreign = sizeof foreign / sizeof foreign[0],
	.quiet = &quant.quiet,
	.operand = operand,
	.max_operands = 3
};

int quant_begin(int argc, char **argv)
{
	int status;

	if (!options_parse(&program, argc, argv))
		return QUANT_USAGE;
	if (options_about(&program, &about, jit_version(), &status))
		return status;
	quant.in = program.n_operands > 0 ? operand[0] : NULL;
	quant.out = program.n_operands > 1 ? operand[1] : NULL;
	if (program.n_operands > 2 && quant.type)
		return quant_usage("the type is given twice; expected IN OUT --type TYPE");
	if (program.n_operands > 2)
		quant.type = operand[2];
	if (!quant.in)
		return quant_usage("which model? Give a GGUF file");
	if (!quant.type)
		return quant_usage("which type? Give --type, such as q4_k_m");
	if (!quant.out && !quant.dry_run)
		return quant_usage("where to? Give the file to write, or --dry-run");
	struct error err = { 0 };
	if (!model_path(&quant.in, &err))
		return quant_fail(&err);
	return quant_run();
}
