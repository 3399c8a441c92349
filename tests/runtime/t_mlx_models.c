/* tests/runtime/t_mlx_models.c - models as MLX's converter lays their tensors out: they compute what they compute as
 * transformers lays them out, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/runtime/mlx_layout.h"
#include "tests/support/shared.h"

static const char *const models[] = {
	"qwen3moe-a", "mixtral-a",       "qwen2moe-a",   "olmoe-a",      "granitemoe-a", "glm4moe-a",   "lfm2-a",
	"lfm2moe-a",  "qwen35-a",        "qwen35moe-a",  "qwen3next-a",  "gemma4-moe-a", "nemotronh-a", "gemma3-a",
	"phi3-a",     "granitehybrid-a", "deepseekv2-a", "deepseekv3-a", "glm4moelite-a"
};

static void test_floats(void **state)
{
	struct original o;
	struct st_writer w;
	char path[1024], relative[60], made[300];

	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		if (!original_open(&o, models[i]))
			skip();
		mlx_layout(&o, &w);
		remade_model(models[i], &w, o.config);
		original_close(&o);
		snprintf(relative, sizeof relative, "golden/%s", models[i]);
		remade_compare(shared_path(path, relative), (struct remade_run){ "cpu", 16 },
		               remade_path(made, models[i]), (struct remade_run){ "cpu", 16 }, 0);
	}
}

/* gpt-oss keeps its MXFP4, and says so in MLX's words. */
static void test_gpt_oss(void **state)
{
	struct original o;
	struct st_writer w;
	char path[1024], made[300];

	if (!original_open(&o, "gptoss-a-mxfp4"))
		skip();
	mlx_layout(&o, &w);
	json_object_del(o.config, "quantization_config");
	json_object_set_new(o.config, "quantization",
	                    json_pack("{s:i,s:i,s:s}", "group_size", 32, "bits", 4, "mode", "mxfp4"));
	remade_model("gptoss", &w, o.config);
	original_close(&o);
	remade_compare(shared_path(path, "golden/gptoss-a-mxfp4"), (struct remade_run){ "cpu", 16 },
	               remade_path(made, "gptoss"), (struct remade_run){ "cpu", 16 }, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_floats), cmocka_unit_test(test_gpt_oss) };
	return cmocka_run_group_tests(tests, remade_start, remade_end);
}
