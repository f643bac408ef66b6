/* Which rows pass a view: one pass over the by-rid arrays, block by block, without branches on the data.
 *
 * A block keeps one byte for each row, every condition is a loop over the block that clears bytes (simple enough for
 * the compiler to vectorise), and the survivors are squeezed out at the end. Rows that lie side by side are read where
 * they are, others are gathered first. Integers and comparisons only: every compiler answers the same.
 */
#ifndef MEMXD_CHOOSE_H
#define MEMXD_CHOOSE_H

#include <stddef.h>
#include <stdint.h>

#define MEMXD_BLOCK 1024

enum { MEMXD_RULE_STATES = 0, MEMXD_RULE_CURRENT = 1, MEMXD_RULE_SUPERSEDED = 2, MEMXD_RULE_AS_OF = 3 };
enum { MEMXD_ACTIVE = 1, MEMXD_STATE_SUPERSEDED = 2, MEMXD_STATE_ARCHIVED = 3 };

typedef struct {
    const uint8_t *state, *type;
    const int64_t *valid_until, *created, *event;
    const double *importance;
    const int32_t *tag_set;
} memxd_columns;

typedef struct {
    int rule;
    int64_t now;
    const uint8_t *states;                    /* [256], for MEMXD_RULE_STATES */
    const uint8_t *types;                     /* [256], NULL = any */
    const uint8_t *tags;                      /* [sets], NULL = any */
    int64_t sets;
    int by_created, by_event, by_importance;  /* which of the following count */
    int64_t created_first, created_last, event_first, event_last; /* inclusive */
    double importance_min;
} memxd_wish;

/* The column's values for a block: in place when its rows lie side by side, else gathered into room. */
#define MEMXD_TAKE(TYPE, column, room)                                     \
    const TYPE *v = (column) + rids[0];                                    \
    TYPE room[MEMXD_BLOCK];                                                \
    if (!together) {                                                       \
        for (size_t i = 0; i < n; i++) room[i] = (column)[rids[i]];        \
        v = room;                                                          \
    }

static inline void memxd_by_moment(const memxd_columns *c, const memxd_wish *w, const int32_t *rids, size_t n,
                                   int together, uint8_t *ok, int64_t *begin, int64_t *end) {
    {
        MEMXD_TAKE(uint8_t, c->state, room)
        if (w->rule == MEMXD_RULE_STATES)
            for (size_t i = 0; i < n; i++) ok[i] = w->states[v[i]];
        else if (w->rule == MEMXD_RULE_AS_OF)
            for (size_t i = 0; i < n; i++) ok[i] = (v[i] != 0) & (v[i] != MEMXD_STATE_ARCHIVED);
        else
            for (size_t i = 0; i < n; i++) ok[i] = v[i] == MEMXD_ACTIVE;
    }
    if (w->rule == MEMXD_RULE_STATES) return;
    {
        MEMXD_TAKE(int64_t, c->valid_until, room)
        const int64_t now = w->now;
        int64_t from = *begin, until = *end;
        for (size_t i = 0; i < n; i++) {
            const int64_t x = v[i];
            const uint8_t unexpired = x > now;
            const int64_t past = (ok[i] & !unexpired) ? x : INT64_MIN, next = (ok[i] & unexpired) ? x : INT64_MAX;
            from = past > from ? past : from;
            until = next < until ? next : until;
            ok[i] &= unexpired;
        }
        *begin = from;
        *end = until;
    }
    if (w->rule == MEMXD_RULE_SUPERSEDED) {
        MEMXD_TAKE(uint8_t, c->state, room)
        for (size_t i = 0; i < n; i++) ok[i] |= v[i] == MEMXD_STATE_SUPERSEDED;
    }
    if (w->rule == MEMXD_RULE_AS_OF) {
        MEMXD_TAKE(int64_t, c->event, room)
        for (size_t i = 0; i < n; i++) {
            const int64_t began = v[i] == INT64_MIN ? c->created[rids[i]] : v[i];
            ok[i] &= began <= w->now;
        }
    }
}

static inline void memxd_by_span(const int64_t *column, int64_t first, int64_t last, const int32_t *rids, size_t n,
                                 int together, uint8_t *ok) {
    MEMXD_TAKE(int64_t, column, room)
    for (size_t i = 0; i < n; i++) ok[i] &= (v[i] >= first) & (v[i] <= last);
}

/* 0, or -1 for a tag set that does not exist. */
static inline int memxd_by_filter(const memxd_columns *c, const memxd_wish *w, const int32_t *rids, size_t n,
                                  int together, uint8_t *ok) {
    if (w->types) {
        MEMXD_TAKE(uint8_t, c->type, room)
        for (size_t i = 0; i < n; i++) ok[i] &= w->types[v[i]];
    }
    if (w->by_importance) {
        MEMXD_TAKE(double, c->importance, room)
        const double least = w->importance_min;
        for (size_t i = 0; i < n; i++) ok[i] &= v[i] >= least;
    }
    if (w->by_created) memxd_by_span(c->created, w->created_first, w->created_last, rids, n, together, ok);
    if (w->by_event) memxd_by_span(c->event, w->event_first, w->event_last, rids, n, together, ok);
    if (w->tags) {
        MEMXD_TAKE(int32_t, c->tag_set, room)
        uint32_t largest = 0;
        for (size_t i = 0; i < n; i++) largest = (uint32_t)v[i] > largest ? (uint32_t)v[i] : largest;
        if ((int64_t)largest >= w->sets) return -1;
        for (size_t i = 0; i < n; i++) ok[i] &= w->tags[v[i]];
    }
    return 0;
}

/* Writes the chosen of rids (strictly ascending, within the columns) to out (room for n) and answers how many; -1 for a
 * tag set that does not exist. [begin, end) narrows to the moments at which no chosen state of expiry changes. */
static int64_t memxd_choose(const memxd_columns *c, const memxd_wish *w, const int32_t *rids, size_t n, int32_t *out,
                            int64_t *begin, int64_t *end) {
    uint8_t ok[MEMXD_BLOCK];
    int64_t m = 0;
    for (size_t at = 0; at < n; at += MEMXD_BLOCK) {
        const size_t size = n - at < MEMXD_BLOCK ? n - at : MEMXD_BLOCK;
        const int32_t *part = rids + at;
        const int together = (size_t)(part[size - 1] - part[0]) == size - 1;
        memxd_by_moment(c, w, part, size, together, ok, begin, end);
        if (memxd_by_filter(c, w, part, size, together, ok)) return -1;
        for (size_t i = 0; i < size; i++) {
            out[m] = part[i]; /* m <= at + i: never beyond the room */
            m += ok[i];
        }
    }
    return m;
}

/* Rids of existing rows (state not 0) by scope, ascending within each: a counting sort. place: room for largest + 2. */
static void memxd_group(const int32_t *scope, const uint8_t *state, size_t n, int32_t *place, size_t scopes,
                        int32_t *out) {
    for (size_t i = 0; i < n; i++)
        if (state[i]) place[(size_t)scope[i] + 1]++;
    for (size_t s = 0; s < scopes; s++) place[s + 1] += place[s];
    for (size_t i = 0; i < n; i++)
        if (state[i]) out[place[scope[i]]++] = (int32_t)i;
}

#endif
