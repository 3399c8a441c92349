/* runtime/device/vulkan/vulkan_code.c - modules of kernels as a driver of Vulkan takes them, and its pipelines of them.
 *
 * Owns: which words are left out for a driver that does not have them (modes of floats that it keeps or not, as
 * vulkan_check.c finds out), the choices of a pipeline, and the device's list of pipelines.
 */
#include <stdlib.h>
#include <string.h>

#include "jit/spirv/opcodes.h"
#include "runtime/device/vulkan/vulkan.h"

/* ---- modules */

static bool has_mode(const struct vulkan_facts *is, uint32_t mode, uint32_t bits)
{
	const bool *has = mode == SPV_MODE_DenormPreserve             ? is->preserves_denorms
	                  : mode == SPV_MODE_SignedZeroInfNanPreserve ? is->preserves_nan
	                  : mode == SPV_MODE_RoundingModeRTE          ? is->rounds_to_even
	                                                              : NULL;

	return !has || has[bits == 64];
}

static bool has_either(const struct vulkan_facts *is, uint32_t mode)
{
	return has_mode(is, mode, 32) || has_mode(is, mode, 64);
}

/* Whether the driver takes the instruction of n words. */
static bool takes(const struct vulkan_facts *is, const uint32_t *word, size_t n)
{
	const uint32_t op = word[0] & 0xffff;

	if (op == SPV_ExecutionMode && n == 4)
		return has_mode(is, word[2], word[3]);
	if (op != SPV_Capability)
		return true;
	return word[1] == SPV_CAP_DenormPreserve             ? has_either(is, SPV_MODE_DenormPreserve)
	       : word[1] == SPV_CAP_SignedZeroInfNanPreserve ? has_either(is, SPV_MODE_SignedZeroInfNanPreserve)
	       : word[1] == SPV_CAP_RoundingModeRTE          ? has_either(is, SPV_MODE_RoundingModeRTE)
	                                                     : true;
}

/* Copies what the driver takes. Returns the words; 0: this is no module. */
static size_t fit_module(const struct vulkan_facts *is, uint32_t *out, const uint32_t *word, size_t n)
{
	size_t kept = SPV_HEADER_WORDS;

	if (n < SPV_HEADER_WORDS || word[0] != SPV_MAGIC)
		return 0;
	memcpy(out, word, kept * sizeof *word);
	for (size_t at = SPV_HEADER_WORDS; at < n;) {
		const size_t words = word[at] >> 16;
		if (!words || words > n - at)
			return 0;
		if (takes(is, word + at, words)) {
			memcpy(out + kept, word + at, words * sizeof *word);
			kept += words;
		}
		at += words;
	}
	return kept;
}

static bool make_module(struct vulkan *d, const struct object *o, uint64_t *out, struct error *err)
{
	uint32_t *const word = malloc(o->code_bytes + sizeof *word), *const fit = malloc(o->code_bytes + sizeof *fit);
	bool ok = word && fit;

	if (!ok) {
		error_set(err, ERROR_MEMORY, "no memory for a kernel's module");
	} else {
		memcpy(word, o->code, o->code_bytes);
		const size_t n = fit_module(&d->is, fit, word, o->code_bytes / sizeof *word);
		const struct vulkan_module_info info = {
			.type = VULKAN_MODULE_INFO, .bytes = n * sizeof *fit, .code = fit
		};
		const int result = n ? d->api.create_module(d->logical, &info, NULL, out) : 0;
		ok = n ? !result || vulkan_failed(d, result, "a kernel's module", err)
		       : error_set(err, ERROR_DEVICE, "a kernel's code is no module of SPIR-V");
	}
	free(word);
	free(fit);
	return ok;
}

/* ---- pipelines */

bool vulkan_make_pipeline(struct vulkan *d, const struct object *o, uint64_t *out, struct error *err)
{
	uint32_t data[SPIRV_CHOICES];
	struct vulkan_constant constant[SPIRV_CHOICES];
	const struct vulkan_constants constants = { SPIRV_CHOICES, constant, sizeof data, data };
	struct vulkan_subgroup_size_info size = { .type = VULKAN_SUBGROUP_SIZE_INFO, .size = d->is.target->lanes };
	uint64_t module;

	for (uint32_t k = 0; k < SPIRV_CHOICES; k++) {
		data[k] = d->choice[k];
		constant[k] = (struct vulkan_constant){ .id = k, .offset = k * 4, .size = 4 };
	}
	if (!make_module(d, o, &module, err))
		return false;
	const struct vulkan_compute_info info = {
		.type = VULKAN_COMPUTE_INFO,
		.stage = { .type = VULKAN_STAGE_INFO,
		           .next = d->is.sizes_subgroups ? &size : NULL,
		           .flags = VULKAN_FULL_SUBGROUPS,
		           .stage = VULKAN_STAGE_COMPUTE,
		           .module = module,
		           .name = SPIRV_ENTRY,
		           .constants = &constants },
		.layout = d->layout,
		.base_index = -1
	};
	const int result = d->api.create_pipelines(d->logical, d->cache, 1, &info, NULL, out);
	d->api.destroy_module(d->logical, module, NULL);
	return !result || vulkan_failed(d, result, "compiling a kernel", err);
}

static const struct vulkan_pipeline *find(struct vulkan *d, const struct key *key)
{
	pthread_mutex_lock(&d->lock);
	const struct vulkan_pipeline *p = d->pipelines;
	while (p && !key_equal(&p->key, key))
		p = p->next;
	pthread_mutex_unlock(&d->lock);
	return p;
}

/* Two threads may make the same; both stay until the device is closed. */
const struct vulkan_pipeline *vulkan_pipeline(struct vulkan *d, struct registry *r, const struct key *key,
                                              struct error *err)
{
	const struct vulkan_pipeline *known = find(d, key);
	const struct kernel *k = known ? NULL : registry_get(r, key, NULL, err);
	char text[KEY_TEXT_MAX];

	if (known || !k)
		return known;
	struct vulkan_pipeline *p = calloc(1, sizeof *p);
	struct error why = { 0 };
	if (!p || !vulkan_make_pipeline(d, &k->object, &p->pipeline, &why)) {
		error_set(err, p ? why.code : ERROR_MEMORY, "kernel %s: %s", key_text(key, text, sizeof text),
		          p ? why.text : "no memory for its pipeline");
		free(p);
		return NULL;
	}
	p->key = *key;
	p->frame_bytes = k->object.frame_bytes;
	p->shared_bytes = k->object.shared_bytes;
	p->cooperative = k->object.cooperative;
	pthread_mutex_lock(&d->lock);
	p->next = d->pipelines;
	d->pipelines = p;
	pthread_mutex_unlock(&d->lock);
	return p;
}

void vulkan_free_pipelines(struct vulkan *d)
{
	const bool idle = vulkan_idle(d, 0);

	for (struct vulkan_pipeline *p = d->pipelines, *next; p; p = next) {
		next = p->next;
		if (idle)
			d->api.destroy_pipeline(d->logical, p->pipeline, NULL);
		free(p);
	}
	d->pipelines = NULL;
}
