/* tests/server/t_access.c - who may ask: keys, addresses, pages of browsers; and how a server begins and ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/http/keys.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

static char key_file[] = "/tmp/jitrun-keys-XXXXXX";

static int make_keys(void **state)
{
	int fd = mkstemp(key_file);
	static const char text[] = "# ours\n\nfirst-key\r\nsecond-key";
	(void)state;

	return fd < 0 || write(fd, text, sizeof text - 1) != sizeof text - 1 || close(fd);
}

static int remove_keys(void **state)
{
	(void)state;
	return unlink(key_file);
}

static void check(const struct child *c, const char *path, const char *fields, int status)
{
	struct answer a = client_ask(c, path, fields, NULL);

	if (a.status != status)
		fail_msg("%s with %s: status %d, expected %d: %s", path, fields ? fields : "nothing", a.status, status,
		         a.body);
	answer_free(&a);
}

static void test_keys_over_http(void **state)
{
	const char *const arguments[] = { "--api-key-file", key_file,          "--host", "127.0.0.1",
		                          "--api-key",      "inline,and-more", NULL };
	struct child c = child_start(arguments);
	(void)state;

	check(&c, "/health", NULL, 200);
	check(&c, "/livez", NULL, 200);
	check(&c, "/v1/models", NULL, 401);
	check(&c, "/v1/models", "Authorization: Bearer first-key\r\n", 200);
	check(&c, "/v1/models", "Authorization: bearer second-key\r\n", 200);
	check(&c, "/v1/models", "X-Api-Key: second-key\r\n", 200);
	check(&c, "/v1/models", "Authorization: Bearer inline\r\n", 200);
	check(&c, "/v1/models", "Authorization: Bearer and-more\r\n", 200);
	check(&c, "/v1/models", "Authorization: Bearer inline,and-more\r\n", 401);
	check(&c, "/v1/models", "Authorization: Bearer first-ke\r\n", 401);
	check(&c, "/v1/models", "Authorization: Bearer first-keyy\r\n", 401);
	check(&c, "/v1/models", "Authorization: Bearer \r\n", 401);
	check(&c, "/v1/models", "Authorization: Basic first-key\r\n", 401);
	check(&c, "/v1/models", "Authorization: Bearer # ours\r\n", 401);
	assert_int_equal(child_stop(&c), 0);
}

static void test_keys(void **state)
{
	struct error e = { 0 };
	struct keys *k = keys_parse("a\nbb\n", 5, "keys", &e);
	(void)state;

	assert_non_null(k);
	assert_int_equal(keys_count(k), 2);
	assert_true(keys_has(k, "a", 1) && keys_has(k, "bb", 2));
	assert_false(keys_has(k, "b", 1) || keys_has(k, "bbb", 3) || keys_has(k, "", 0));
	assert_false(keys_has(k, "a\0", 2) && !keys_has(k, "a", 1));
	keys_free(k);
	/* One that is there twice is one client. */
	k = keys_parse("x\na\nb\na\nb\n", 10, "keys", &e);
	assert_non_null(k);
	assert_int_equal(keys_number(k, "a", 1), 2);
	assert_int_equal(keys_number(k, "b", 1), 3);
	assert_int_equal(keys_number(k, "c", 1), 0);
	keys_free(k);
	assert_string_equal(keys_bearer("Bearer a"), "a");
	assert_string_equal(keys_bearer("bearer   a"), "a");
	assert_string_equal(keys_bearer("BEARER "), "");
	assert_null(keys_bearer("Basic a"));
	assert_null(keys_bearer("Bearera"));
	assert_null(keys_bearer(NULL));
	static const char *const wrong[] = { "", "# nothing\n\n", "a b\n", "a\x01\n", "\xc3\xa9\n" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		e = (struct error){ 0 };
		assert_null(keys_parse(wrong[i], strlen(wrong[i]), "keys", &e));
		assert_true(e.code == ERROR_FORMAT && strncmp(e.text, "keys: ", 6) == 0);
	}
}

static void test_pages(void **state)
{
	static const char *const arguments[] = {
		"--cors-origin",
		"https://a.example",
		"--allow-host",
		"models.example",
		"--cors-origin",
		"localhost",
		NULL
	};
	struct child c = child_start(arguments);
	(void)state;

	struct answer a = client_ask(&c, "/v1/models", "Origin: https://a.example\r\n", NULL);
	assert_int_equal(a.status, 200);
	assert_string_equal(answer_field(&a, "Access-Control-Allow-Origin"), "https://a.example");
	answer_free(&a);
	a = client_ask(&c, "/v1/models", NULL, NULL);
	assert_null(answer_field(&a, "Access-Control-Allow-Origin"));
	answer_free(&a);
	check(&c, "/v1/models", "Origin: https://b.example\r\n", 403);
	static const char *const requested[] = {
		"OPTIONS /v1/models HTTP/1.1\r\nHost: models.example\r\nOrigin: https://a.example\r\n\r\n",
		"OPTIONS /v1/models HTTP/1.1\r\nHost: other.example\r\nOrigin: https://a.example\r\n\r\n",
		"OPTIONS /v1/models HTTP/1.1\r\nHost: models.example\r\nOrigin: https://b.example\r\n\r\n",
		"OPTIONS /v1/models HTTP/1.1\r\nHost: models.example\r\nOrigin: http://[::1]:300\r\n\r\n",
		"OPTIONS /v1/models HTTP/1.1\r\nHost: models.example\r\nOrigin: http://localhost\r\n\r\n",
		"OPTIONS /v1/models HTTP/1.1\r\nHost: models.example\r\nOrigin: http://localhost:1.b\r\n\r\n",
		"OPTIONS /v1/models HTTP/1.1\r\nHost: models.example\r\nOrigin: http://notlocalhost\r\n\r\n",
		"OPTIONS /v1/models HTTP/1.1\r\nHost: models.example\r\nOrigin: http://localhost.b\r\n\r\n"
	};
	static const bool may[] = { true, false, false, true, true, false, false, false };
	for (int i = 0; i < 8; i++) {
		int fd = client_connect(&c, false);
		client_send(fd, requested[i], strlen(requested[i]));
		a = client_read(fd, 10);
		assert_int_equal(a.status, i == 1 ? 403 : 200);
		const char *allowed = answer_field(&a, "Access-Control-Allow-Origin");
		assert_int_equal(allowed != NULL, may[i] || i == 1);
		assert_true(!allowed || strstr(requested[i], allowed));
		assert_int_equal(answer_field(&a, "Access-Control-Allow-Headers") != NULL, may[i]);
		answer_free(&a);
		close(fd);
	}
	assert_int_equal(child_stop(&c), 0);
}

/* A command line that is refused: the status, and what is said. */
static void refused(const char *arguments, int status, const char *said)
{
	char text[2048];
	const int got = child_says(false, arguments, text, sizeof text);

	if (got != status || !strstr(text, said))
		fail_msg("%s: status %d, expected %d and \"%s\": %s", arguments, got, status, said, text);
}

static void test_refused(void **state)
{
	(void)state;
	refused("", 2, "which model?");
	refused("x.gguf --host 0.0.0.0 --port 0", 1, "can be reached from other machines; give --api-key-file");
	refused("x.gguf --host :: --port 0", 1, "can be reached from other machines");
	refused("x.gguf --host no.such.name.invalid --port 0", 1, "which is no address of this machine");
	refused("x.gguf --port 0 --api-key-file /nowhere", 1, "/nowhere: cannot be read");
	refused("x.gguf --port 0 --api-key a,,b", 1, "--api-key has an empty key");
	refused("x.gguf --port 0 --api-key=", 1, "--api-key has an empty key");
	refused("x.gguf --port 0", 1, "x.gguf: cannot be opened");
	refused("x.gguf --port 70000", 2, "--port");
}

/* ---- systemd */

static struct sockaddr_un manager = { .sun_family = AF_UNIX };
static int inherited;

static void prepare(void)
{
	char pid[20];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	if (manager.sun_path[0])
		setenv("NOTIFY_SOCKET", manager.sun_path, 1);
	dup2(inherited, 3);
}

static void expect_notice(int fd, const char *expected)
{
	char got[100] = "";

	assert_true(recv(fd, got, sizeof got - 1, 0) > 0);
	assert_string_equal(got, expected);
}

/* Programs that it starts do not get this descriptor. */
static bool closes_on_exec(const struct child *c, int fd)
{
	char path[60], line[100];
	unsigned flags = 0;

	snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)c->pid, fd);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f) && sscanf(line, "flags: %o", &flags) != 1)
		;
	fclose(f);
	return flags & O_CLOEXEC;
}

/* A socket that was opened before, and a manager that is told. */
static void test_systemd(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	(void)state;

	snprintf(manager.sun_path, sizeof manager.sun_path, "%s.socket", key_file);
	assert_int_equal(bind(fd, (struct sockaddr *)&manager, sizeof manager), 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	inherited = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(inherited, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(inherited, 8), 0);
	assert_int_equal(getsockname(inherited, (struct sockaddr *)&at, &n), 0);
	struct child c = child_start_prepared(NULL, prepare);
	assert_int_equal(c.port, ntohs(at.sin_port));
	expect_notice(fd, "READY=1");
	check(&c, "/readyz", NULL, 200);
	assert_true(closes_on_exec(&c, 3));
	assert_int_equal(child_stop(&c), 0);
	expect_notice(fd, "STOPPING=1");
	close(inherited);
	close(fd);
	unlink(manager.sun_path);
}

/* ---- before a model is loaded */

struct early {
	struct child server; /* its port alone */
	int loading, ready;  /* answers */
	bool alive;
};

static void *look_until_ready(void *user)
{
	struct early *e = user;
	int percent = 0, before = 0;

	while (!e->ready) {
		struct answer a = client_ask(&e->server, "/health", NULL, NULL);
		const char *says = a.body ? strstr(a.body, "Loading model: ") : NULL;
		if (a.status == 503 && says && sscanf(says, "Loading model: %d", &percent) == 1 && percent >= before) {
			e->loading++;
			before = percent;
			answer_free(&a);
			a = client_ask(&e->server, "/livez", NULL, NULL);
			e->alive = a.status == 200;
		}
		e->ready = a.status == 200 && !says;
		assert_true(a.status == 200 || says);
		answer_free(&a);
	}
	return NULL;
}

/* While the model loads the server is alive, says how far it is, and is not ready. */
static void test_loading(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	struct early e = { 0 };
	pthread_t thread;
	(void)state;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 10 && !(e.loading && e.alive); i++) {
		static const char *const arguments[] = { "--no-cache", NULL };
		e = (struct early){ .alive = false };
		at.sin_port = 0;
		inherited = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(bind(inherited, (struct sockaddr *)&at, sizeof at), 0);
		assert_int_equal(listen(inherited, 8), 0);
		assert_int_equal(getsockname(inherited, (struct sockaddr *)&at, &n), 0);
		e.server.port = ntohs(at.sin_port);
		assert_int_equal(pthread_create(&thread, NULL, look_until_ready, &e), 0);
		struct child c = child_start_prepared(arguments, prepare);
		pthread_join(thread, NULL);
		assert_int_equal(child_stop(&c), 0);
		close(inherited);
	}
	assert_true(e.loading && e.alive);
}

/* --insecure listens anywhere; a second server finds the port taken. */
static void test_insecure(void **state)
{
	static const char *const arguments[] = { "--host", "0.0.0.0", "--insecure", NULL };
	struct child c = child_start(arguments);
	char second[200];
	(void)state;

	check(&c, "/v1/models", NULL, 200);
	snprintf(second, sizeof second, "x.gguf --port %d", c.port);
	refused(second, 1, "cannot be listened on");
	assert_int_equal(child_stop(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),    cmocka_unit_test(test_keys_over_http), cmocka_unit_test(test_pages),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_insecure),       cmocka_unit_test(test_systemd),
		cmocka_unit_test(test_loading),
	};

	return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
