/* train/state.c - the file from which training goes on: what is trained, its moments, and how many steps there were.
 *
 * It begins with a line that says what it is, then come a digest of what decides the result, the numbers of steps and
 * of rows, then for each tensor its values and both moments as they are in memory, and a checksum of all of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "train/file.h"
#include "train/train.h"

static const char first_line[] = "jitrun training 1\n";

static uint64_t mixed(uint64_t sum, const void *p, size_t n)
{
	const uint8_t *at = p;

	for (; n >= 8; n -= 8, at += 8) {
		uint64_t word;
		memcpy(&word, at, sizeof word);
		sum = (sum ^ word) * 0x9E3779B97F4A7C15;
		sum ^= sum >> 29;
	}
	for (; n; n--, at++)
		sum = ((sum ^ *at) * 0x9E3779B97F4A7C15) ^ (sum >> 32);
	return sum;
}

/* What decides the result, the number of threads not among it. */
static uint64_t digest(const jit_train *t)
{
	const jit_train_options *o = &t->o;
	const int whole[] = { o->context, o->full, o->rank, o->rslora, o->dora, o->schedule, o->warmup, o->steps };
	const float real[] = { o->alpha, o->rate,    o->least_rate, o->weight_decay, o->beta1,
		               o->beta2, o->epsilon, o->clip,       o->dropout };
	uint64_t sum = mixed(t->m.tensor_bytes, whole, sizeof whole);

	sum = mixed(sum, real, sizeof real);
	sum = mixed(sum, &o->seed, sizeof o->seed);
	for (uint32_t i = 0; i < t->net->tensors; i++) {
		const struct net_tensor *x = &t->net->tensor[i];
		sum = mixed(mixed(sum, x->name, strlen(x->name)), &x->n, sizeof x->n);
	}
	return sum;
}

static float *part_of(const struct net_tensor *x, int part)
{
	return part == 0 ? x->value : part == 1 ? x->mean : x->square;
}

bool train_write_state(const jit_train *t, const char *path, struct error *err)
{
	const uint64_t head[] = { digest(t), t->step, t->fed };
	uint64_t sum = mixed(0, head, sizeof head);
	struct train_file f;

	if (!train_file_open(&f, path, err))
		return false;
	fwrite(first_line, 1, sizeof first_line - 1, f.f);
	fwrite(head, sizeof *head, 3, f.f);
	for (uint32_t i = 0; i < t->net->tensors; i++)
		for (int part = 0; part < 3; part++) {
			const struct net_tensor *x = &t->net->tensor[i];
			fwrite(part_of(x, part), sizeof(float), x->n, f.f);
			sum = mixed(sum, part_of(x, part), x->n * sizeof(float));
		}
	fwrite(&sum, sizeof sum, 1, f.f);
	return train_file_close(&f, true, err);
}

/* Everything is read before anything is changed. */
static bool read_all(const jit_train *t, FILE *f, const char *path, uint64_t head[3], float *all, struct error *err)
{
	char line[sizeof first_line] = { 0 };
	uint64_t sum, found, at = 0;

	if (fread(line, 1, sizeof first_line - 1, f) != sizeof first_line - 1 || strcmp(line, first_line) != 0)
		return error_set(err, ERROR_FORMAT, "%.300s: this is no state of a training", path);
	if (fread(head, sizeof *head, 3, f) != 3)
		return error_set(err, ERROR_FORMAT, "%.300s: the file is cut", path);
	if (head[0] != digest(t))
		return error_set(err, ERROR_FORMAT,
		                 "%.300s: the state is of another training: its model or options differ from these",
		                 path);
	sum = mixed(0, head, 3 * sizeof *head);
	for (uint32_t i = 0; i < t->net->tensors; i++)
		for (int part = 0; part < 3; part++, at += t->net->tensor[i].n) {
			const uint64_t n = t->net->tensor[i].n;
			if (fread(all + at, sizeof *all, n, f) != n)
				return error_set(err, ERROR_FORMAT, "%.300s: the file is cut", path);
			sum = mixed(sum, all + at, n * sizeof *all);
		}
	if (fread(&found, sizeof found, 1, f) != 1 || found != sum || fgetc(f) != EOF)
		return error_set(err, ERROR_FORMAT, "%.300s: the file is damaged: its checksum is another one", path);
	return true;
}

bool train_read_state(jit_train *t, const char *path, struct error *err)
{
	FILE *f = fopen(path, "rb");
	uint64_t head[3], n = 0, at = 0;

	if (!f)
		return error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
	for (uint32_t i = 0; i < t->net->tensors; i++)
		n += 3 * t->net->tensor[i].n;
	float *all = malloc((n + 1) * sizeof *all);
	const bool ok = (all || error_set(err, ERROR_MEMORY, "there is no memory for a state")) &&
	                read_all(t, f, path, head, all, err);
	for (uint32_t i = 0; ok && i < t->net->tensors; i++)
		for (int part = 0; part < 3; part++, at += t->net->tensor[i].n)
			memcpy(part_of(&t->net->tensor[i], part), all + at, t->net->tensor[i].n * sizeof *all);
	if (ok) {
		t->step = head[1];
		t->fed = head[2];
	}
	free(all);
	fclose(f);
	return ok;
}
