/* programs/jitrun/jitrun_summary.c - what jitrun says at the end: statistics, the report. */
#include <stdlib.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/output.h"
#include "programs/jitrun/profile_table.h"

double jitrun_rate(uint64_t n, double seconds) { return seconds > 0 ? (double)n / seconds : 0; }

const char *jitrun_why_stopped(const struct run *r)
{
	return interrupted  ? "interrupted"
	       : r->ended   ? "end of text"
	       : r->stopped ? "stop text"
	       : r->full    ? "context full"
	                    : "length";
}

/* What a card did; of a real one only the launches are known. */
static void print_card(const struct run *r)
{
	jit_card_stats c = JIT_CARD_STATS();

	if (jit_session_get_card_stats(r->session, &c, NULL) != JIT_OK || !c.launches)
		return;
	fprintf(stderr, "card    %8llu launches, %llu barriers", (unsigned long long)c.launches,
	        (unsigned long long)c.barriers);
	if (!c.instructions) {
		fprintf(stderr, "\n");
		return;
	}
	fprintf(stderr,
	        ", %.1f MiB loaded (%.0f %% by 128 bits; %.1f MiB of weights, "
	        "%.1f of the KV cache), %.1f MiB of scalars, %llu instructions\n",
	        (double)c.load_bytes / 0x1p20, 100 * jitrun_rate(c.load128_bytes, (double)c.load_bytes),
	        (double)c.weight_bytes / 0x1p20, (double)c.cache_bytes / 0x1p20, (double)c.scalar_bytes / 0x1p20,
	        (unsigned long long)c.instructions);
}

/* The seed is told, so that a text can be had again. */
static void print_sampling(const jit_model_info *info)
{
	char how[400], line[500];

	if (opt.perplexity)
		return;
	sampling_args_describe(&opt.sampling, how, sizeof how);
	snprintf(line, sizeof line, "sampling %s (defaults: %s)", how,
	         info->has_sampling ? "the model's own" : "jitrun's");
	output_line(stderr, line, 9);
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void print_speculation(const jit_session_stats *s)
{
	if (s->drafted)
		fprintf(stderr, "drafted %8llu token%s, %llu accepted (%.1f %%); %.2f tokens a pass\n",
		        (unsigned long long)s->drafted, plural(s->drafted), (unsigned long long)s->accepted,
		        100 * (double)s->accepted / (double)s->drafted,
		        (double)s->decode_tokens / (double)s->decode_passes);
}

/* What --verbose adds, before the lines that everybody sees. */
static void print_details(const struct run *r, const jit_model_info *info, const jit_session_stats *s)
{
	fprintf(stderr, "%s\n", info->description);
	fprintf(stderr, "load    %8.3f s   %.1f MiB of weights, %d thread%s\n", info->load_seconds,
	        (double)info->weight_bytes / 0x1p20, s->threads, plural((uint64_t)s->threads));
	fprintf(stderr, "kernels %8llu; %llu generated in %.1f ms; %llu cached (%llu packed); %.1f KiB\n",
	        (unsigned long long)s->kernels, (unsigned long long)s->kernels_generated, 1e3 * s->generate_seconds,
	        (unsigned long long)s->kernels_from_cache, (unsigned long long)s->kernels_from_pack,
	        (double)s->code_bytes / 1024);
	if (s->prompt_tokens)
		fprintf(stderr, "prompt  %8llu token%s in %.3f s, %.1f tokens/s\n",
		        (unsigned long long)s->prompt_tokens, plural(s->prompt_tokens), s->prompt_seconds,
		        jitrun_rate(s->prompt_tokens, s->prompt_seconds));
	if (s->decode_tokens)
		fprintf(stderr, "decode  %8llu token%s in %.3f s, %.2f tokens/s, %.2f GB/s of weights\n",
		        (unsigned long long)s->decode_tokens, plural(s->decode_tokens), s->decode_seconds,
		        jitrun_rate(s->decode_tokens, s->decode_seconds),
		        jitrun_rate(s->decode_passes, s->decode_seconds) * (double)info->token_bytes / 1e9);
	print_speculation(s);
	jitrun_print_draft(r->session);
	print_card(r);
	print_sampling(info);
}

static void print_short(const char *before, double value, const char *unit)
{
	fprintf(stderr, "%s%.*f%s", before, value < 10 ? 2 : value < 100 ? 1 : 0, value, unit);
}

/* What was computed and how fast; of what was not, nothing is said. */
static void print_speed(const struct run *r, const jit_session_stats *s)
{
	fprintf(stderr, "%llu + %zu token%s", (unsigned long long)s->prompt_tokens, r->n_generated,
	        plural(s->prompt_tokens + r->n_generated));
	if (s->prompt_tokens)
		print_short("; prompt ", jitrun_rate(s->prompt_tokens, s->prompt_seconds), " tokens/s");
	if (s->decode_tokens)
		print_short(", decode ", jitrun_rate(s->decode_tokens, s->decode_seconds), " tokens/s");
	if (r->first_token > 0)
		print_short("; first after ", r->first_token, " s");
	fputc('\n', stderr);
}

/* Why it stopped, what would let it go on, and the seed with which it can be had again. */
static void print_end(const struct run *r, const jit_model_info *info, const jit_session_stats *s)
{
	fprintf(stderr, "stopped: %s", jitrun_why_stopped(r));
	if (r->full && !interrupted)
		fprintf(stderr,
		        info->context_trained > s->context ? " (%d tokens; --context: up to %d)" : " (%d tokens)",
		        s->context, info->context_trained);
	else if (!interrupted && !r->ended && !r->stopped)
		fprintf(stderr, " (-n %ld)", opt.n);
	if (opt.sampling.temperature > 0)
		fprintf(stderr, "; seed %ld", opt.sampling.seed);
	fputc('\n', stderr);
}

void jitrun_print_summary(const struct run *r, bool verbose)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_session_stats s = JIT_SESSION_STATS();

	jit_model_get_info(r->model, &info, NULL);
	jit_session_get_stats(r->session, &s, NULL);
	fputc('\n', stderr);
	if (verbose)
		print_details(r, &info, &s);
	print_speed(r, &s);
	print_end(r, &info, &s);
	if (s.cache_damaged)
		fprintf(stderr, "cache: %llu kernel%s damaged\n", (unsigned long long)s.cache_damaged,
		        plural(s.cache_damaged));
	if (s.cache_unreadable)
		fprintf(stderr, "cache: the system did not let %llu kernel%s be read\n",
		        (unsigned long long)s.cache_unreadable, plural(s.cache_unreadable));
	if (s.cache_store_failed)
		fprintf(stderr, "cache: %llu kernel%s not stored; --report says why\n",
		        (unsigned long long)s.cache_store_failed, plural(s.cache_store_failed));
}

int jitrun_report(const struct run *r)
{
	jit_error err = { 0 };

	if (opt.report && !opt.json) {
		char *text = jit_session_report(r->session, 0, &err);
		if (!text)
			return jitrun_fail(&err);
		bool written = fputs(text, stderr) >= 0 && fflush(stderr) == 0;
		free(text);
		if (!written)
			return 1;
	}
	if (opt.profile && !profile_table_print(stderr, r->session, &(struct profile_table){ 0 }, &err))
		return jitrun_fail(&err);
	return opt.trace && jit_session_trace(r->session, opt.trace, &err) != JIT_OK ? jitrun_fail(&err) : 0;
}
