/* tests/fuzz/fuzz_safetensors.c - arbitrary bytes as a config.json and a safetensors file: two bytes with the length of
 * the first, the first, the second. The first is also read as a shard index. */
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "loaders/model/model_load.h"
#include "tests/fuzz/fuzz.h"

static volatile uint64_t sink;

static void touch(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink += p[i];
}

static void parse(const uint8_t *p, size_t n, bool header_only)
{
	struct error err = { 0 };
	struct safetensors s;

	if (!safetensors_parse(&s, p, n, "fuzz", header_only, &err)) {
		if (!err.text[0])
			abort();
		return;
	}
	for (uint32_t i = 0; i < s.n_tensors; i++) {
		touch((const uint8_t *)s.tensor[i].name.p, s.tensor[i].name.n);
		if (!header_only)
			touch(p + s.tensor[i].offset, s.tensor[i].bytes);
	}
	safetensors_free(&s);
}

static void touch_tensor(const struct model *m, const struct model_tensor *t)
{
	uint8_t *p = malloc(t->bytes + 1);

	if (t->bytes != t->rows * t->row_bytes || !p || !model_read(m, t, 0, t->bytes, p, NULL))
		abort();
	touch(p, t->bytes);
	free(p);
}

static void read_index(const uint8_t *p, size_t n)
{
	struct model_paths paths = { .dir = strdup("/dev/") };
	struct error err = { 0 };
	struct file index;

	file_memory(&index, p, n, "index");
	if (paths.dir)
		model_read_index(&paths, &index, &err);
	model_paths_free(&paths);
	struct json_scan s = json_scan_of(p, n);
	bool ok = json_scan_skip(&s) && json_scan_finish(&s);
	if (s.at > n || ok != (s.problem == NULL))
		abort();
}

void fuzz_safetensors(const uint8_t *p, size_t n)
{
	uint16_t length;
	struct error err = { 0 };
	struct model m;

	if (n < sizeof length)
		return;
	memcpy(&length, p, sizeof length);
	p += sizeof length;
	n -= sizeof length;
	size_t config = length < n ? length : n;
	parse(p + config, n - config, false);
	parse(p + config, n - config, true);
	read_index(p, config);
	if (model_open_memory(&m, p + config, n - config, p, config, 0, &err)) {
		for (uint32_t i = 0; i < m.spec.layers; i++)
			for (int k = 0; k < TENSOR_SLOTS; k++)
				touch_tensor(&m, (const struct model_tensor *)&m.spec.layer[i] + k);
		model_close(&m);
	} else if (!err.text[0])
		abort();
}
