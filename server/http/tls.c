/* server/http/tls.c - encryption of what clients and server say, by GnuTLS. */
#include "server/http/tls.h"

#ifdef HAVE_GNUTLS
#include <gnutls/gnutls.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "server/request/text_file.h"

enum { MAX = 1 << 20 };

static char *read_pem(const char *path, const char *what, struct error *err)
{
	size_t n = 0;
	char *text = text_file_read(path, MAX, &n, err);

	if (text && strlen(text) == n && strstr(text, "-----BEGIN "))
		return text;
	if (text)
		error_set(err, ERROR_FORMAT, "%s: is no %s in PEM form, which begins with -----BEGIN", path, what);
	free(text);
	return NULL;
}

bool tls_read(struct tls *t, const char *certificate, const char *key, struct error *err)
{
	if (!certificate && !key)
		return true;
	if (!certificate || !key)
		return error_set(err, ERROR_ARGUMENT, "--tls-cert and --tls-key belong together, and %s is missing",
		                 certificate ? "--tls-key" : "--tls-cert");
#ifndef HAVE_GNUTLS
	return error_set(err, ERROR_UNSUPPORTED,
	                 "this jitserve was built without TLS; leave --tls-cert and --tls-key out, and put a reverse "
	                 "proxy that encrypts before the server");
#endif
	t->certificate = read_pem(certificate, "certificate", err);
	t->key = t->certificate ? read_pem(key, "key", err) : NULL;
	return t->key != NULL;
}

static void forget_key(struct tls *t)
{
	if (t->key)
		explicit_bzero(t->key, strlen(t->key));
	free(t->key);
	free(t->certificate);
	t->key = t->certificate = NULL;
}

#ifndef HAVE_GNUTLS

bool tls_open(struct tls *t, const char *address, struct error *err)
{
	(void)t;
	(void)address;
	(void)err;
	return true;
}

void tls_free(struct tls *t) { forget_key(t); }

struct tls_line *tls_begin(const struct tls *t, int fd)
{
	(void)t;
	(void)fd;
	return NULL;
}

ssize_t tls_send(struct tls_line *l, const char *p, size_t n)
{
	(void)l;
	(void)p;
	(void)n;
	return -1;
}

ssize_t tls_receive(struct tls_line *l, char *p, size_t n)
{
	(void)l;
	(void)p;
	(void)n;
	return -1;
}

void tls_end(struct tls_line *l) { (void)l; }

void tls_finish(struct tls_line *l) { (void)l; }

#else

static const char versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE";

struct tls_line {
	gnutls_session_t session;
	bool greeted; /* both sides know each other */
	bool sends;   /* some bytes were taken, and are on their way still */
};

bool tls_open(struct tls *t, const char *address, struct error *err)
{
	gnutls_certificate_credentials_t made = NULL;
	const gnutls_datum_t certificate = { (unsigned char *)t->certificate, (unsigned)strlen(t->certificate) };
	const gnutls_datum_t key = { (unsigned char *)t->key, (unsigned)strlen(t->key) };
	int why = gnutls_certificate_allocate_credentials(&made);

	if (why == 0)
		why = gnutls_certificate_set_x509_key_mem(made, &certificate, &key, GNUTLS_X509_FMT_PEM);
	forget_key(t);
	t->credentials = made;
	return why == 0 || error_set(err, ERROR_IO, "%s cannot be served with this certificate and key: %s", address,
	                             gnutls_strerror(why));
}

void tls_free(struct tls *t)
{
	if (t->credentials)
		gnutls_certificate_free_credentials(t->credentials);
	t->credentials = NULL;
	forget_key(t);
}

struct tls_line *tls_begin(const struct tls *t, int fd)
{
	struct tls_line *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	if (gnutls_init(&l->session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) == 0) {
		gnutls_transport_set_int(l->session, fd);
		if (gnutls_priority_set_direct(l->session, versions, NULL) == 0 &&
		    gnutls_credentials_set(l->session, GNUTLS_CRD_CERTIFICATE, t->credentials) == 0)
			return l;
		gnutls_deinit(l->session);
	}
	free(l);
	return NULL;
}

/* What a call that may wait said. */
static ssize_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED || !gnutls_error_is_fatal((int)n) ? 0 : -1;
}

/* 1: done; 0: not yet; -1: it will not be. */
static int greet(struct tls_line *l)
{
	if (l->greeted)
		return 1;
	int said = gnutls_handshake(l->session);
	l->greeted = said == GNUTLS_E_SUCCESS;
	return l->greeted ? 1 : (int)result(said);
}

ssize_t tls_send(struct tls_line *l, const char *p, size_t n)
{
	int greeted = greet(l);

	if (greeted <= 0)
		return greeted;
	/* The library keeps what it has taken, and wants to be asked for its rest. */
	ssize_t sent = l->sends ? gnutls_record_send(l->session, NULL, 0) : gnutls_record_send(l->session, p, n);
	l->sends = sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED;
	return result(sent);
}

ssize_t tls_receive(struct tls_line *l, char *p, size_t n)
{
	int greeted = greet(l);

	if (greeted <= 0)
		return greeted;
	ssize_t got = gnutls_record_recv(l->session, p, n);
	return got == 0 ? -1 : result(got);
}

void tls_end(struct tls_line *l)
{
	if (l->greeted)
		gnutls_bye(l->session, GNUTLS_SHUT_WR);
}

void tls_finish(struct tls_line *l)
{
	if (!l)
		return;
	gnutls_deinit(l->session);
	free(l);
}

#endif
