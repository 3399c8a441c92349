/* jit/store/cache.h - code objects kept between runs: a search path of directories and pack files.
 *
 * Owns: directories of one file per key (jit/store/record.h says what is in it: the whole key, a zstd body, a checksum
 * over everything), written to a temporary file, fsync, rename; the order sources are asked in; the limit on their
 * size. Anything wrong with an entry (cut, flipped bit, another key's content, another version) is a counted miss,
 * never executed; what is made in its place is stored anew. A look-up tells such damage, and that the system refuses,
 * from what is not there, for those who cannot make it. Safe among processes.
 *
 * TRUST. Code that is executed must come from the one who runs it. The checksums find damage, not forgery: who may
 * write an entry says what is executed. A source that others can change is refused with a sentence: a directory, an
 * entry or a pack must belong to the effective user, or to root, and have no write permission for group and others.
 * What belongs to root is only read (unless one is root): root could change this program as well. A user's files are
 * not good enough for root.
 *
 * EVICTION. When the entries of a directory exceed its limit, those used longest ago go first (the file's mtime says
 * when: reading moves it now and then). Every process holds a read lock on a byte of the file "lock" for each entry it
 * used, the byte at the number of the entry's file, as long as its cache is open; locked entries are never evicted. The
 * system gives the locks of a dead process back. What writers that died left behind counts too, and goes when the
 * directory is measured: at a process's first store, now and then later, and by cache_gc.
 */
#ifndef JIT_CACHE_H
#define JIT_CACHE_H

#include "jit/store/record.h"

struct cache;
/* damaged: the misses that found something, and could not use it; failed: those at which the system refused, or had no
 * memory. */
struct cache_counters {
	uint64_t hits, misses, damaged, failed, stored, store_failed, evicted;
};

enum { CACHE_DEFAULT_LIMIT_MIB = 256, CACHE_MAX_SOURCES = 32 };
struct cache_options {
	const char
		*first; /* a pack or a packed model that is asked before all others; its name may hold ':'; or NULL */
	uint64_t limit_bytes; /* of each directory; 0: CACHE_DEFAULT_LIMIT_MIB */
	bool read_only;       /* no directory is made or written, nothing is locked or marked as used */
};

/* Opens "SOURCE:SOURCE:...", asked in this order. A source is a pack file when it is a regular file or its name ends in
 * ".jkp", else a directory, which is made (mode 0700, its parents too). The first directory that can be written
 * receives what is new. opt may be NULL; path too, when opt->first is not. NULL and err: ERROR_ARGUMENT when a source
 * cannot be trusted, ERROR_IO when it cannot be opened, ERROR_FORMAT when a pack is none. */
struct cache *cache_open(const char *path, const struct cache_options *opt, struct error *err);
void cache_close(struct cache *c);
/* $JITRUN_CACHE, or $XDG_CACHE_HOME/jitrun, or ~/.cache/jitrun into out; false when none is set. */
bool cache_default_path(char *out, size_t cap);

enum cache_source_kind { CACHE_DIRECTORY, CACHE_PACK };
struct cache_source {
	const char *path; /* as it was given; lives as long as the cache */
	enum cache_source_kind kind;
	bool writable;               /* receives what is new, or could */
	struct cache_counters count; /* misses: asked and not had, so later sources are asked less */
};
/* The path of the directory that receives what is new; NULL: there is none. Lives as long as the cache. */
const char *cache_directory(const struct cache *c);
unsigned cache_source_count(const struct cache *c);
void cache_source_get(const struct cache *c, unsigned i, struct cache_source *out);

/* ---- kernels; thread-safe */

/* RECORD_FOUND: source (may be NULL) is the number of the one that had it, where it is held as used until cache_close.
 * RECORD_FAILED: no source gave it, and one of them could not be asked, which err (may be NULL) says. RECORD_DAMAGED:
 * one has it, and it cannot be used. */
enum record_answer cache_load(struct cache *c, const struct key *key, struct object *out, unsigned *source,
                              struct error *err);
/* The same of many: out[i].code is NULL unless answer[i] is RECORD_FOUND, where source[i] is the number. */
void cache_load_all(struct cache *c, const struct key *const *key, size_t n, struct object *out,
                    enum record_answer *answer, unsigned *source);
/* Into the first writable directory. A failure, or that there is none, is counted; err may be NULL. */
bool cache_store(struct cache *c, const struct key *key, const struct object *o, struct error *err);
/* Why the first store that failed did; NULL: none did. */
const char *cache_store_trouble(const struct cache *c);
/* Of the cache as a whole: a miss is a key that no source had. */
void cache_count(const struct cache *c, struct cache_counters *out);

/* ---- all of it, for programs that look after a cache */

struct cache_item {
	struct key key;      /* all zero when the entry does not say (damage, another version) */
	bool readable;       /* the checksum fits and this program knows the layout; code of another version of the code
	                        generator is readable */
	uint32_t code_bytes; /* unpacked */
	uint64_t stored_bytes; /* the file's, or the pack's share */
	unsigned source;
	const char *path;    /* of the source */
	char file[32];       /* of the entry in it; "" in a pack */
	int64_t last_use;    /* seconds since 1970; 0: unknown (packs) */
	const char *trouble; /* NULL, or what is wrong with it, for a person: "damaged", "of another version" */
	bool failed;         /* that is that the system does not let it be read, so it may be as good as any */
};
/* Visits every entry, source by source, in order of key text within one; those that do not say their key come last.
 * visit returns false to stop. False and err: a source could not be listed. */
bool cache_each(struct cache *c, bool (*visit)(const struct cache_item *, void *), void *user, struct error *err);

/* The keys of all readable entries, source by source; *keys is malloc'ed. False: err, and *n are there all the same. */
bool cache_keys(struct cache *c, struct key **keys, size_t *n, struct error *err);

/* The code of an item that was visited. RECORD_FAILED: err. */
enum record_answer cache_read(struct cache *c, const struct cache_item *item, struct object *out, struct error *err);

/* Takes an item that was visited out of a writable directory. */
bool cache_remove_item(struct cache *c, const struct cache_item *item, struct error *err);

/* Reads every entry and unpacks it. report (may be NULL) is told every bad one, whose trouble says what is wrong.
 * *sound and *bad count. remove_bad: takes bad files, unless they could not be read, out of writable directories. */
bool cache_verify(struct cache *c, bool remove_bad, void (*report)(const struct cache_item *, void *), void *user,
                  uint64_t *sound, uint64_t *bad, struct error *err);

/* Removes key from every writable directory; *removed counts. */
bool cache_remove(struct cache *c, const struct key *key, unsigned *removed, struct error *err);

/* Temporary files: of writers at work, and (abandoned) of those that died. */
struct cache_leftovers {
	uint64_t files, abandoned, bytes;
};
/* Bytes of the entries of the directories, or of those that can be written. left may be NULL. */
bool cache_size(struct cache *c, bool writable, uint64_t *bytes, uint64_t *entries, struct cache_leftovers *left,
                struct error *err);

struct cache_gc {
	uint64_t entries, bytes, removed, removed_bytes, in_use;
};
/* Makes each writable directory fit limit_bytes (0: removes everything), the least recently used first; first of all
 * goes what this program cannot use: damage, other versions of the layout, leftovers of dead writers. What is in use
 * stays, and is counted. */
bool cache_gc(struct cache *c, uint64_t limit_bytes, struct cache_gc *out, struct error *err);

/* Writes the entries keep() accepts (NULL: all of this code generator, and what drivers made of it) to a pack; a key
 * that several sources have is taken from the first. *n counts. */
bool cache_export(struct cache *c, const char *pack, bool (*keep)(const struct key *, void *), void *user, uint64_t *n,
                  struct error *err);
/* How code is made here, to compare. linker: NULL without a card's driver. */
struct driver_linker;
struct cache_maker {
	compile_build_fn build;
	const struct driver_linker *linker;
};
/* Stores every entry of a pack in the first writable directory. *n counts those stored. The code of each is first made
 * anew and compared; one that differs, or that cannot be made here, is an error that names it, and nothing is stored.
 * maker NULL: all is taken as it is, that of other code generators too. */
bool cache_import(struct cache *c, const char *pack, const struct cache_maker *maker, uint64_t *n, struct error *err);

#endif
