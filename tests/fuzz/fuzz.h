/* tests/fuzz/fuzz.h - the decoders of bytes from outside, each as a function that takes any bytes and aborts when
 * something is wrong that no sanitizer sees.
 *
 * Two programs run them: tests/fuzz/fuzz_main.c with libFuzzer (--enable-fuzzers), tests/fuzz/t_fuzz_seeds.c without,
 * on the seeds and on seeds changed at random.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define FUZZ_TARGETS(X) \
	X(gguf) \
	X(safetensors) \
	X(imatrix) \
	X(npy) \
	X(formula) \
	X(table) \
	X(index) \
	X(config) \
	X(generation) \
	X(tokenizer) \
	X(chat) \
	X(json) \
	X(record) \
	X(pack) \
	X(packed) \
	X(tune) \
	X(state) \
	X(key) \
	X(ir) \
	X(object) \
	X(decode) \
	X(options) \
	X(reports) \
	X(samplers) \
	X(schema) \
	X(expression) \
	X(rules) \
	X(lark) \
	X(stop) \
	X(calls) \
	X(heads) \
	X(hub) \
	X(prompt_ids) \
	X(go) \
	X(preset) \
	X(manifest) \
	X(settings) \
	X(typed) \
	X(call) \
	X(language) \
	X(onnx) \
	X(pictures) \
	X(processor) \
	X(towers) \
	X(encoders) \
	X(graph) \
	X(adapter) \
	X(optimiser) \
	X(training)
/* clang-format on */

#define X(name) void fuzz_##name(const uint8_t *p, size_t n);
FUZZ_TARGETS(X)
#undef X

struct fuzz_target {
	const char *name;
	void (*one)(const uint8_t *p, size_t n);
};
enum fuzz_number {
#define X(name) FUZZ_##name,
	FUZZ_TARGETS(X)
#undef X
		FUZZ_COUNT
};
extern const struct fuzz_target fuzz_target[FUZZ_COUNT];
/* NULL: there is none of that name. */
const struct fuzz_target *fuzz_find(const char *name);

/* Hands the inputs to begin with to take, one by one. */
void fuzz_seeds(enum fuzz_number target, void (*take)(void *user, const uint8_t *p, size_t n), void *user);

/* The seeds of `state`, which are of a model that its file makes. */
void fuzz_state_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
/* Those of `calls`: one or two of each form. */
void fuzz_calls_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
/* Those of `hub`: lists of files, and names of models. */
void fuzz_hub_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
/* Those of `heads`: what no honest client sends. */
void fuzz_heads_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);

/* Those of what is kept beside models, and of tools. */
void fuzz_language_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_generation_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_models_seeds(enum fuzz_number target, void (*take)(void *user, const uint8_t *p, size_t n), void *user);

/* A path to these bytes, for decoders that open files: the same file for each number, in a directory of this
 * process. */
const char *fuzz_file(unsigned number, const char *name, const uint8_t *p, size_t n);
const char *fuzz_directory(void);

/* Those of `optimiser` and `training`. */
void fuzz_learned_seeds(enum fuzz_number target, void (*take)(void *user, const uint8_t *p, size_t n), void *user);

void fuzz_adapter_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_onnx_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_encoders_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_graph_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_pictures_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_processor_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_towers_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_table_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);
void fuzz_npy_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user);

#endif
