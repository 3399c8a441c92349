/* tests/pictures/t_pictures.c - pictures beside Pillow 9.4: hashes of what it made of the same bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "pictures/picture.h"
#include "pictures/resize.h"
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
				if (!test_few() || (r + (size_t)h + (size_t)k) % 3 == 0)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resize_large),
		cmocka_unit_test(test_resize_small),
		cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
