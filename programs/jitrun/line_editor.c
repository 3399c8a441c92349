/* programs/jitrun/line_editor.c - lines that a person types. See line_editor.h.
 *
 * libedit edits the line; it is told here what it does not know by itself: a paste between the marks that terminals put
 * around it is text, whatever keys it looks like, and Ctrl-C clears the line. Bytes are read here and not by libedit,
 * because a signal must reach the line as a key does.
 */
#include "programs/jitrun/line_editor.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/jitrun/line_complete.h"
#include "programs/jitrun/line_history.h"

void line_editor_locale(void)
{
	bool found = setlocale(LC_CTYPE, "") != NULL;
	const char *set = nl_langinfo(CODESET);

	/* All UTF-8 is the same here, and a language's own rules for letters are of no use: it is C's in any case. */
	if (!found || strcmp(set, "UTF-8") == 0 || strcmp(set, "ANSI_X3.4-1968") == 0 || strcmp(set, "US-ASCII") == 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

/* What is no terminal, or has no editor. */
static char *read_plain(const char *prompt, enum line_outcome *how)
{
	const bool person = isatty(STDIN_FILENO) != 0;
	char *line = NULL;
	size_t room = 0;

	if (person) {
		fputs(prompt, stderr);
		fflush(stderr);
	}
	errno = 0;
	ssize_t n = getline(&line, &room, stdin);
	if (n < 0) {
		free(line); /* which keeps errno */
		*how = !errno ? LINE_OVER : errno == EINTR && person ? LINE_EMPTIED : LINE_FAILED;
		if (*how ==
		    LINE_EMPTIED) { /* the terminal has thrown away what was typed, and says not whether anything was */
			clearerr(stdin);
			fputc('\n', stderr);
		}
		return NULL;
	}
	if (n && line[n - 1] == '\n')
		line[n - 1] = 0;
	*how = LINE_READ;
	return line;
}

#ifdef HAVE_LIBEDIT

#include <histedit.h>
#include <utf8proc.h>
#include <wchar.h>

enum { KEY_INTERRUPT = 3, BYTES = 256 };
static const char paste_on[] = "\33[?2004h", paste_off[] = "\33[?2004l";
static const wchar_t paste_end[] = L"\33[201~";

static struct {
	EditLine *el;
	HistoryW *history;
	const char *const *commands;
	const char *prompt;
	bool marks; /* the terminal was asked to mark pastes */
	bool cancelled, emptied;
	struct termios before;
	char bytes[BYTES]; /* read and not looked at yet */
	size_t at, n;
	mbstate_t spelling;
} ed;
static volatile sig_atomic_t active, resized, continued;

/* ---- signals */

void line_editor_restore(void)
{
	if (!active)
		return;
	if (ed.marks && write(STDOUT_FILENO, paste_off, sizeof paste_off - 1) < 0)
		return;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &ed.before);
}

static void on_change(int sig)
{
	if (sig == SIGWINCH)
		resized = 1;
	else
		continued = 1;
}

/* Gives the terminal back, and lets the signal do what it does. */
static void on_leave(int sig)
{
	int keep = errno;
	struct sigaction once = { .sa_handler = SIG_DFL }, mine;
	sigset_t only;

	line_editor_restore();
	sigaction(sig, &once, &mine);
	sigemptyset(&only);
	sigaddset(&only, sig);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	raise(sig);
	sigaction(sig, &mine, NULL); /* of SIGTSTP: it goes on */
	errno = keep;
}

static void listen(int sig, void (*handler)(int))
{
	struct sigaction now;

	if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
		sigaction(sig, &(struct sigaction){ .sa_handler = handler }, NULL);
}

static void listen_to_all(void)
{
	listen(SIGWINCH, on_change);
	listen(SIGCONT, on_change);
	listen(SIGTSTP, on_leave);
	listen(SIGTERM, on_leave);
	listen(SIGHUP, on_leave);
	listen(SIGQUIT, on_leave);
}

static void mark_pastes(void)
{
	if (ed.marks) {
		fputs(paste_on, stdout);
		fflush(stdout);
	}
}

static void look_at_signals(EditLine *el)
{
	if (continued) { /* the program that had the terminal meanwhile left it in another mode */
		continued = 0;
		el_set(el, EL_PREP_TERM, 0);
		el_set(el, EL_PREP_TERM, 1);
		mark_pastes();
		el_set(el, EL_REFRESH);
	}
	if (resized) {
		resized = 0;
		el_resize(el);
	}
}

/* ---- keys */

/* A byte: 1, 0 at the end, -1 after a failure; a Ctrl-C is the byte it is elsewhere. */
static int next_byte(EditLine *el, char *out)
{
	while (ed.at == ed.n) {
		look_at_signals(el);
		if (interrupted) {
			interrupted = 0;
			*out = KEY_INTERRUPT;
			return 1;
		}
		ssize_t n = read(STDIN_FILENO, ed.bytes, sizeof ed.bytes);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return (int)n;
		ed.at = 0;
		ed.n = n > 0 ? (size_t)n : 0;
	}
	*out = ed.bytes[ed.at++];
	return 1;
}

static int next_key(EditLine *el, wchar_t *out)
{
	char c = 0;
	int got;

	while ((got = next_byte(el, &c)) == 1) {
		bool begun = !mbsinit(&ed.spelling);
		size_t n = mbrtowc(out, &c, 1, &ed.spelling);
		if (n == (size_t)-2)
			continue;
		if (n == (size_t)-1) { /* what was begun is no character; this byte may begin one */
			memset(&ed.spelling, 0, sizeof ed.spelling);
			ed.at -= begun && ed.at > 0;
			*out = L'\xfffd';
		}
		return 1;
	}
	return got;
}

/* Ends the line as Enter does; its caller sees that it was cancelled. */
static unsigned char on_interrupt(EditLine *el, int key)
{
	const LineInfoW *line = el_wline(el);

	ed.emptied = line->lastchar == line->buffer;
	ed.cancelled = true;
	el_cursor(el, (int)(line->lastchar - line->cursor));
	el_set(el, EL_REFRESH);
	fputs("^C\n", stdout);
	fflush(stdout);
	return CC_NEWLINE;
}

/* Whether a text of wide characters ends with the mark. */
static bool ends_paste(const wchar_t *text, size_t n)
{
	const size_t m = sizeof paste_end / sizeof *paste_end - 1;

	return n >= m && wmemcmp(text + n - m, paste_end, m) == 0;
}

/* Terminals send line ends as the Enter key does. The last one is the end of a line, not the beginning of another. */
static size_t as_text(wchar_t *text, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == L'\r' && i + 1 < n && text[i + 1] == L'\n')
			continue;
		if (text[i])
			text[to++] = text[i] == L'\r' ? L'\n' : text[i];
	}
	return to && text[to - 1] == L'\n' ? to - 1 : to;
}

static unsigned char on_paste(EditLine *el, int key)
{
	wchar_t *text = NULL, c;
	size_t n = 0, room = 0;
	int got;

	while ((got = el_wgetc(el, &c)) == 1 && c != KEY_INTERRUPT && !ends_paste(text, n)) {
		if (n + 2 > room) {
			wchar_t *more = realloc(text, (room = room ? 2 * room : 256) * sizeof *more);
			if (!more)
				break;
			text = more;
		}
		text[n++] = c;
		if (ends_paste(text, n)) {
			n -= sizeof paste_end / sizeof *paste_end - 1;
			text[as_text(text, n)] = 0;
			bool taken = el_winsertstr(el, text) == 0 || !*text;
			free(text);
			return taken ? CC_REFRESH : CC_ERROR;
		}
	}
	free(text);
	return got != 1 ? CC_EOF : c == KEY_INTERRUPT ? on_interrupt(el, key) : CC_ERROR;
}

/* ---- Tab */

static char *as_utf8(const wchar_t *text, size_t n);
static wchar_t *from_utf8(const char *text);

/* A command at the beginning of a line, or the file of one; elsewhere Tab is a tab. */
static unsigned char on_tab(EditLine *el, int key)
{
	const LineInfoW *line = el_wline(el);
	bool listed = false, taken = false;
	char *typed = as_utf8(line->buffer, (size_t)(line->cursor - line->buffer));
	char *more = typed ? line_complete(ed.commands, typed, &listed) : NULL;

	if (more && *more) {
		wchar_t *wide = from_utf8(more);
		taken = wide && el_winsertstr(el, wide) == 0;
		free(wide);
	} else if (!more) {
		taken = el_insertstr(el, "\t") == 0;
	}
	free(more);
	free(typed);
	return listed ? CC_REDISPLAY : taken ? CC_REFRESH : CC_ERROR;
}

/* ---- beginning and end */

static char *get_prompt(EditLine *el) { return (char *)(uintptr_t)ed.prompt; }

/* Keys that terminals have and libedit's own table lacks; then ours. */
static void bind_keys(EditLine *el)
{
	static const char *const keys[][2] = {
		{ "\\e[1~", "ed-move-to-beg" },      { "\\e[7~", "ed-move-to-beg" },
		{ "\\e[H", "ed-move-to-beg" },       { "\\eOH", "ed-move-to-beg" },
		{ "\\e[4~", "ed-move-to-end" },      { "\\e[8~", "ed-move-to-end" },
		{ "\\e[F", "ed-move-to-end" },       { "\\eOF", "ed-move-to-end" },
		{ "\\e[3~", "ed-delete-next-char" }, { "\\e[2~", "em-toggle-overwrite" },
		{ "\\e[1;5C", "em-next-word" },      { "\\e[5C", "em-next-word" },
		{ "\\e[1;5D", "ed-prev-word" },      { "\\e[5D", "ed-prev-word" },
		{ "^R", "em-inc-search-prev" },      { "\\e[200~", "jitrun-paste" },
		{ "^C", "jitrun-interrupt" },        { "\t", "jitrun-tab" }
	};

	/* Wide texts are kept as they are; of others the library makes copies that it never frees. */
	el_wset(el, EL_ADDFN, L"jitrun-paste", L"take a paste as text", on_paste);
	el_wset(el, EL_ADDFN, L"jitrun-interrupt", L"clear the line", on_interrupt);
	el_wset(el, EL_ADDFN, L"jitrun-tab", L"complete a command", on_tab);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		el_set(el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

void line_editor_begin(const char *const *commands, bool history)
{
	const char *term = getenv("TERM");

	if (ed.el || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &ed.before) != 0)
		return;
	ed.commands = commands;
	ed.el = el_init("jitrun", stdin, stdout, stderr);
	if (!ed.el)
		return;
	ed.history = line_history_open(history);
	el_set(ed.el, EL_EDITOR, "emacs");
	el_set(ed.el, EL_SIGNAL, 0);
	el_set(ed.el, EL_SETTY, "-d", "-inlcr", "-icrnl",
	       NULL); /* or the two bytes that end a line in a paste were two lines */
	el_set(ed.el, EL_PROMPT, get_prompt);
	el_set(ed.el, EL_GETCFN, next_key);
	if (ed.history)
		el_wset(ed.el, EL_HIST, history_w, ed.history);
	el_source(ed.el, NULL); /* the user's own keys, from ~/.editrc */
	bind_keys(ed.el);
	ed.marks = term && *term && strcmp(term, "dumb") != 0;
	active = 1;
	listen_to_all();
	mark_pastes();
}

bool line_editor_keep(bool on) { return ed.history && line_history_keep(on); }

void line_editor_end(void)
{
	if (!ed.el)
		return;
	if (ed.marks) {
		fputs(paste_off, stdout);
		fflush(stdout);
	}
	active = 0;
	el_end(ed.el);
	line_history_close(ed.history);
	ed.el = NULL;
	ed.history = NULL;
}

static char *as_utf8(const wchar_t *text, size_t n)
{
	char *out = malloc(4 * n + 1);
	size_t to = 0;

	for (size_t i = 0; out && i < n; i++)
		to += (size_t)utf8proc_encode_char((utf8proc_int32_t)text[i], (utf8proc_uint8_t *)out + to);
	if (out)
		out[to] = 0;
	return out;
}

/* NULL: no memory. */
static wchar_t *from_utf8(const char *text)
{
	size_t n = strlen(text), to = 0;
	wchar_t *out = malloc((n + 1) * sizeof *out);

	for (size_t i = 0; out && i < n;) {
		utf8proc_int32_t c;
		utf8proc_ssize_t k =
			utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(n - i), &c);
		out[to++] = k > 0 ? (wchar_t)c : L'\xfffd';
		i += k > 0 ? (size_t)k : 1;
	}
	if (out)
		out[to] = 0;
	return out;
}

void line_editor_remember(const char *message)
{
	wchar_t *line = ed.history && *message ? from_utf8(message) : NULL;

	if (line)
		line_history_add(ed.history, line);
	free(line);
}

char *line_editor_read(const char *prompt, enum line_outcome *how)
{
	int n = 0;

	if (!ed.el)
		return read_plain(prompt, how);
	ed.prompt = prompt;
	ed.cancelled = ed.emptied = false;
	resized = 1; /* perhaps, while an answer was written */
	errno = 0;
	const wchar_t *line = el_wgets(ed.el, &n);
	if (ed.cancelled) {
		*how = ed.emptied ? LINE_EMPTIED : LINE_CANCELLED;
		return NULL;
	}
	if (!line || n <= 0) {
		*how = LINE_OVER; /* libedit does not tell of failures */
		return NULL;
	}
	char *text = as_utf8(line, (size_t)n - (line[n - 1] == L'\n'));
	*how = text ? LINE_READ : LINE_FAILED;
	return text;
}

#else

void line_editor_begin(const char *const *commands, bool history) {}
void line_editor_end(void) {}
bool line_editor_keep(bool on) { return false; }
void line_editor_restore(void) {}
void line_editor_remember(const char *message) {}
char *line_editor_read(const char *prompt, enum line_outcome *how) { return read_plain(prompt, how); }

#endif
