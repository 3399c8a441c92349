/* train/save_peft.c - an adapter as peft has it: a folder with adapter_config.json and adapter_model.safetensors. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "train/save.h"

static json_t *number(double x) { return x == (double)(int)x ? json_integer((int)x) : json_real(x); }

/* "q_proj" of "model.layers.0.self_attn.q_proj.lora_A.weight". */
static size_t module_of(const struct net_tensor *x, const char **name)
{
	const char *end = strstr(x->name, ".lora_"), *begin = end ? end : x->name;

	while (begin > x->name && begin[-1] != '.')
		begin--;
	*name = begin;
	return end ? (size_t)(end - begin) : 0;
}

/* Names of modules, each once. */
static json_t *targets(const jit_train *t)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < t->net->tensors; i++) {
		const char *name;
		const size_t n = module_of(&t->net->tensor[i], &name);
		json_t *have;
		size_t k;
		bool found = false;
		json_array_foreach(list, k, have) found =
			found || (json_string_length(have) == n && memcmp(json_string_value(have), name, n) == 0);
		if (!found && n)
			json_add(list, json_text(name, n));
	}
	return list;
}

static bool write_config(const jit_train *t, const char *folder, struct error *err)
{
	const struct arch_row *row = train_arch(t);
	json_t *o = json_object();
	char path[4096];
	struct train_file f;

	json_put(o, "peft_type", json_string("LORA"));
	json_put(o, "task_type", json_string("CAUSAL_LM"));
	json_put(o, "base_model_name_or_path", json_text(t->path, strlen(t->path)));
	json_put(o, "r", json_integer(t->o.rank));
	json_put(o, "lora_alpha", number(train_decimal(t->o.alpha)));
	json_put(o, "lora_dropout", number(train_decimal(t->o.dropout)));
	json_put(o, "use_rslora", json_boolean(t->o.rslora));
	json_put(o, "use_dora", json_boolean(t->o.dora));
	json_put(o, "bias", json_string("none"));
	json_put(o, "fan_in_fan_out", json_boolean(row && row->columns_first));
	json_put(o, "inference_mode", json_true());
	json_put(o, "init_lora_weights", json_true());
	json_put(o, "modules_to_save", json_null());
	json_put(o, "target_modules", targets(t));
	char *text = json_spell(o, JSON_INDENT(2));
	json_decref(o);
	if (!text || json_lacks()) {
		free(text);
		return error_set(err, ERROR_MEMORY, "there is no memory for adapter_config.json");
	}
	bool ok = train_path(path, folder, "adapter_config.json", err) && train_file_open(&f, path, err);
	if (ok) {
		fprintf(f.f, "%s\n", text);
		ok = train_file_close(&f, true, err);
	}
	free(text);
	return ok;
}

static bool write_tensors(const jit_train *t, const char *folder, bool pairs, struct error *err)
{
	const uint32_t n = t->net->tensors;
	struct train_entry *e = calloc(n + (size_t)1, sizeof *e);
	char(*name)[600] = calloc(n + (size_t)1, sizeof *name), path[4096];
	bool ok = (e && name) || error_set(err, ERROR_MEMORY, "there is no memory for an adapter");

	for (uint32_t i = 0; ok && i < n; i++) {
		const struct net_tensor *x = &t->net->tensor[i];
		snprintf(name[i], sizeof name[i], "base_model.model.%s", x->name);
		e[i] = (struct train_entry){ name[i], x->shape, train_ordered(t, x, pairs, err) };
		ok = e[i].values != NULL;
	}
	ok = ok && train_path(path, folder, "adapter_model.safetensors", err) &&
	     train_write_safetensors(path, e, n, err);
	for (uint32_t i = 0; e && i < n; i++)
		free((void *)(uintptr_t)e[i].values);
	free(e);
	free(name);
	return ok;
}

/* Whether queries or keys of their own are trained, whose rows rotate in part: then files differ in their order. */
static bool rotates_in_part(const jit_train *t)
{
	for (uint32_t i = 0; i < t->net->tensors; i++) {
		const struct net_tensor *x = &t->net->tensor[i];
		if (!x->by_file && (x->slot == SLOT_q || x->slot == SLOT_k))
			return t->m.spec.rope.dims != t->m.spec.head_dim;
	}
	return false;
}

bool train_save_peft(const jit_train *t, const char *folder, struct error *err)
{
	const struct arch_row *row = train_arch(t);

	if (train_is_gguf(t) && (!row || rotates_in_part(t)))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%.200s: an adapter of this GGUF file cannot be saved as PEFT has it; save it as GGUF",
		                 t->path);
	return train_folder_open(folder, err) && write_tensors(t, folder, row && row->hf_pairs, err) &&
	       write_config(t, folder, err);
}
