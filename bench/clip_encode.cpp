// bench/clip_encode.cpp - llama.cpp's image encoder for bench/images.sh: clip_encode MMPROJ PIXELS ROUNDS THREADS
// prints the seconds of each round, as bench/images does. Built against a checkout of llama.cpp, whose internal
// headers it uses.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "clip.h"
#include "clip-impl.h"

int main(int argc, char ** argv)
{
	if (argc != 5)
		return 2;
	const int side = atoi(argv[2]), rounds = atoi(argv[3]), threads = atoi(argv[4]);
	clip_context_params params = {};
	params.use_gpu = false;
	params.flash_attn_type = CLIP_FLASH_ATTN_TYPE_AUTO;
	params.image_min_tokens = params.image_max_tokens = -1;
	clip_ctx * ctx = clip_init(argv[1], params).ctx_v;
	if (!ctx)
		return 1;
	clip_image_f32 image = {};
	image.set_size({ side, side }, false, false);
	std::vector<float> pixels((size_t)side * side * 3);
	std::vector<float> out((size_t)clip_n_mmproj_embd(ctx) * clip_n_output_tokens(ctx, &image));
	unsigned state = 1;
	for (float & x : pixels) {
		state = state * 1664525u + 1013904223u;
		x = (float)(state >> 8) / (float)(1 << 23) - 1;
	}
	image.cpy_buf(pixels);
	for (int i = 0; i <= rounds; i++) {
		const auto begin = std::chrono::steady_clock::now();
		if (!clip_image_encode(ctx, threads, &image, out))
			return 1;
		const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
		printf("%s %.4f\n", i ? "encoded" : "first", took.count());
	}
	clip_free(ctx);
	return 0;
}
