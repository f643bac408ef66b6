/* What rank_scope.h and rank_legs.h share of choosing: reciprocal ranks, the order, and the folding of repetitions.
 * Plain C on bare arrays that are known to be right. No Python object is touched, so all of it runs without the GIL. */
#ifndef MEMXD_RANK_SELECT_H
#define MEMXD_RANK_SELECT_H

#include <stdlib.h>

#include "rank_loops.h"

/* -- reciprocal rank fusion ---------------------------------------------------------------------------------------- */

/* Rank 0 = absent. */
static inline double memxd_rrf(int32_t a_rank, int32_t b_rank, double k, double a_weight, double b_weight)
{
    double a = a_weight / (k + (double)a_rank), b = b_weight / (k + (double)b_rank);
    return (a_rank ? a : 0.0) + (b_rank ? b : 0.0);
}

/* The RRF of a row that leads both legs. */
static inline double memxd_most_rrf(double k, double a_weight, double b_weight)
{
    return (a_weight + b_weight) / (k + 1.0);
}

MEMXD_CLONES static void memxd_rrf_all(const int32_t *restrict vector_rank, const int32_t *restrict keyword_rank,
                                       size_t n, double k, double vector_weight, double keyword_weight,
                                       double *restrict rrf)
{
    for (size_t i = 0; i < n; i++)
        rrf[i] = memxd_rrf(vector_rank[i], keyword_rank[i], k, vector_weight, keyword_weight);
}

static inline double memxd_of_maximum(double rrf, double most)
{
    return most > 0.0 ? rrf / most : 0.0;
}

/* -- the whole order ----------------------------------------------------------------------------------------------- */

/* One candidate; entries ascend from the best. */
typedef struct {
    uint64_t key; /* score descending, NaN last */
    uint64_t low; /* then rid ascending, then position */
} memxd_entry;

static inline memxd_entry memxd_make_entry(double score, int32_t rid, uint32_t position)
{
    uint64_t bits;
    memxd_entry e;
    score += 0.0; /* -0 equals 0 */
    memcpy(&bits, &score, sizeof bits);
    bits = bits >> 63 ? bits : ~bits ^ UINT64_C(0x8000000000000000);
    e.key = score == score ? bits : UINT64_MAX;
    e.low = (uint64_t)((uint32_t)rid ^ UINT32_C(0x80000000)) << 32 | position;
    return e;
}

static inline uint32_t memxd_entry_position(memxd_entry e)
{
    return (uint32_t)e.low;
}

static inline int memxd_better(const memxd_entry *a, const memxd_entry *b)
{
    return (a->key < b->key) | ((a->key == b->key) & (a->low < b->low));
}

static inline void memxd_insertion_sort(memxd_entry *entries, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        memxd_entry moving = entries[i];
        size_t at = i;
        for (; at > 0 && memxd_better(&moving, &entries[at - 1]); at--)
            entries[at] = entries[at - 1];
        entries[at] = moving;
    }
}

#define MEMXD_RUN 8

/* Merge sort without branches that nobody could predict; room is for n entries. */
static void memxd_sort_entries(memxd_entry *entries, memxd_entry *room, size_t n)
{
    memxd_entry *from = entries, *to = room, *swap;
    for (size_t first = 0; first < n; first += MEMXD_RUN)
        memxd_insertion_sort(entries + first, n - first < MEMXD_RUN ? n - first : MEMXD_RUN);
    for (size_t width = MEMXD_RUN; width < n; width *= 2) {
        for (size_t first = 0; first < n; first += 2 * width) {
            size_t i = first, middle = first + width < n ? first + width : n, j = middle;
            size_t end = first + 2 * width < n ? first + 2 * width : n, out = first;
            while (i < middle && j < end) {
                int second = memxd_better(&from[j], &from[i]);
                const memxd_entry *taken = second ? &from[j] : &from[i];
                to[out++] = *taken;
                j += (size_t)second;
                i += (size_t)!second;
            }
            memcpy(to + out, from + i, (middle - i) * sizeof *to);
            out += middle - i;
            memcpy(to + out, from + j, (end - j) * sizeof *to);
        }
        swap = from;
        from = to;
        to = swap;
    }
    if (from != entries)
        memcpy(entries, from, n * sizeof *entries);
}

#define MEMXD_CROWD 16
#define MEMXD_MOST_BUCKETS (1 << 20)

static inline size_t memxd_buckets(size_t n)
{
    size_t buckets = 2;
    while (buckets < 2 * n && buckets < MEMXD_MOST_BUCKETS)
        buckets *= 2;
    return buckets;
}

/* The bucket of each score, 0..last: ascends as the score falls; NaN goes to the last, as -infinity does. */
MEMXD_CLONES static void memxd_deal(const double *restrict score, size_t n, double high, double scale, double last,
                                    uint32_t *restrict bucket)
{
    for (size_t i = 0; i < n; i++) {
        double x = (high - score[i]) * scale;
        x = x < last ? x : last;
        x = x > 0.0 ? x : 0.0;
        bucket[i] = (uint32_t)(int32_t)x;
    }
}

/* Entries of the best m or more of n scores, best first, and how many these are; 0 if more than limit would be needed.
 * Dealt into twice as many buckets by size, which leaves little to sort unless scores crowd; no more than the buckets
 * that hold the best m are looked at. entries and room are for limit entries, bucket for n numbers, starts for
 * memxd_buckets(n). */
static size_t memxd_order(const double *score, const int32_t *rids, size_t n, size_t m, size_t limit,
                          memxd_entry *entries, memxd_entry *room, uint32_t *bucket, uint32_t *starts)
{
    size_t buckets = memxd_buckets(n), found = 0, cut = 0;
    uint32_t most = 0;
    double low, high, scale;
    memxd_range(score, n, INFINITY, &low, &high);
    scale = low < high ? (double)buckets / (high - low) : 0.0;
    if (!(scale > 0.0 && scale < INFINITY))
        buckets = 1;
    memxd_deal(score, n, high, scale, (double)(buckets - 1), bucket);
    memset(starts, 0, buckets * sizeof *starts);
    for (size_t i = 0; i < n; i++)
        starts[bucket[i]]++;
    for (; found < m; cut++) {
        uint32_t count = starts[cut];
        most = count > most ? count : most;
        starts[cut] = (uint32_t)found;
        found += count;
    }
    if (found > limit)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (bucket[i] < cut)
            entries[starts[bucket[i]]++] = memxd_make_entry(score[i], rids[i], (uint32_t)i);
    if (most <= MEMXD_CROWD)
        memxd_insertion_sort(entries, found);
    else
        memxd_sort_entries(entries, room, found);
    return found;
}

/* -- deduplication ------------------------------------------------------------------------------------------------- */

/* A hash table of kept positions + 1 (0 = free), size a power of two; its keys are read from the candidates' arrays.
 * kinds not NULL: equal kinds are needed as well. */
typedef struct {
    int32_t *slots;
    size_t size;
    const uint64_t *keys;
    const uint8_t *kinds;
} memxd_table;

static inline size_t memxd_hash(uint64_t key)
{
    uint64_t hash = (key ^ (key >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash ^ (hash >> 29));
}

/* Mark in suspect the keys that may come twice, by a set of bits: many rows, few of them alike, need no table then.
 * Key 0 stands for none. once: 2 * words words, words a power of two. Keys are hashes, whose low bits will do. */
static void memxd_suspects(const uint64_t *keys, size_t n, uint64_t *once, size_t words, uint8_t *suspect)
{
    uint64_t *restrict twice = once + words;
    memset(once, 0, 2 * words * sizeof *once);
    for (size_t i = 0; i < n; i++) {
        size_t word = keys[i] >> 6 & (words - 1);
        uint64_t bit = (uint64_t)(keys[i] != 0) << (keys[i] & 63), before = once[word];
        once[word] = before | bit;
        if (before & bit)
            twice[word] |= bit;
    }
    for (size_t i = 0; i < n; i++)
        suspect[i] |= (keys[i] != 0) & (twice[keys[i] >> 6 & (words - 1)] >> (keys[i] & 63));
}

/* The slot that holds an equal key, or the free one where p belongs. */
static inline int32_t *memxd_slot(const memxd_table *table, int32_t p)
{
    size_t slot = memxd_hash(table->keys[p]) & (table->size - 1);
    while (table->slots[slot]) {
        int32_t other = table->slots[slot] - 1;
        if (table->keys[other] == table->keys[p] && (!table->kinds || table->kinds[other] == table->kinds[p]))
            break;
        slot = (slot + 1) & (table->size - 1);
    }
    return table->slots + slot;
}

enum { MEMXD_DEDUP_OFF = 1, MEMXD_DEDUP_TAGS = 3, MEMXD_DEDUP_ADAPTIVE = 4 };

/* What folding n rows needs besides its outputs; arrays by position. */
typedef struct {
    uint64_t *content, *third, *bits; /* bits: [size / 4] */
    int32_t *slots; /* [2 * size] */
    uint8_t *kinds, *suspect;
    size_t size; /* a power of two >= 2 n */
} memxd_folding;

/* Takes memory for n rows, to free by free(folding->content); 0, or -1 without any. */
static int memxd_take_folding(memxd_folding *folding, size_t n)
{
    size_t size = 8;
    while (size < 2 * n)
        size *= 2;
    folding->content = malloc((2 * n + size / 4) * sizeof(uint64_t) + 2 * size * sizeof(int32_t) + 2 * n);
    if (!folding->content)
        return -1;
    folding->third = folding->content + n;
    folding->bits = folding->third + n;
    folding->slots = (int32_t *)(folding->bits + size / 4);
    folding->kinds = (uint8_t *)(folding->slots + 2 * size);
    folding->suspect = folding->kinds + n;
    folding->size = size;
    return 0;
}

/* Keep of m rows in order each that repeats no kept one before it, else note which one it repeats. A row whose hashes
 * no other has is kept without a table; the others, few, are compared in their order. third: key 0 stands for none.
 * Answers how many are kept. */
static size_t memxd_dedup(const memxd_folding *f, int mode, const int32_t *order, size_t m, int32_t *kept,
                          int32_t *folded_into)
{
    memxd_table tables[2] = {
        {f->slots, f->size, f->content, NULL},
        {f->slots + f->size, f->size, f->third, mode == MEMXD_DEDUP_TAGS ? f->kinds : NULL}};
    int used = mode >= MEMXD_DEDUP_TAGS ? 2 : 1;
    size_t n = 0;
    for (size_t i = 0; i < m; i++) {
        int32_t p = order[i], found = 0, *places[2] = {NULL, NULL};
        for (int t = 0; t < used && f->suspect[p]; t++) {
            if (t == 1 && f->third[p] == 0)
                continue;
            places[t] = memxd_slot(&tables[t], p);
            found = found ? found : *places[t];
        }
        if (found) {
            folded_into[p] = found - 1;
            continue;
        }
        kept[n++] = p;
        for (int t = 0; t < used; t++)
            if (places[t])
                *places[t] = p + 1;
    }
    return n;
}

/* kept, folded_into (-1 = not folded) of n rows, whose positions stand in order best first; answers how many are kept.
 */
static size_t memxd_fold_rows(const memxd_columns *c, int mode, const int32_t *rids, const int32_t *order, size_t n,
                         memxd_folding *f, int32_t *kept, int32_t *folded_into)
{
    const uint64_t *third_of = mode == MEMXD_DEDUP_TAGS ? c->tag : c->fold;
    memset(folded_into, 255, n * sizeof *folded_into); /* -1 */
    if (mode == MEMXD_DEDUP_OFF) {
        memcpy(kept, order, n * sizeof *kept);
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        f->content[i] = c->content[rids[i]];
        f->third[i] = third_of[rids[i]];
    }
    for (size_t i = 0; i < n && mode == MEMXD_DEDUP_TAGS; i++)
        f->kinds[i] = c->type[rids[i]];
    for (size_t i = 0; i < n; i++)
        f->suspect[i] = f->content[i] == 0; /* no key is "none" here */
    memxd_suspects(f->content, n, f->bits, f->size / 8, f->suspect);
    if (mode >= MEMXD_DEDUP_TAGS)
        memxd_suspects(f->third, n, f->bits, f->size / 8, f->suspect);
    memset(f->slots, 0, 2 * f->size * sizeof *f->slots);
    return memxd_dedup(f, mode, order, n, kept, folded_into);
}

#endif
