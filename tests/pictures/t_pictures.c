/* tests/pictures/t_pictures.c - pictures beside Pillow 9.4: hashes of what it made of the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "pictures/picture.h"
#include "pictures/processor.h"
#include "pictures/resize.h"
#include "tests/pictures/png_texts.h"
#include "tests/pictures/small_pictures.h"
#include "tests/support/no_memory.h"
#include "tests/support/shared.h"

static const uint64_t fnv_start = 0xcbf29ce484222325u;

static uint64_t fnv(uint64_t hash, const uint8_t *p, size_t n)
{
	for (size_t k = 0; k < n; k++)
		hash = (hash ^ p[k]) * 0x100000001b3u;
	return hash;
}

static uint64_t picture_hash(uint64_t hash, const struct picture *p)
{
	return fnv(hash, p->rgb, (size_t)p->width * p->height * 3);
}

static uint64_t splitmix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static struct picture noise(uint32_t width, uint32_t height)
{
	struct error err = { 0 };
	struct picture p;
	assert_true(picture_make(&p, width, height, &err));
	for (size_t k = 0; k < (size_t)width * height * 3; k++)
		p.rgb[k] = (uint8_t)(splitmix(k) >> 56);
	return p;
}

static struct picture slope(uint32_t width, uint32_t height)
{
	struct picture p = noise(width, height);
	for (uint32_t y = 0; y < height; y++)
		for (uint32_t x = 0; x < width; x++) {
			uint8_t *pixel = p.rgb + ((size_t)y * width + x) * 3;
			pixel[0] = (uint8_t)(x * 255 / (width - 1));
			pixel[1] = (uint8_t)(y * 255 / (height - 1));
			pixel[2] = (uint8_t)(x * y >> 3);
		}
	return p;
}

static uint64_t resized_hash(uint64_t hash, const struct picture *p, uint32_t width, uint32_t height, enum resample how)
{
	struct error err = { 0 };
	struct picture out;
	assert_true(picture_resize(&out, p, width, height, how, &err));
	assert_int_equal(out.width, width);
	assert_int_equal(out.height, height);
	hash = picture_hash(hash, &out);
	picture_free(&out);
	assert_null(out.rgb);
	return hash;
}

/* Large pictures: noise 640 x 480, a slope of that size, noise 91 x 37. */
static void test_resize_large(void **state)
{
	static const struct {
		uint32_t width, height;
		uint64_t hash[3][3]; /* bilinear, bicubic, lanczos */
	} rows[] = {
		{ 384,
		  384,
		  { { 0x99acfb544ac86226, 0xc856d4674825fdc0, 0xf009ad8278eab8f8 },
		    { 0x1a0fbba68ae18a8d, 0x5e5f8d4ceb9e1053, 0x4e3406556de045a3 },
		    { 0x46dd9b9c56f7a792, 0xdfb4416eab8d9fbc, 0x7baf02b5a29ba442 } } },
		{ 224,
		  224,
		  { { 0xcae5fdb382bb5d44, 0xf98a1a9a25acd29c, 0xcf6623eff40bc3b7 },
		    { 0x20b027d60624c4a1, 0x7c0ec29d58ed2e8d, 0x2e9f0a64377f14ac },
		    { 0x325808c1519beb1f, 0xd3518a4352540d2a, 0xefd660da99bdb882 } } },
		{ 512,
		  288,
		  { { 0x383febd765c07b5b, 0x75d7d834837a346e, 0x846b4cf0e6a29a37 },
		    { 0x74ed5422fbd94778, 0x3fc2c5a68f82503e, 0xeb1e9003586cb836 },
		    { 0x238d28d647f9b370, 0x5344ce14381d15dc, 0xc6927540241761a3 } } },
		{ 1000,
		  700,
		  { { 0xc7ffd151763dd4f3, 0x84d0d8ddc2df0588, 0x83471a9dad482aeb },
		    { 0x89ad41abbec2f7d2, 0x17598966a6cb379b, 0xd960c93f33dfd73a },
		    { 0xc9511a978d05b440, 0x951ed5d3369eaa4a, 0x09791cf87b1a02c9 } } },
	};
	static const enum resample how[] = { RESAMPLE_BILINEAR, RESAMPLE_BICUBIC, RESAMPLE_LANCZOS };
	struct picture p[] = { noise(640, 480), slope(640, 480), noise(91, 37) };

	assert_true(picture_hash(fnv_start, &p[0]) == 0xbeb65cbae82a5675);
	assert_true(picture_hash(fnv_start, &p[1]) == 0x5deb7f65fdc5f5e1);
	assert_true(picture_hash(fnv_start, &p[2]) == 0xfaa3b04435117538);
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		for (int h = 0; h < 3; h++)
			for (int k = 0; k < 3; k++)
				if (!test_small_share() || (r + (size_t)h + (size_t)k) % 3 == 0)
					assert_true(resized_hash(fnv_start, &p[k], rows[r].width, rows[r].height,
					                         how[h]) == rows[r].hash[h][k]);
	for (int k = 0; k < 3; k++)
		picture_free(&p[k]);
}

/* All filters between small sides, 1 and primes among them; one hash over all that a filter made. */
static void test_resize_small(void **state)
{
	static const uint32_t sides[] = { 1, 2, 3, 7, 16, 31, 53 };
	static const uint64_t hash[RESAMPLE_COUNT] = {
		[RESAMPLE_NEAREST] = 0x2e364c5bbef68bf9,  [RESAMPLE_LANCZOS] = 0xc113f04d486c7f44,
		[RESAMPLE_BILINEAR] = 0x88f0efb467493228, [RESAMPLE_BICUBIC] = 0x0c13f42faabd1433,
		[RESAMPLE_BOX] = 0x1503e54c777c4a37,      [RESAMPLE_HAMMING] = 0x2750c1976f984842,
	};
	for (int how = 0; how < RESAMPLE_COUNT; how++) {
		uint64_t h = fnv_start;
		for (int w = 0; w < 7; w++)
			for (int v = 0; v < 7; v++) {
				struct picture p = noise(sides[w], sides[v]);
				for (uint32_t t = 0; t < 7; t++)
					h = resized_hash(h, &p, sides[t], sides[(t + sides[w] + sides[v]) % 7],
					                 (enum resample)how);
				picture_free(&p);
			}
		assert_true(h == hash[how]);
	}
}

static void test_sizes(void **state)
{
	static const uint32_t bad[][2] = {
		{ 0, 1 }, { 1, 0 }, { PICTURE_MAX_SIDE + 1, 1 }, { 1, PICTURE_MAX_SIDE + 1 }, { 8193, 8192 }
	};
	struct picture p = noise(3, 2), out;
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		struct error err = { 0 };
		assert_false(picture_make(&out, bad[k][0], bad[k][1], &err));
		assert_null(out.rgb);
		assert_int_equal(err.code, ERROR_ARGUMENT);
		assert_non_null(strstr(err.text, "at most 67108864 pixels"));
		err = (struct error){ 0 };
		assert_false(picture_resize(&out, &p, bad[k][0], bad[k][1], RESAMPLE_BICUBIC, &err));
		assert_null(out.rgb);
		assert_int_equal(err.code, ERROR_ARGUMENT);
	}
	picture_free(&p);
}

/* ---- files */

static bool format_is_read(const uint8_t *bytes, size_t n)
{
	const char *format = picture_format(bytes, n);
	assert_non_null(format);
	return picture_can_read(format);
}

static void test_small_files(void **state)
{
	for (size_t k = 0; k < SMALL_PICTURES; k++) {
		const struct small_picture *s = &small_pictures[k];
		struct error err = { 0 };
		struct picture p;
		if (!format_is_read(s->bytes, s->n))
			continue;
		if (!picture_decode(&p, s->bytes, s->n, s->name, NULL, &err))
			fail_msg("%s", err.text);
		assert_int_equal(p.width, s->width);
		assert_int_equal(p.height, s->height);
		if (picture_hash(fnv_start, &p) != s->hash)
			fail_msg("%s has other pixels than Pillow's", s->name);
		picture_free(&p);
	}
}

/* Limits hold against what a header says; at them, a picture is decoded. */
static void test_limits(void **state)
{
	for (size_t k = 0; k < SMALL_PICTURES; k++) {
		const struct small_picture *s = &small_pictures[k];
		struct picture_limits limits = { .bytes = s->n, .pixels = s->width * s->height };
		struct error err = { 0 };
		struct picture p;
		if (!format_is_read(s->bytes, s->n))
			continue;
		assert_true(picture_decode(&p, s->bytes, s->n, "a.b", &limits, &err));
		picture_free(&p);
		limits.bytes--;
		assert_false(picture_decode(&p, s->bytes, s->n, "a.b", &limits, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "a.b has "));
		assert_non_null(strstr(err.text, "a picture's file may have "));
		limits = (struct picture_limits){ .bytes = 0, .pixels = s->width * s->height - 1 };
		err = (struct error){ 0 };
		assert_false(picture_decode(&p, s->bytes, s->n, "a.b", &limits, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "pixels; sides of at most 65536 and at most "));
		assert_null(p.rgb);
		assert_false(picture_decode(&p, s->bytes, s->n, "a.b", &limits, NULL));
	}
}

/* One sentence for what is no picture, and for headers that promise too much; nothing of the size they say is read. */
static void test_refusals(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *says;
	} rows[] = {
		{ "", 0, "b is no picture: PNG, JPEG, WebP, GIF or BMP is expected" },
		{ "hello, hello", 12, "b is no picture" },
		{ "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\1\0\0\0\1\10\2\0\0\0", 29, "b: this PNG file is damaged" },
		{ "\x89PNG\r\n\x1a\n", 8, "b: this PNG file is damaged: ends early" },
		{ "\xff\xd8\xff", 3, "b: this JPEG file has 3 bytes and ends within its picture" },
		{ "RIFF\4\0\0\0WEBP", 12, "b: this WebP file has 12 bytes, and is damaged or ends early" },
		{ "GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\2\1\0\0;", 28,
		  "b: this GIF file has a picture of 65535 x 65535 pixels; sides" },
		{ "GIF89a\1\0\1\0\0\0\0;", 14, "b: this GIF file has no picture" },
		{ "BM\0\0\0\0\0\0\0\0\0\0\0\0", 14, "b: this BMP file has 14 bytes and ends within its header" },
		{ "BM\0\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\0\0\1\0\1\0\x18\0", 26,
		  "b: this BMP file says that its picture has 0 x 1 pixels; 1 x 1 is the least" },
		{ "BM\0\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0\1\0\1\0\1\0\2\0", 26,
		  "b: this BMP file has 2 bits a pixel with compression 0, which is not read" },
		{ "BM\0\0\0\0\0\0\0\0\x1a\0\0\0\x0d\0\0\0\1\0\1\0\1\0\2\0", 26,
		  "b: this BMP file has a header of 13 bytes; 12, 40, 52, 56, 64, 108 or 124 is expected" },
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		struct error err = { 0 };
		struct picture p;
		if (picture_format(rows[k].bytes, rows[k].n) &&
		    !format_is_read((const uint8_t *)rows[k].bytes, rows[k].n))
			continue;
		assert_false(picture_decode(&p, rows[k].bytes, rows[k].n, "b", NULL, &err));
		assert_null(p.rgb);
		if (strncmp(err.text, rows[k].says, strlen(rows[k].says)) != 0)
			fail_msg("%s; expected: %s", err.text, rows[k].says);
	}
	assert_null(picture_format("RIFF1234WAVE", 12));
	assert_string_equal(picture_format("BMxx", 4), "BMP");
}

/* ---- files that would grow */

/* Three megabytes of texts, which would be four hundred. */
static void test_bombs(void **state)
{
	enum { TEXTS = 60, COPIES = 27000, HEAD = 33 /* up to the end of the first chunk */ };
	const struct small_picture *s = &small_pictures[0];
	uint8_t *one = malloc(COPIES * 2 + 100), *all = malloc(s->n + TEXTS * (COPIES * 2 + 100));
	struct error err = { 0 };
	struct picture p;
	struct rusage before, after;
	(void)state;

	assert_true(one && all);
	if (!format_is_read(s->bytes, s->n)) {
		free(one);
		free(all);
		return;
	}
	const size_t n_one = text_chunk(one, COPIES);
	size_t n = HEAD;
	memcpy(all, s->bytes, HEAD);
	for (int i = 0; i < TEXTS; i++, n += n_one)
		memcpy(all + n, one, n_one);
	memcpy(all + n, s->bytes + HEAD, s->n - HEAD);
	n += s->n - HEAD;
	getrusage(RUSAGE_SELF, &before);
	if (!picture_decode(&p, all, n, "bomb", NULL, &err))
		fail_msg("%s", err.text);
	getrusage(RUSAGE_SELF, &after);
	assert_true(picture_hash(fnv_start, &p) == s->hash);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 64 << 10); /* KiB */
	picture_free(&p);
	free(one);
	free(all);
}

/* A file cut anywhere is refused, but where what is lost is no part of the picture: then it has the same pixels. */
static void test_cut(void **state)
{
	for (size_t k = 0; k < SMALL_PICTURES; k++) {
		const struct small_picture *s = &small_pictures[k];
		if (!format_is_read(s->bytes, s->n))
			continue;
		unsigned whole = 0;
		for (size_t n = 0; n < s->n; n++) {
			struct error err = { 0 };
			struct picture p;
			uint8_t *bytes = malloc(n + 1); /* so that sanitizers see reads behind the end */
			assert_non_null(bytes);
			bytes = realloc(bytes, n ? n : 1);
			memcpy(bytes, s->bytes, n);
			if (picture_decode(&p, bytes, n, "cut", NULL, &err)) {
				assert_true(picture_hash(fnv_start, &p) == s->hash);
				picture_free(&p);
				whole++;
			} else {
				assert_null(p.rgb);
				assert_int_equal(strncmp(err.text, "cut", 3), 0);
			}
			free(bytes);
		}
		if (whole > 8)
			fail_msg("%s: %u of its beginnings are whole pictures", s->name, whole);
	}
}

/* Damaged pictures: any answer but a crash, and every refusal says what it is about. */
static void test_damage(void **state)
{
	unsigned refused = 0, of = test_quick() ? 1000 : 20000;
	for (unsigned k = 0; k < of; k++) {
		const struct small_picture *s = &small_pictures[k % SMALL_PICTURES];
		static const struct picture_limits limits = { .pixels = 1 << 16 };
		struct error err = { 0 };
		struct picture p;
		uint8_t *bytes = malloc(s->n);
		assert_non_null(bytes);
		memcpy(bytes, s->bytes, s->n);
		for (uint64_t flip = 0; flip < 1 + k / SMALL_PICTURES % 4; flip++) {
			uint64_t draw = splitmix((uint64_t)k << 8 | flip);
			bytes[draw % s->n] = (uint8_t)(draw >> 40);
		}
		if (picture_decode(&p, bytes, s->n, "damaged", &limits, &err)) {
			picture_free(&p);
		} else {
			assert_null(p.rgb);
			assert_int_equal(strncmp(err.text, "damaged", 7), 0);
			refused++;
		}
		free(bytes);
	}
	assert_true(refused > of / 10);
}

/* Each allocation of this library's own, and of libpng, fails once. */
static void test_no_memory(void **state)
{
	for (size_t k = 0; k < SMALL_PICTURES; k++) {
		const struct small_picture *s = &small_pictures[k];
		unsigned failed = 0;
		for (unsigned n = 1; format_is_read(s->bytes, s->n); n++) {
			struct error err = { 0 };
			struct picture p;
			memory_fail(n);
			bool ok = picture_decode(&p, s->bytes, s->n, "a", NULL, &err);
			bool all = memory_requests < n;
			memory_fail(0);
			if (ok) {
				assert_true(picture_hash(fnv_start, &p) == s->hash);
				picture_free(&p);
			} else {
				assert_null(p.rgb);
				assert_int_equal(err.code, ERROR_MEMORY);
				failed++;
			}
			if (all)
				break;
		}
		assert_true(failed > 0 || !format_is_read(s->bytes, s->n));
	}
	struct picture from = noise(5, 4), to;
	for (int how = 0; how < RESAMPLE_COUNT; how++)
		for (unsigned n = 1;; n++) {
			struct error err = { 0 };
			memory_fail(n);
			bool ok = picture_resize(&to, &from, 3, 7, (enum resample)how, &err);
			memory_fail(0);
			if (ok) {
				picture_free(&to);
				break;
			}
			assert_null(to.rgb);
			assert_int_equal(err.code, ERROR_MEMORY);
		}
	picture_free(&from);
}

/* The same while a picture is cut into tiles. */
static void test_processor_no_memory(void **state)
{
	static const char image[] =
		"{\"image_processor_type\": \"SmolVLMImageProcessor\", \"size\": {\"longest_edge\": 32}, "
		"\"max_image_size\": {\"longest_edge\": 16}}",
			  config[] = "{\"vision_config\": {\"patch_size\": 8}}";
	struct processor_files files = { .name = "m",
		                         .preprocessor = image,
		                         .n_preprocessor = strlen(image),
		                         .config = config,
		                         .n_config = strlen(config) };
	struct error err = { 0 };
	struct image_processor p;
	struct picture from = noise(40, 20);
	unsigned failed = 0;
	assert_true(processor_read(&p, &files, &err));
	for (unsigned n = 1;; n++) {
		struct processed_image out;
		memory_fail(n);
		bool ok = processor_run(&p, &from, &out, &err);
		memory_fail(0);
		if (ok) {
			assert_int_equal(out.n_parts, 3);
			processed_image_free(&out);
			break;
		}
		assert_int_equal(err.code, ERROR_MEMORY);
		assert_true(!out.parts && !out.values && !out.segments);
		err = (struct error){ 0 };
		failed++;
	}
	assert_true(failed > 10);
	picture_free(&from);
}

/* A folder that pillow.py filled: each file of its list beside what Pillow made of it. */
static int judge_folder(const char *folder)
{
	char path[2048], name[256];
	unsigned width, height, passed = 0, failed = 0;
	unsigned long long hash;
	snprintf(path, sizeof path, "%s/list", folder);
	FILE *list = fopen(path, "r");
	if (!list)
		return 1;
	while (fscanf(list, "%255s %u %u %llx", name, &width, &height, &hash) == 4) {
		struct error err = { 0 };
		struct picture p = { 0 };
		size_t n;
		snprintf(path, sizeof path, "%s/%s", folder, name);
		uint8_t *bytes = file_bytes(path, &n);
		bool ok = !format_is_read(bytes, n) ||
		          (picture_decode(&p, bytes, n, name, NULL, &err) && p.width == width && p.height == height &&
		           picture_hash(fnv_start, &p) == hash);
		if (!ok)
			printf("%s: %u x %u, Pillow %u x %u; %s\n", name, p.width, p.height, width, height, err.text);
		passed += ok;
		failed += !ok;
		if (p.rgb)
			picture_free(&p);
		free(bytes);
	}
	fclose(list);
	printf("%u passed, %u failed\n", passed, failed);
	return failed > 0 || passed == 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return judge_folder(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resize_large), cmocka_unit_test(test_resize_small),
		cmocka_unit_test(test_sizes),        cmocka_unit_test(test_small_files),
		cmocka_unit_test(test_limits),       cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_cut),          cmocka_unit_test(test_damage),
		cmocka_unit_test(test_no_memory),    cmocka_unit_test(test_processor_no_memory),
		cmocka_unit_test(test_bombs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
