/* programs/jitserve/jitserve_settings.c - what jitserve is told beside its command line: a file of options, variables,
 * and which models these name. */
#include <stdlib.h>
#include <string.h>

#include "programs/jitserve/jitserve.h"
#include "programs/common/run_pull.h"

/* What llama-server's documentation calls them. */
static const struct option_variable variables[] = {
	{ "LLAMA_ARG_ALIAS", "alias", false },
	{ "LLAMA_ARG_API_KEY_FILE", "api-key-file", false },
	{ "LLAMA_API_KEY", "api-key", false },
	{ "LLAMA_ARG_CACHE_TYPE_K", "kv-type", false },
	{ "LLAMA_ARG_CHAT_TEMPLATE_FILE", "template", false },
	{ "LLAMA_ARG_CORS_ORIGINS", "cors-origin", false },
	{ "LLAMA_ARG_CTX_SIZE", "context", false },
	{ "LLAMA_ARG_DEVICE", "device", false },
	{ "LLAMA_ARG_ENDPOINT_SLOTS", "no-slots", true },
	{ "LLAMA_ARG_HF_FILE", "hf-file", false },
	{ "LLAMA_ARG_HF_REPO", "hf-repo", false },
	{ "LLAMA_ARG_HOST", "host", false },
	{ "LLAMA_ARG_MODEL", "model", false },
	{ "LLAMA_ARG_MODELS_DIR", "models-dir", false },
	{ "LLAMA_ARG_MODELS_MAX", "models-max", false },
	{ "LLAMA_ARG_N_PARALLEL", "parallel", false },
	{ "LLAMA_ARG_N_PREDICT", "n-predict", false },
	{ "LLAMA_ARG_OFFLINE", "offline", false },
	{ "LLAMA_ARG_POOLING", "pooling", false },
	{ "LLAMA_ARG_PORT", "port", false },
	{ "LLAMA_ARG_REASONING", "reasoning", false },
	{ "LLAMA_ARG_SSE_PING_INTERVAL", "sse-ping-interval", false },
	{ "LLAMA_ARG_SSL_CERT_FILE", "tls-cert", false },
	{ "LLAMA_ARG_SSL_KEY_FILE", "tls-key", false },
	{ "LLAMA_ARG_THINK", "reasoning-format", false },
	{ "LLAMA_ARG_THINK_BUDGET", "reasoning-budget", false },
	{ "LLAMA_ARG_THINK_BUDGET_MESSAGE", "reasoning-budget-message", false },
	{ "LLAMA_ARG_THREADS", "threads", false },
	{ "LLAMA_ARG_TIMEOUT", "read-timeout", false },
	{ "LLAMA_ARG_TOP_K", "top-k", false },
	{ "LLAMA_ARG_UI", "no-page", true },
	{ "VLLM_API_KEY", "api-key", false },
};

static bool was_given(const struct option_program *p, const char *name)
{
	const struct option_row *o = options_find(p, name, strlen(name));

	return o && p->given[o - p->row];
}

/* Models of the command line count for more than those of a file, however they are named. */
static void mark_model(const struct option_program *p)
{
	static const char *const names[] = { "model", "hf-repo", "models-dir" };
	bool named = p->n_operands > 0;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		named |= was_given(p, names[i]);
	for (size_t i = 0; named && i < sizeof names / sizeof *names; i++) {
		const struct option_row *o = options_find(p, names[i], strlen(names[i]));
		if (o)
			p->given[o - p->row] = true;
	}
}

bool serve_settings(struct option_program *p)
{
	const char *file = getenv("JITRUN_CONFIG");
	const struct option_settings s = {
		.file = serve.config    ? serve.config
		        : file && *file ? file
		                        : NULL,
		.prefix = "JITRUN_",
		.never = "help help-all version print-man print-completion config replay probe",
		.variable = variables,
		.n_variables = sizeof variables / sizeof *variables,
	};

	mark_model(p);
	return options_settings(p, &s);
}

/* What -hf asks for. 0, or the exit status. */
static int fetch(void)
{
	static char *path; /* for as long as the program runs */

	if (!serve.hf_repo)
		return serve.hf_file ? serve_usage("--hf-file goes with --hf-repo") : 0;
	if (serve.n_models == SERVE_MAX_MODELS)
		return serve_usage("--hf-repo is one model too many");
	if (serve.offline)
		setenv("HF_HUB_OFFLINE", "1", 1);
	int status = run_pull_for("jitserve", serve.hf_repo, serve.hf_file, serve.quiet, &path);
	if (path)
		serve.model[serve.n_models++] = path;
	return status;
}

int serve_find_models(const struct option_program *p)
{
	serve.n_models = p->n_operands;
	if (serve.more_models.n > SERVE_MAX_MODELS - serve.n_models)
		return serve_usage("--model is given too often");
	for (int i = 0; i < serve.more_models.n; i++)
		serve.model[serve.n_models++] = serve.more_models.value[i];
	return fetch();
}
