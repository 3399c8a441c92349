/* grammar/schema/json_parts.h - the machine that reads JSON by a schema: what its files share.
 *
 * The text is parsed as any JSON, with a stack of frames, a frame for each value that was begun. Schemas are applied
 * side by side: a frame has a group, the nodes that are asked about its value, directly (roots) and by those
 * (all_of, any_of, ...). Each node has failed, or is still open; what follows for the roots is boolean logic with three
 * values. What the frames below make of roots that fail is worked out when a frame is begun, as the group's goal: for
 * each set of failed roots whether the text can still be right. So a frame need not look below itself.
 *
 * A frame is an array of words, kept once (interner.h): its number is the machine's "top". A state is a frame and the
 * state below.
 */
#ifndef GRAMMAR_JSON_PARTS_H
#define GRAMMAR_JSON_PARTS_H

#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/schema/interner.h"
#include "grammar/schema/json_spelling.h"
#include "grammar/machine/machine.h"
#include "grammar/schema/schema.h"

/* Nodes applied to one value; roots whose goals are a whole table; bytes that indent a line; bytes of a number that is
 * compared; words of a frame. */
enum {
	GROUP_NODES = 512,
	GOAL_TABLE = 8,
	SPACE_MAX = 40,
	NUMBER_MAX = 100,
	FRAME_WORDS = 2048,
	PATTERNS_MAX = FRAME_WORDS,
	RECENT = 1 << 13,
	RECENT_MEMBERS = 8
};

enum frame_kind {
	FRAME_ROOT,
	FRAME_START,
	FRAME_WORD,
	FRAME_STRING,
	FRAME_NUMBER,
	FRAME_ARRAY,
	FRAME_OBJECT,
	FRAME_KEY,
	FRAME_END
};

enum verdict { OPEN, FAILED, PASSED };

struct group {
	uint32_t *node; /* the roots first */
	uint32_t n, n_roots;
	uint32_t *by_number; /* indices, sorted by node */
	/* Up to GOAL_TABLE roots: a bit for each set of failed ones, 1 where the text can still be right; more: a bit
	 * for each root, 1 where it must not fail. */
	uint32_t *goal;
	uint32_t length_max; /* characters of a string are counted up to here; 0: they are not counted */
	uint32_t automata;   /* of all nodes */
	bool joint;          /* strings must be looked at by all nodes together (json_ending.c) */
	bool mixed;          /* what one of the nodes refuses may be right */
	bool joint_numbers;  /* as joint, for numbers (json_number.c) */
	uint8_t *class_of;   /* [byte]: of all automata; NULL: not known yet */
	bool numbers;        /* a rule depends on the value of a number */
	bool wholes;         /* and the only rule is that it is whole */
	/* Objects. */
	uint32_t *name; /* that some node names, sorted by their bytes */
	uint32_t n_names, n_patterns, members_max;
	bool *closed;      /* [name]: no value is right for it */
	int perilous;      /* json_names.c: -1 not known yet */
	uint32_t *rank;    /* [name]: its rank in the order of the schemas; RANK_NONE: it has none (json_order.c) */
	uint32_t n_ranked; /* that have one */
	uint32_t **known;  /* [node]: bits of names that a closed one takes; NULL: it is not closed (json_closed.c) */
	bool counts;       /* somebody counts members: none may come twice */
	bool limits_names; /* and patterns say which names there are, so that they can come to an end */
	uint32_t items_max, n_contains;
	bool asks_items;    /* somebody asks something of an item */
	bool unique;        /* somebody asks that items differ */
	int begins;         /* whether any value can be right: -1 not known yet */
	uint32_t evaluated; /* how deep it is being evaluated (json_begins.c); 0: it is not */
};

/* What was found out about how strings can end (json_ending.c). */
struct endings {
	struct interner whole, bare; /* string frames; without their lengths */
	uint8_t *hope;               /* by number of `whole` */
	size_t hope_room;
	struct bare {
		uint32_t distance;
		struct {
			uint32_t reach, farthest;
			bool known;
		} easy[EASY_CLASSES];
	} * of; /* by number of `bare` */
	size_t of_room;
};

/* Items that must differ (json_value.c, json_unique.c). */
struct values {
	struct interner bytes;  /* of their texts: one behind another */
	struct interner plain;  /* values */
	struct interner lists;  /* a list and one more value */
	struct interner others; /* the schemas for what comes next */
	uint32_t *node;         /* their nodes, by number of `others` */
	size_t node_room;
};

/* Whether arrays can be ended (json_contained.c). */
struct contained {
	struct interner arrays;
	uint8_t *hope; /* by number */
	size_t room;
};

struct json_machine {
	struct machine machine;
	struct schema *schema;
	bool writes;  /* each value has one spelling, or few: machine_to_write_schema() */
	bool compact; /* and there is no white space */
	bool ordered; /* members come in the order of the schemas (json_order.c) */
	struct interner frames, states, groups_by_words, results, outcomes;
	struct group *group; /* by number of groups_by_words */
	size_t group_room;
	uint32_t **row; /* [frame][byte]: its outcome, of outcomes; 0: not known yet */
	size_t row_room;
	size_t rows;
	struct endings endings;
	struct values values;
	struct contained contained;
	struct name_known {
		uint8_t leads, easy[EASY_CLASSES];
		uint32_t reach[EASY_CLASSES];
	} * names; /* [frame]: json_names.c */
	size_t names_room;
	/* Objects whose members were given groups lately (json_object.c): what each group follows from. */
	struct member_group {
		uint32_t w[FRAME_WORDS], child;
		size_t n;
	} member[RECENT_MEMBERS];
	/* json_begins.c: groups being asked, the outermost of them that an answer rests on, and all that were asked. */
	uint32_t asking, rests_on, evaluations;
	struct recent {
		uint32_t state, byte, next;
	} recent[RECENT]; /* steps taken lately: those of a vocabulary go over few states */
};

/* What a byte does to a frame: it becomes `frame`; then `child` is put on it, or it is taken away with a result. */
enum outcome_kind { DIES, STAYS, PUSHES, POPS };
struct outcome {
	enum outcome_kind kind;
	bool again;      /* the byte is read once more, by the new top */
	uint32_t frame;  /* STAYS, PUSHES */
	uint32_t child;  /* PUSHES */
	uint32_t result; /* POPS */
};

/* A frame being looked at, or made. Head: kind, group, a bit for each failed node; the rest is the kind's. */
struct frame {
	uint32_t w[FRAME_WORDS];
	size_t n;
	bool failed; /* it has too many words */
};
static inline size_t bits_words(size_t bits) { return (bits + 31) / 32; }
static inline bool bit(const uint32_t *w, size_t i) { return w[i / 32] >> (i % 32) & 1; }
static inline void set_bit(uint32_t *w, size_t i) { w[i / 32] |= 1u << (i % 32); }
enum { FRAME_HEAD = 2 };

static inline void frame_copy(struct frame *to, const struct frame *from)
{
	memcpy(to->w, from->w, from->n * sizeof *from->w);
	to->n = from->n;
	to->failed = from->failed;
}
void frame_begin(struct frame *f, enum frame_kind kind, uint32_t group, size_t n_nodes);
void frame_push(struct frame *f, uint32_t word);
uint32_t frame_keep(struct json_machine *m, const struct frame *f);
void frame_load(const struct json_machine *m, uint32_t number, struct frame *f);
static inline const struct group *frame_group(const struct json_machine *m, const struct frame *f)
{
	return &m->group[f->w[1]];
}
static inline uint32_t *frame_failed(struct frame *f) { return f->w + FRAME_HEAD; }
/* The words behind the head. */
static inline uint32_t *frame_rest(const struct json_machine *m, struct frame *f)
{
	return f->w + FRAME_HEAD + bits_words(frame_group(m, f)->n);
}
struct outcome stays(struct json_machine *m, const struct frame *f);
struct outcome pops(struct json_machine *m, const uint32_t *words, size_t n);
static inline struct outcome dies(void) { return (struct outcome){ .kind = DIES }; }

/* json_group.c */
uint32_t group_make(struct json_machine *m, const uint32_t *roots, size_t n, const uint32_t *goal, size_t goal_words);
void group_clear(struct group *g);
uint32_t group_index(const struct group *g, uint32_t node);                        /* in it; UINT32_MAX: not there */
uint32_t group_name(const struct schema *s, const struct group *g, uint32_t name); /* in it; it is there */
/* Nodes that failed, and for objects which names were seen (NULL: no object). */
struct facts {
	const uint32_t *failed, *seen;
	bool final;    /* what has not failed has passed */
	unsigned kind; /* of the value, where it is known: what asks nothing of it has passed */
	/* Instead of group_alive(), for a child's goal: nodes that have failed by a child that fails some of its roots.
	 */
	bool (*leads)(void *user, const uint32_t *failed, const uint32_t *root, size_t n_roots,
	              const uint32_t *failed_roots);
	void *user;
};
/* A bit for each root that failed; the others are open, or with `final` passed. */
void group_judge(const struct json_machine *m, const struct group *g, const struct facts *f, uint32_t *failed_roots);
bool group_alive(const struct json_machine *m, const struct group *g, const struct facts *f);
/* json_begins.c: whether some value can be right. */
bool group_begins(struct json_machine *m, uint32_t group);
/* Requests of a frame for a child: node `from` of its group (an index) fails when node `to` (a number) does; where
 * `to` is wanted for counting only, from is UINT32_MAX. */
struct request {
	uint32_t from, to;
};
uint32_t group_child(struct json_machine *m, uint32_t group, const struct facts *f, const struct request *r, size_t n);
/* Marks what fails by a child's result, which is a bit for each of its failed roots. */
void group_child_failed(const struct json_machine *m, uint32_t child, const uint32_t *result, const struct request *r,
                        size_t n, uint32_t *failed);
/* Taken away with its verdict, if the text can still be right. */
struct outcome group_done(struct json_machine *m, struct frame *f, const uint32_t *seen);

/* A step of each kind, and what a frame becomes when the one above it is done (0: the text is dead). json_start.c: */
struct outcome start_step(struct json_machine *m, struct frame *f, uint8_t byte);
struct outcome word_step(struct json_machine *m, struct frame *f, uint8_t byte);
struct outcome end_step(struct json_machine *m, struct frame *f, uint8_t byte);
uint32_t start_frame(struct json_machine *m, uint32_t group, uint32_t space);
struct outcome string_begin(struct json_machine *m, struct frame *f);
struct outcome string_step(struct json_machine *m, struct frame *f, uint8_t byte);
/* A string's frame takes bytes of its value, and characters; json_string.c. */
void string_feed(const struct json_machine *m, struct frame *f, const uint8_t *bytes, unsigned n);
void string_count(const struct json_machine *m, struct frame *f);
/* Whether it may end, as far as its automata are concerned, or with its length. */
bool string_may_end(struct json_machine *m, const struct frame *f, bool length);
/* Behind the head: the text's state (3 words), the characters, a state for each automaton of the group's nodes. */
enum { STRING_TEXT, STRING_COUNT = 3, STRING_AUTOMATA };
/* json_ending.c: whether a string, which is between two characters or inside one, can be ended; and for how many
 * characters of a class that stays so. */
bool string_can_succeed(struct json_machine *m, const struct frame *f);
uint32_t string_can_succeed_for(struct json_machine *m, const struct frame *f, enum easy class);
void endings_clear(struct endings *e);
/* machine.h: easy */
uint32_t string_easy(struct json_machine *m, uint32_t frame, enum easy class);
uint32_t key_easy(struct json_machine *m, uint32_t frame, enum easy class);
/* Whether a text is a number, and right by a node. */
bool number_is_complete(const char *text, size_t n);
/* Whether the text, where it has an exponent, may have that where somebody looks at the value. */
bool number_may_have_exponent(const char *text, size_t n);
bool number_fits(const struct schema *s, const struct schema_node *n, const struct decimal *d);
/* json_number_ending.c: whether the text that begins a number, as far as the frame knows, can become a right one. */
bool number_can_succeed(struct json_machine *m, const struct frame *f, const char *text, size_t n);
/* json_number_finding.c: the nodes that failed before the number, and how it begins. Its bytes, 0: none was found; and
 * whether it is one as it stands. */
struct number_sought {
	struct json_machine *m;
	const struct group *g;
	const uint32_t *failed;
	const char *text;
	size_t n;
};
size_t number_find(const struct number_sought *sought, char found[SPELLED_MAX + 1]);
bool number_is_found(const struct number_sought *sought);
/* json_number_writing.c: for those who write. */
bool number_can_be_written(struct json_machine *m, struct frame *f);
struct outcome number_begin_writing(struct json_machine *m, struct frame *f, uint8_t byte);
struct outcome number_write(struct json_machine *m, struct frame *f, uint8_t byte);
struct outcome number_begin(struct json_machine *m, struct frame *f, uint8_t byte);
struct outcome number_step(struct json_machine *m, struct frame *f, uint8_t byte);
struct outcome array_begin(struct json_machine *m, struct frame *f, uint32_t space);
struct outcome array_step(struct json_machine *m, struct frame *f, uint8_t byte);
/* value: the item's number, where items must differ; 0: it cannot be compared. */
/* Whether there are items for an array, each of which can be right by itself. */
bool array_possible(struct json_machine *m, struct frame *f);
/* json_array.c for json_contained.c: the end; nodes fail that have no room for an item; what is asked of the next one;
 * one more that fails some of its roots, as far as "contains" counts; without what does not matter to the end. */
struct outcome array_end(struct json_machine *m, struct frame *f);
void array_fail_full(const struct json_machine *m, struct frame *f);
size_t array_requests(struct json_machine *m, struct frame *f, struct request *r);
void array_count(const struct json_machine *m, struct frame *f, const uint32_t *root, uint32_t n_roots,
                 const uint32_t *failed_roots);
void array_forget_position(const struct json_machine *m, struct frame *f);
/* json_contained.c: whether an array can be ended whose items "contains" counts; facts.leads of its next item. */
struct array_with {
	struct json_machine *m;
	const struct frame *frame;
};
bool array_can_end(struct json_machine *m, const struct frame *f);
bool array_leads(void *array_with, const uint32_t *failed, const uint32_t *root, size_t n_roots,
                 const uint32_t *failed_roots);
void contained_clear(struct contained *c);
/* again: an item before has that value. */
uint32_t array_resume(struct json_machine *m, struct frame *f, const uint32_t *result, uint32_t value, bool again);
static inline bool items_differ(const struct json_machine *m, const uint32_t *frame)
{
	return frame[0] == FRAME_ARRAY && m->group[frame[1]].unique;
}
/* json_value.c: before the first byte of an item; behind one more; the value of the bytes between; its form: 's' and
 * the text from the sixth byte on, 'n' and 'm' a number and a negative one, 'z', 'f', 't', '[', '{'. */
uint32_t value_root(struct json_machine *m);
uint32_t value_byte(struct json_machine *m, uint32_t behind, uint8_t byte);
uint32_t value_between(struct json_machine *m, uint32_t from, uint32_t to);
uint8_t value_form(const struct json_machine *m, uint32_t number, const uint8_t **bytes, size_t *n);
void values_clear(struct values *v);
/* json_unique.c: lists of values, 0 being the empty one; the node of what the next item may be, whose other schemas are
 * those of the group. */
bool items_have(const struct json_machine *m, uint32_t list, uint32_t value);
uint32_t items_with(struct json_machine *m, uint32_t list, uint32_t value);
uint32_t items_others(struct json_machine *m, uint32_t list, uint32_t group);
/* Whether that node is about a value, where the next item's other schemas are those of the group. */
bool items_hold(const struct json_machine *m, uint32_t group, uint32_t value);
struct outcome object_begin(struct json_machine *m, struct frame *f, uint32_t space);
struct outcome object_step(struct json_machine *m, struct frame *f, uint8_t byte);
/* names: of members so far, as object_names() has them. */
uint32_t object_resume(struct json_machine *m, struct frame *f, const uint32_t *result, uint32_t names);
/* The list of names in an object's frame, 0: it has none. */
uint32_t object_names(const struct json_machine *m, uint32_t frame);
/* json_names.c: whether patterns say which names an object that counts them can have. */
bool group_limits_names(const struct json_machine *m, const struct group *g);
/* json_told.c: what a state has beside a frame: of an array whose items must differ their list, and of an object that
 * counts its members the list of those that no schema has (lists of json_unique.c that begin with list_none()); of one
 * of its names the bytes of the text so far, as they were read. 0: nothing, or it is not known. */
uint32_t list_none(struct json_machine *m);
/* Behind one more byte, which made one frame of another; of a frame that stands alone; of the frame of a name that was
 * put on an object's. */
uint32_t told_by(struct json_machine *m, uint32_t told, uint32_t before, uint32_t frame, uint8_t byte);
uint32_t told_alone(const struct json_machine *m, uint32_t frame);
uint32_t told_pushed(struct json_machine *m, uint32_t frame);
/* Whether it is of a name whose text is kept; whether a frame below cannot continue unless it is known. */
bool told_of_name(const struct json_machine *m, uint32_t frame);
bool told_is_needed(const struct json_machine *m, uint32_t frame);
/* The bytes of the name itself, by those of its text; 0: no memory. */
uint32_t told_name(struct json_machine *m, uint32_t text);
/* The bytes and one more, if a name of the list begins so; else 0. */
uint32_t names_meet(struct json_machine *m, uint32_t list, uint32_t bytes, uint8_t byte);
struct outcome key_step(struct json_machine *m, struct frame *f, uint8_t byte);
/* A member: its name, an index of the group's, or NO_NAME; the bits of patterns that fit it; and the nodes that have
 * failed. What is asked of its value: up to 3 * GROUP_NODES requests. */
enum { NO_NAME = UINT32_MAX };
struct member {
	uint32_t name;
	const uint32_t *patterns, *failed;
};
size_t member_requests(const struct json_machine *m, const struct group *g, const struct member *of, struct request *r);
/* json_order.c: an object's members so far; order: the rank from which on the next one comes. Sets the bits of names
 * whose turn it is not; whether names come that have no rank. */
enum { RANK_NONE = UINT32_MAX };
struct members_so_far {
	const uint32_t *failed, *seen;
	uint32_t members, order;
};
bool order_shut(struct json_machine *m, uint32_t group, const struct members_so_far *of, uint32_t *shut);
bool group_rank(struct json_machine *m, struct group *g);
/* json_closed.c */
bool group_find_known(struct json_machine *m, struct group *g);
/* The frame of a name in an object's frame; 0: no name is possible. Names that were seen: those of the group by bits,
 * others as a list where they can come to an end, else 0. full: a bit for each node that has room only for what it
 * requires. */
uint32_t key_begin(struct json_machine *m, struct frame *object, const struct members_so_far *so_far,
                   const uint32_t *full, uint32_t names);
/* How many names there can be from such a frame on, as far as that is known: at most so many. */
uint32_t key_names(struct json_machine *m, uint32_t key, uint32_t max);
/* Whether a name, an index of the group's, can be that of such a frame, its turn or not. */
bool key_possible(struct json_machine *m, uint32_t key, uint32_t name);
/* Whether a node, an index of the group's, leaves a value for a name, whatever other nodes do. */
bool member_begins(struct json_machine *m, uint32_t group, uint32_t node, uint32_t name);
static inline bool is_space(uint8_t b) { return b == ' ' || b == '\n' || b == '\t' || b == '\r'; }
/* json_space.c. White space between two parts is one space or tab, or the end of a line and what indents the next:
 * models that are unsure would write more of it for ever. Those who write have a space behind : and , and lines that
 * are indented all in the same way; an object or an array has each of its parts on a line of its own, or none. A word
 * of a frame: what was read; before the value of a member; whether the object or array is one of lines; how far a level
 * indents a line, 0: not known yet; how deep its parts stand. */
enum { SPACE_ONE = 1, SPACE_LINE = 2, SPACE_FIRST = 4 /* of an object or array */, SPACE_CLOSES = 8 /* a bracket's */ };
enum {
	SPACE_STATE = 0x7f,
	SPACE_OF_MEMBER = 0x80,
	SPACE_IN_LINES = 0x100,
	SPACE_UNIT = 9,
	SPACE_DEPTH = 12,
	SPACE_UNIT_MAX = 4,
	DEPTH_TOLD = 16 /* and no lines are ended deeper */
};
/* False: no more may come. */
bool space_step(const struct json_machine *m, uint32_t *word, uint8_t byte, unsigned where);
/* Before another part; what was read is forgotten. False: that may not come here. */
bool space_ends(const struct json_machine *m, uint32_t *word, unsigned where);
static inline uint32_t space_depth(uint32_t word) { return word >> SPACE_DEPTH; }
static inline uint32_t space_unit(uint32_t word) { return word >> SPACE_UNIT & 7; }
/* The word of a value that stands one deeper. */
static inline uint32_t space_deeper(const struct json_machine *m, uint32_t word)
{
	const uint32_t depth = space_depth(word);

	if (!m->writes)
		return 0;
	/* Inside of what is on one line, all is. */
	const uint32_t deeper = depth && !(word & SPACE_IN_LINES) ? DEPTH_TOLD : depth < DEPTH_TOLD ? depth + 1 : depth;
	return deeper << SPACE_DEPTH | (deeper < DEPTH_TOLD ? space_unit(word) << SPACE_UNIT : 0);
}

/* schema_unsat_core.c: the cause in a schema that no value satisfies, as a JSON pointer. possible: whether some value
 * satisfies a schema, n bytes of JSON. False: no cause was found. */
typedef bool core_test(void *user, const char *text, size_t n);
bool schema_unsat_core(const char *text, size_t n, core_test *possible, void *user, char *pointer, size_t room);

/* json_text.c: the characters between quotes. */
struct text_state {
	uint32_t utf8, escape, high;
};
enum text_event { TEXT_DEAD, TEXT_INSIDE, TEXT_BYTES, TEXT_CHARACTER, TEXT_END };
/* out: the bytes of UTF-8 that became known, *n of them; TEXT_CHARACTER: with them a character is whole. plain: each
 * character in one spelling: as it stands, else by its letter, else by small hexadecimal digits. */
enum text_event text_step(struct text_state *t, uint8_t byte, bool plain, uint8_t out[4], unsigned *n);
/* The next byte of UTF-8, whichever characters they are: TEXT_BYTES, TEXT_CHARACTER or TEXT_DEAD. */
enum text_event text_byte(struct text_state *t, uint8_t byte);
/* Whether what was begun by a backslash can be ended with a character that `ok` takes. */
typedef bool text_test(void *user, const uint8_t *bytes, unsigned n);
bool text_escape_ends(const struct text_state *t, bool plain, text_test *ok, void *user);

#endif
