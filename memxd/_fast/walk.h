/* Best-first walk over a navigable small-world graph (Malkov & Yashunin 2018, algorithms 2 and 5), as dot_py.py
 * documents it: same rows visited in the same order, same bits. Every number that comes out of a graph or a by-row
 * array is checked before it is used as a place, because graphs are mapped files and rows change under the reader.
 */
#ifndef MEMXD_WALK_H
#define MEMXD_WALK_H

#include <stdlib.h>

#include "dot.h"

/* How many rows of a selection a walk through it begins from. */
#define MEMXD_SPREAD 64

typedef struct {
    float cosine;
    int32_t row;
} memxd_near;

typedef struct {
    /* rows and graph; nodes = rows that the graph and every by-row array cover */
    const uint16_t *matrix;
    const int32_t *rids, *head, *links, *at, *upper;
    ptrdiff_t nodes, dimension, fan, blocks, upper_fan;
    int32_t entry, levels;
    /* the question: what is selected, and how hard to look */
    const float *query;
    memxd_dot_fn dot;
    const uint8_t *mask;
    ptrdiff_t capacity;
    const int32_t *chosen;
    ptrdiff_t chosen_size;
    ptrdiff_t near, some, wide, needed, budget;
    double share;
    /* the answer: found rows in no order, and how many vectors were compared */
    memxd_near *found;
    ptrdiff_t found_size, scored;
    int stop; /* set by another thread: nobody wants the answer any more */
    /* work space */
    ptrdiff_t beam;
    int through;
    uint8_t *seen;
    memxd_near *open;
    ptrdiff_t open_size, open_room;
    int32_t *batch, *detour;
} memxd_walk;

static inline int memxd_nearer(memxd_near a, memxd_near b) {
    return a.cosine > b.cosine || (a.cosine == b.cosine && a.row < b.row);
}

/* A heap with the nearest (sign 1) or the farthest (sign 0) entry at its root. */
static inline int memxd_above(memxd_near a, memxd_near b, int sign) { return sign ? memxd_nearer(a, b) : memxd_nearer(b, a); }

static inline void memxd_push(memxd_near *heap, ptrdiff_t hole, memxd_near item, int sign) {
    while (hole > 0) {
        const ptrdiff_t parent = (hole - 1) / 2;
        if (!memxd_above(item, heap[parent], sign)) break;
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = item;
}

static inline void memxd_replace(memxd_near *heap, ptrdiff_t size, memxd_near item, int sign) {
    ptrdiff_t hole = 0;
    for (;;) {
        ptrdiff_t child = 2 * hole + 1;
        if (child >= size) break;
        if (child + 1 < size && memxd_above(heap[child + 1], heap[child], sign)) child++;
        if (!memxd_above(heap[child], item, sign)) break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = item;
}

static inline int memxd_stopped(const memxd_walk *w) {
#if defined(__GNUC__) || defined(__clang__)
    return __atomic_load_n(&w->stop, __ATOMIC_RELAXED);
#else
    return w->stop;
#endif
}

static inline void memxd_stop(memxd_walk *w) {
#if defined(__GNUC__) || defined(__clang__)
    __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
#else
    w->stop = 1;
#endif
}

static inline int memxd_selected(const memxd_walk *w, int32_t row) {
    const int32_t rid = w->rids[row];
    return rid >= 0 && rid < w->capacity && w->mask[rid];
}

static inline void memxd_fetch_row(const memxd_walk *w, int32_t row) {
    const uint16_t *place = w->matrix + row * w->dimension;
    for (ptrdiff_t i = 0; i < w->dimension; i += 32) MEMXD_PREFETCH(place + i);
}

static inline float memxd_cosine(memxd_walk *w, int32_t row) {
    w->scored++;
    return w->dot(w->query, w->matrix + row * w->dimension, w->dimension);
}

static inline int memxd_met(const memxd_walk *w, int32_t row) { return w->seen[row >> 3] >> (row & 7) & 1; }

/* True the first time a row is met. */
static inline int memxd_meet(memxd_walk *w, int32_t row) {
    const uint8_t bit = (uint8_t)(1u << (row & 7));
    if (w->seen[row >> 3] & bit) return 0;
    w->seen[row >> 3] |= bit;
    return 1;
}

static inline int memxd_has(const memxd_walk *w, int32_t row) { return row >= 0 && row < w->nodes; }

/* The upper levels: from the entry, always to the nearest neighbour, down to level 1. */
static inline memxd_near memxd_descend(memxd_walk *w) {
    memxd_near here = {0, w->entry};
    here.cosine = memxd_cosine(w, here.row);
    for (int32_t level = w->levels; level > 0; level--)
        for (;;) {
            memxd_near next = here;
            const int64_t block = (int64_t)w->at[here.row] + level - 1;
            if (w->at[here.row] < 0 || block >= w->blocks) break;
            const int32_t *list = w->upper + block * w->upper_fan;
            for (ptrdiff_t i = 0; i < w->upper_fan; i++)
                if (memxd_has(w, list[i])) memxd_fetch_row(w, list[i]);
            for (ptrdiff_t i = 0; i < w->upper_fan; i++) {
                if (!memxd_has(w, list[i])) continue;
                const memxd_near other = {memxd_cosine(w, list[i]), list[i]};
                if (memxd_nearer(other, next)) next = other;
            }
            if (next.row == here.row) break;
            here = next;
            if (w->scored > w->budget) break;
        }
    return here;
}

/* A met row takes its place among what is still to be looked at, and among the found when it is selected.
 * Answers 0 when memory runs out. */
static inline int memxd_offer(memxd_walk *w, memxd_near item, int selected) {
    if (item.cosine != item.cosine) return 1; /* a damaged row */
    if (w->found_size == w->beam && !memxd_nearer(item, w->found[0])) return 1;
    if (w->open_size == w->open_room) {
        const ptrdiff_t room = w->open_room * 2;
        memxd_near *more = (memxd_near *)realloc(w->open, (size_t)room * sizeof *more);
        if (!more) return 0;
        w->open = more;
        w->open_room = room;
    }
    memxd_push(w->open, w->open_size++, item, 1);
    MEMXD_PREFETCH(w->links + item.row * w->fan);
    if (!selected) return 1;
    if (w->found_size < w->beam)
        memxd_push(w->found, w->found_size++, item, 0);
    else
        memxd_replace(w->found, w->beam, item, 0);
    return 1;
}

/* The unmet rows to compare after ``row``, into batch. With ``through`` only selected ones, those behind neighbours
 * that are not selected included. */
static inline ptrdiff_t memxd_gather(memxd_walk *w, int32_t row) {
    ptrdiff_t size = 0, detours = 0;
    const int32_t *list = w->links + row * w->fan;
    for (ptrdiff_t i = 0; i < w->fan; i++) {
        const int32_t other = list[i];
        if (!memxd_has(w, other) || !memxd_meet(w, other)) continue;
        if (!w->through || memxd_selected(w, other)) {
            w->batch[size++] = other;
            memxd_fetch_row(w, other);
        } else {
            w->detour[detours++] = other;
            MEMXD_PREFETCH(w->links + other * w->fan);
            MEMXD_PREFETCH(w->links + other * w->fan + 16);
        }
    }
    for (ptrdiff_t d = 0; d < detours; d++) {
        list = w->links + w->detour[d] * w->fan;
        for (ptrdiff_t i = 0; i < w->fan; i++) {
            const int32_t other = list[i];
            if (!memxd_has(w, other) || memxd_met(w, other) || !memxd_selected(w, other)) continue;
            memxd_meet(w, other);
            w->batch[size++] = other;
            memxd_fetch_row(w, other);
        }
    }
    return size;
}

/* Level 0 from the given rows on. Answers 0 when memory runs out. */
static inline int memxd_spread(memxd_walk *w) {
    while (w->open_size && w->scored <= w->budget && !memxd_stopped(w)) {
        const memxd_near here = w->open[0];
        if (w->found_size == w->beam && memxd_nearer(w->found[0], here)) break;
        if (--w->open_size) memxd_replace(w->open, w->open_size, w->open[w->open_size], 1);
        const ptrdiff_t size = memxd_gather(w, here.row);
        for (ptrdiff_t i = 0; i < size; i++) {
            const memxd_near item = {memxd_cosine(w, w->batch[i]), w->batch[i]};
            if (!memxd_offer(w, item, 1)) return 0; /* whatever gathers counts */
        }
    }
    return 1;
}

/* Meet and offer one row to begin from. Answers 0 when memory runs out. */
static inline int memxd_begin_at(memxd_walk *w, int32_t row) {
    if (!memxd_has(w, row) || !memxd_meet(w, row)) return 1;
    const memxd_near item = {memxd_cosine(w, row), row};
    return memxd_offer(w, item, !w->through || memxd_selected(w, row));
}

/* Selected rows, spread over the selection: a walk that begins far from the question in each of its regions. */
static inline int memxd_begin_spread(memxd_walk *w) {
    int fine = 1;
    for (ptrdiff_t i = 0; fine && i < MEMXD_SPREAD; i++) {
        const int32_t rid = w->chosen[i * w->chosen_size / MEMXD_SPREAD];
        if (rid >= 0 && rid < w->capacity) fine = memxd_begin_at(w, w->head[rid]);
    }
    return fine;
}

/* The second look: only selected rows count, from the best of the first look's rows and from a spread of others. */
static inline int memxd_look_through(memxd_walk *w, ptrdiff_t selected) {
    const int32_t nearest = w->batch[0];
    int32_t *from;
    memxd_near *room;
    int fine;
    ptrdiff_t size = 0;
    w->beam = 2.0 * (double)selected >= w->share * (double)w->found_size ? w->some : w->wide;
    if (w->beam <= 0) { /* not worth while */
        w->scored = w->budget < PTRDIFF_MAX ? w->budget + 1 : w->budget;
        w->found_size = 0;
        return 1;
    }
    if (w->beam > w->nodes) w->beam = w->nodes; /* room for more is never needed */
    from = (int32_t *)malloc((size_t)(selected + 1) * sizeof *from);
    for (ptrdiff_t i = 0; from && i < w->found_size; i++)
        if (size < selected && memxd_selected(w, w->found[i].row)) from[size++] = w->found[i].row;
    room = (memxd_near *)realloc(w->found, (size_t)(w->beam + 1) * sizeof *room);
    if (room) w->found = room;
    w->through = 1;
    w->found_size = w->open_size = 0;
    memset(w->seen, 0, (size_t)(w->nodes / 8 + 1));
    fine = from && room && memxd_begin_at(w, nearest);
    for (ptrdiff_t i = 0; fine && i < size; i++) fine = memxd_begin_at(w, from[i]);
    fine = fine && memxd_begin_spread(w) && memxd_spread(w);
    free(from);
    return fine;
}

static inline int memxd_look(memxd_walk *w) {
    ptrdiff_t selected = 0;
    memxd_near nearest;
    if (!memxd_has(w, w->entry)) return 1;
    nearest = memxd_descend(w);
    w->beam = w->near;
    w->through = 0;
    if (!memxd_begin_at(w, nearest.row) || !memxd_spread(w)) return 0;
    for (ptrdiff_t i = 0; i < w->found_size; i++) {
        selected += memxd_selected(w, w->found[i].row);
        if (memxd_nearer(w->found[i], nearest)) nearest = w->found[i];
    }
    if (selected >= w->needed && 2.0 * (double)selected >= w->share * (double)w->found_size) return 1;
    w->batch[0] = nearest.row;
    return memxd_look_through(w, selected);
}

/* The whole walk. Answers 0 when memory runs out. ``found`` is freed by memxd_walk_free. */
static int memxd_walk_run(memxd_walk *w) {
    int fine;
    w->found_size = w->scored = w->open_size = 0;
    w->open_room = 1024;
    w->near = w->near < w->nodes ? w->near : w->nodes > 0 ? w->nodes : 1;
    w->found = (memxd_near *)malloc((size_t)(w->near + 1) * sizeof(memxd_near));
    w->open = (memxd_near *)malloc((size_t)w->open_room * sizeof(memxd_near));
    w->seen = (uint8_t *)calloc((size_t)(w->nodes / 8 + 1), 1);
    w->batch = (int32_t *)malloc((size_t)(w->fan * (w->fan + 1) + 1) * sizeof(int32_t));
    w->detour = (int32_t *)malloc((size_t)(w->fan + 1) * sizeof(int32_t));
    fine = w->found && w->open && w->seen && w->batch && w->detour && memxd_look(w);
    free(w->open);
    free(w->seen);
    free(w->batch);
    free(w->detour);
    return fine;
}

static void memxd_walk_free(memxd_walk *w) {
    free(w->found);
    w->found = NULL;
}

#endif
