/* Best-first walk over a navigable small-world graph (Malkov & Yashunin 2018, algorithms 2 and 5), as dot_py.py
 * documents it: same rows visited in the same order, same bits. Every number that comes out of a graph or a by-row
 * array is checked before it is used as a place, because graphs are mapped files and rows change under the reader.
 */
#ifndef MEMXD_WALK_H
#define MEMXD_WALK_H

#include <math.h>
#include <stdlib.h>

#include "dot.h"

/* How many rows of a selection a walk through it begins from. */
#define MEMXD_SPREAD 64

/* A row and how near it is, as one number that is the larger the nearer, the lower row first among equals. */
typedef uint64_t memxd_near;

typedef struct {
    /* rows and graph; nodes = rows that the graph and every by-row array cover */
    const uint16_t *matrix;
    const int32_t *rids, *head, *links, *at, *upper;
    ptrdiff_t nodes, dimension, fan, blocks, upper_fan;
    int32_t entry, levels;
    /* the question: what is selected, and how hard to look */
    const float *query;
    memxd_dot_fn dot;
    memxd_dots_fn dots;
    const uint8_t *mask;
    ptrdiff_t capacity;
    const int32_t *chosen;
    ptrdiff_t chosen_size;
    ptrdiff_t near, some, wide, needed, budget;
    double share;
    ptrdiff_t many, most;
    double far, floor;
    /* the answer: found rows in no order, and how many vectors were compared */
    memxd_near *found;
    ptrdiff_t found_size, scored;
    int stop; /* set by another thread: nobody wants the answer any more */
    /* work space */
    ptrdiff_t beam;
    int through, keeps; /* keeps: what a beam has no room for is set aside, for a wider one */
    memxd_near *refused, *ousted; /* never open; open, or looked at already */
    ptrdiff_t refused_size, refused_room, ousted_size, ousted_room;
    uint8_t *seen;
    memxd_near *open;
    ptrdiff_t open_size, open_room;
    int32_t *batch, *detour;
    float *cosines; /* of the batch */
} memxd_walk;

static inline memxd_near memxd_as_near(float cosine, int32_t row) {
    uint32_t bits;
    cosine += 0.0f; /* the two zeros are equal */
    memcpy(&bits, &cosine, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~row;
}

static inline int32_t memxd_row_of(memxd_near item) { return (int32_t) ~(uint32_t)item; }

/* Two heaps: with the nearest entry at its root, and with the farthest. */
static inline void memxd_push_nearest(memxd_near *heap, ptrdiff_t hole, memxd_near item) {
    while (hole > 0 && item > heap[(hole - 1) / 2]) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = item;
}

static inline void memxd_push_farthest(memxd_near *heap, ptrdiff_t hole, memxd_near item) {
    while (hole > 0 && item < heap[(hole - 1) / 2]) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = item;
}

/* In the place of the root. */
static inline void memxd_sink_nearest(memxd_near *heap, ptrdiff_t size, memxd_near item) {
    ptrdiff_t hole = 0, child = 1;
    for (; child + 1 < size; child = 2 * hole + 1) {
        child += heap[child + 1] > heap[child];
        if (heap[child] <= item) break;
        heap[hole] = heap[child];
        hole = child;
    }
    if (child + 1 == size && heap[child] > item) {
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = item;
}

static inline void memxd_sink_farthest(memxd_near *heap, ptrdiff_t size, memxd_near item) {
    ptrdiff_t hole = 0, child = 1;
    for (; child + 1 < size; child = 2 * hole + 1) {
        child += heap[child + 1] < heap[child];
        if (heap[child] >= item) break;
        heap[hole] = heap[child];
        hole = child;
    }
    if (child + 1 == size && heap[child] < item) {
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
static inline int32_t memxd_descend(memxd_walk *w) {
    int32_t here = w->entry;
    const float first = memxd_cosine(w, here);
    memxd_near next = first == first ? memxd_as_near(first, here) : ~(uint64_t)(uint32_t)here; /* damaged: no way on */
    for (int32_t level = w->levels; level > 0; level--)
        for (;;) {
            const int64_t block = (int64_t)w->at[here] + level - 1;
            if (w->at[here] < 0 || block >= w->blocks) break;
            const int32_t *list = w->upper + block * w->upper_fan;
            for (ptrdiff_t i = 0; i < w->upper_fan; i++)
                if (memxd_has(w, list[i])) memxd_fetch_row(w, list[i]);
            for (ptrdiff_t i = 0; i < w->upper_fan; i++) {
                if (!memxd_has(w, list[i])) continue;
                const float cosine = memxd_cosine(w, list[i]);
                const memxd_near other = memxd_as_near(cosine, list[i]);
                if (cosine == cosine && other > next) next = other;
            }
            if (memxd_row_of(next) == here) break;
            here = memxd_row_of(next);
            if (w->scored > w->budget) break;
        }
    return here;
}

static inline int memxd_set_aside(memxd_near **list, ptrdiff_t *size, ptrdiff_t *room, memxd_near item) {
    if (*size == *room) {
        const ptrdiff_t more = *room ? *room * 2 : 2048;
        memxd_near *longer = (memxd_near *)realloc(*list, (size_t)more * sizeof *longer);
        if (!longer) return 0;
        *list = longer;
        *room = more;
    }
    (*list)[(*size)++] = item;
    return 1;
}

/* A met row takes its place among what is still to be looked at, and among the found when it is selected.
 * Answers 0 when memory runs out. */
static inline int memxd_offer_near(memxd_walk *w, memxd_near item, int selected) {
    const int32_t row = memxd_row_of(item);
    if (w->found_size == w->beam && item <= w->found[0])
        return !w->keeps || memxd_set_aside(&w->refused, &w->refused_size, &w->refused_room, item);
    MEMXD_PREFETCH(w->links + row * w->fan);
    MEMXD_PREFETCH(w->links + row * w->fan + 16);
    if (w->open_size == w->open_room) {
        const ptrdiff_t room = w->open_room * 2;
        memxd_near *more = (memxd_near *)realloc(w->open, (size_t)room * sizeof *more);
        if (!more) return 0;
        w->open = more;
        w->open_room = room;
    }
    memxd_push_nearest(w->open, w->open_size++, item);
    if (!selected) return 1;
    if (w->found_size < w->beam) {
        memxd_push_farthest(w->found, w->found_size++, item);
        return 1;
    }
    if (w->keeps && !memxd_set_aside(&w->ousted, &w->ousted_size, &w->ousted_room, w->found[0])) return 0;
    memxd_sink_farthest(w->found, w->beam, item);
    return 1;
}

static inline int memxd_offer(memxd_walk *w, int32_t row, float cosine, int selected) {
    if (cosine != cosine) return 1; /* a damaged row */
    return memxd_offer_near(w, memxd_as_near(cosine, row), selected);
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

/* The cosines of the batch. */
static inline void memxd_compare(memxd_walk *w, ptrdiff_t size) {
    ptrdiff_t i = 0;
    for (; i + 1 < size; i += 2)
        w->dots(w->query, w->matrix + w->batch[i] * w->dimension, w->matrix + w->batch[i + 1] * w->dimension,
                w->dimension, w->cosines + i);
    if (i < size) w->cosines[i] = w->dot(w->query, w->matrix + w->batch[i] * w->dimension, w->dimension);
    w->scored += size;
}

/* Level 0 from the given rows on. Answers 0 when memory runs out. */
static inline int memxd_spread(memxd_walk *w) {
    while (w->open_size && w->scored <= w->budget && !memxd_stopped(w)) {
        const memxd_near here = w->open[0];
        if (w->found_size == w->beam && w->found[0] > here) break;
        if (--w->open_size) memxd_sink_nearest(w->open, w->open_size, w->open[w->open_size]);
        const ptrdiff_t size = memxd_gather(w, memxd_row_of(here));
        memxd_compare(w, size);
        for (ptrdiff_t i = 0; i < size; i++)
            if (!memxd_offer(w, w->batch[i], w->cosines[i], 1)) return 0; /* whatever gathers counts */
    }
    return 1;
}

/* Meet and offer one row to begin from. Answers 0 when memory runs out. */
static inline int memxd_begin_at(memxd_walk *w, int32_t row) {
    if (!memxd_has(w, row) || !memxd_meet(w, row)) return 1;
    return memxd_offer(w, row, memxd_cosine(w, row), !w->through || memxd_selected(w, row));
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

/* Whether the question is far from everything, so that many rows are about equally near and the first look has met only
 * some of them: it kept meeting new ones, or the nearest row is much farther from the question than its own neighbours
 * are from it (as the local outlier factor, Breunig et al. 2000, asks). Not below the floor: which of the rows that have
 * nothing to do with the question is the nearest is worth no time. -1 = memory has run out. */
static inline int memxd_lost(memxd_walk *w, memxd_near nearest) {
    const int32_t row = memxd_row_of(nearest), *list = w->links + row * w->fan;
    ptrdiff_t size = 0;
    double sum = 0.0;
    double own;
    float *place;
    if (w->scored > w->budget) return 0;
    own = w->dot(w->query, w->matrix + row * w->dimension, w->dimension);
    if (own < w->floor) return 0;
    if (w->scored > w->many) return 1;
    if (!(w->far < INFINITY)) return 0;
    place = (float *)malloc((size_t)w->dimension * sizeof *place);
    if (!place) return -1;
    for (ptrdiff_t i = 0; i < w->dimension; i++) place[i] = memxd_half(w->matrix[row * w->dimension + i]);
    for (ptrdiff_t i = 0; i < w->fan; i++) {
        float cosine;
        if (!memxd_has(w, list[i])) continue;
        cosine = w->dot(place, w->matrix + list[i] * w->dimension, w->dimension);
        if (cosine != cosine) continue; /* a damaged row */
        sum += cosine;
        size++;
    }
    w->scored += size;
    free(place);
    return size && 1.0 - own > w->far * (1.0 - sum / size);
}

/* The first look goes on with twice the beam, as if it had been so wide from the beginning. -1 = memory has run out,
 * 0 = it cannot be any wider. */
static inline int memxd_widen(memxd_walk *w) {
    ptrdiff_t beam = 2 * w->beam < w->most ? 2 * w->beam : w->most, ousted = w->ousted_size, refused = w->refused_size;
    memxd_near *room;
    if (beam > w->nodes) beam = w->nodes;
    if (beam <= w->beam || w->scored > w->budget) return 0;
    room = (memxd_near *)realloc(w->found, (size_t)(beam + 1) * sizeof *room);
    if (!room) return -1;
    w->found = room;
    w->beam = beam;
    w->ousted_size = w->refused_size = 0; /* what is set aside again takes places that were read already */
    for (ptrdiff_t i = 0; i < ousted; i++) {
        memxd_near item = w->ousted[i];
        if (w->found_size < beam) {
            memxd_push_farthest(w->found, w->found_size++, item);
            continue;
        }
        if (item > w->found[0]) {
            const memxd_near worst = w->found[0];
            memxd_sink_farthest(w->found, beam, item);
            item = worst;
        }
        w->ousted[w->ousted_size++] = item;
    }
    for (ptrdiff_t i = 0; i < refused; i++) {
        const memxd_near item = w->refused[i];
        if (!memxd_offer_near(w, item, 1)) return -1;
    }
    return memxd_spread(w) ? 1 : -1;
}

/* The ``rank``-th nearest of the found rows, 1 = the nearest; 0 where there are fewer. ``heap`` has room for as many. */
static inline memxd_near memxd_ranked(const memxd_walk *w, ptrdiff_t rank, memxd_near *heap) {
    ptrdiff_t size = 0;
    for (ptrdiff_t i = 0; i < w->found_size; i++)
        if (size < rank)
            memxd_push_farthest(heap, size++, w->found[i]);
        else if (w->found[i] > heap[0])
            memxd_sink_farthest(heap, rank, w->found[i]);
    return size == rank ? heap[0] : 0;
}

/* Of a question that is far from everything: wider and wider, until half as many of the nearest rows as the first
 * beam held stay the same. 0 = memory has run out. */
static inline int memxd_look_wider(memxd_walk *w) {
    const ptrdiff_t rank = w->near / 2 > 1 ? w->near / 2 : 1;
    memxd_near *heap = (memxd_near *)malloc((size_t)rank * sizeof *heap);
    memxd_near now, before;
    int wider = heap ? 1 : -1;
    for (now = heap ? memxd_ranked(w, rank, heap) : 0; wider > 0;) {
        before = now;
        if ((wider = memxd_widen(w)) <= 0) break;
        now = memxd_ranked(w, rank, heap);
        if (now == before) break;
    }
    free(heap);
    return wider >= 0;
}

/* The second look: only selected rows count, from the best of the first look's rows and from a spread of others. */
static inline int memxd_look_through(memxd_walk *w, ptrdiff_t selected, int lost) {
    const int32_t nearest = w->batch[0];
    int32_t *from;
    memxd_near *room;
    int fine;
    ptrdiff_t size = 0;
    w->beam = !lost && 2.0 * (double)selected >= w->share * (double)w->found_size ? w->some : w->wide;
    if (w->beam <= 0) { /* not worth while */
        w->scored = w->budget < PTRDIFF_MAX ? w->budget + 1 : w->budget;
        w->found_size = 0;
        return 1;
    }
    if (w->beam > w->nodes) w->beam = w->nodes; /* room for more is never needed */
    from = (int32_t *)malloc((size_t)(selected + 1) * sizeof *from);
    for (ptrdiff_t i = 0; from && i < w->found_size; i++)
        if (size < selected && memxd_selected(w, memxd_row_of(w->found[i]))) from[size++] = memxd_row_of(w->found[i]);
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

/* How many of the found rows are selected, and which row is the nearest. */
static inline ptrdiff_t memxd_count(const memxd_walk *w, memxd_near *nearest) {
    ptrdiff_t selected = 0;
    for (ptrdiff_t i = 0; i < w->found_size; i++) {
        selected += memxd_selected(w, memxd_row_of(w->found[i]));
        if (w->found[i] > *nearest) *nearest = w->found[i];
    }
    return selected;
}

static inline int memxd_enough(const memxd_walk *w, ptrdiff_t selected) {
    return selected >= w->needed && 2.0 * (double)selected >= w->share * (double)w->found_size;
}

static inline int memxd_look(memxd_walk *w) {
    ptrdiff_t selected;
    memxd_near nearest = 0;
    int32_t here;
    int lost = 0;
    if (!memxd_has(w, w->entry)) return 1;
    here = memxd_descend(w);
    w->beam = w->near;
    w->through = 0;
    w->keeps = w->most > w->near;
    if (!memxd_begin_at(w, here) || !memxd_spread(w)) return 0;
    selected = memxd_count(w, &nearest);
    if (w->found_size && (lost = memxd_lost(w, nearest)) < 0) return 0;
    if (lost && w->keeps && memxd_enough(w, selected)) {
        if (!memxd_look_wider(w)) return 0;
        selected = memxd_count(w, &nearest);
        lost = 0;
    }
    w->keeps = 0;
    if (!lost && memxd_enough(w, selected)) return 1;
    w->batch[0] = w->found_size ? memxd_row_of(nearest) : here;
    return memxd_look_through(w, selected, lost);
}

/* The whole walk. Answers 0 when memory runs out. ``found`` is freed by memxd_walk_free. */
static int memxd_walk_run(memxd_walk *w) {
    int fine;
    w->found_size = w->scored = w->open_size = 0;
    w->open_room = 1024;
    w->refused = w->ousted = NULL;
    w->refused_size = w->refused_room = w->ousted_size = w->ousted_room = 0;
    w->near = w->near < w->nodes ? w->near : w->nodes > 0 ? w->nodes : 1;
    w->found = (memxd_near *)malloc((size_t)(w->near + 1) * sizeof(memxd_near));
    w->open = (memxd_near *)malloc((size_t)w->open_room * sizeof(memxd_near));
    w->seen = (uint8_t *)calloc((size_t)(w->nodes / 8 + 1), 1);
    w->batch = (int32_t *)malloc((size_t)(w->fan * (w->fan + 1) + 1) * sizeof(int32_t));
    w->detour = (int32_t *)malloc((size_t)(w->fan + 1) * sizeof(int32_t));
    w->cosines = (float *)malloc((size_t)(w->fan * (w->fan + 1) + 1) * sizeof(float));
    fine = w->found && w->open && w->seen && w->batch && w->detour && w->cosines && memxd_look(w);
    free(w->open);
    free(w->refused);
    free(w->ousted);
    free(w->seen);
    free(w->batch);
    free(w->detour);
    free(w->cosines);
    return fine;
}

static void memxd_walk_free(memxd_walk *w) {
    free(w->found);
    w->found = NULL;
}

#endif
