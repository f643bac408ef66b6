/* The loops of _rank.pyx that merge, choose and fold: plain C on bare arrays, whose lengths and contents its entries
 * have checked. No Python object is touched, so all of it runs without the GIL. */
#ifndef MEMXD_RANK_SELECT_H
#define MEMXD_RANK_SELECT_H

#include "rank_loops.h"

/* -- reciprocal rank fusion ---------------------------------------------------------------------------------------- */

/* keys = rid and rank in one number, ascending: equal rids come best rank first. The ranks ascend already, so a stable
 * sort by the rid's digits is enough; room is for n more. */
static void memxd_sort_leg(const int32_t *rids, size_t n, int64_t *keys, int64_t *room)
{
    uint32_t counts[4][256];
    int64_t *from = keys, *to = room, *swap;
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < n; i++) {
        uint32_t digits = (uint32_t)rids[i] ^ UINT32_C(0x80000000);
        keys[i] = (int64_t)rids[i] * 4294967296 + (int64_t)(i + 1);
        for (int d = 0; d < 4; d++)
            counts[d][(digits >> (8 * d)) & 255]++;
    }
    for (int d = 0; d < 4; d++) {
        uint32_t start = 0, digit = n ? (((uint32_t)rids[0] ^ UINT32_C(0x80000000)) >> (8 * d)) & 255 : 0;
        if (counts[d][digit] == n)
            continue; /* all alike */
        for (int v = 0; v < 256; v++) {
            uint32_t count = counts[d][v];
            counts[d][v] = start;
            start += count;
        }
        for (size_t i = 0; i < n; i++)
            to[counts[d][(((uint64_t)from[i] ^ UINT64_C(0x8000000000000000)) >> (32 + 8 * d)) & 255]++] = from[i];
        swap = from;
        from = to;
        to = swap;
    }
    if (from != keys)
        memcpy(keys, from, n * sizeof *keys);
}

static inline int32_t memxd_key_rid(int64_t key)
{
    return (int32_t)(key >> 32);
}

/* The rank of rid at position *i of a sorted leg, 0 if it is another's; moves *i past all of its entries. */
static inline int32_t memxd_take(const int64_t *keys, size_t n, size_t *i, int32_t rid)
{
    int32_t rank = 0;
    if (*i < n && memxd_key_rid(keys[*i]) == rid)
        rank = (int32_t)(keys[*i] & INT64_C(0xFFFFFFFF));
    while (*i < n && memxd_key_rid(keys[*i]) == rid)
        ++*i;
    return rank;
}

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

static inline double memxd_of_maximum(double rrf, double most)
{
    return most > 0.0 ? rrf / most : 0.0;
}

/* Outputs have room for a_n + b_n, keys for twice as many; answers how many rids there are. */
static size_t memxd_fuse(const int32_t *a, size_t a_n, const int32_t *b, size_t b_n, int64_t *keys, double k,
                         double a_weight, double b_weight, int32_t *rids, double *score, int32_t *a_rank,
                         int32_t *b_rank)
{
    int64_t *a_keys = keys, *b_keys = keys + a_n, *room = keys + a_n + b_n;
    size_t i = 0, j = 0, n = 0;
    memxd_sort_leg(a, a_n, a_keys, room);
    memxd_sort_leg(b, b_n, b_keys, room);
    for (; i < a_n || j < b_n; n++) {
        int from_a = j >= b_n || (i < a_n && memxd_key_rid(a_keys[i]) <= memxd_key_rid(b_keys[j]));
        int32_t rid = memxd_key_rid(from_a ? a_keys[i] : b_keys[j]);
        rids[n] = rid;
        a_rank[n] = memxd_take(a_keys, a_n, &i, rid);
        b_rank[n] = memxd_take(b_keys, b_n, &j, rid);
        score[n] = memxd_rrf(a_rank[n], b_rank[n], k, a_weight, b_weight);
    }
    return n;
}

/* -- the best k ---------------------------------------------------------------------------------------------------- */

/* Whether position i ranks before position j: score descending, NaN last, then rid, then position. */
static inline int memxd_before(const double *score, const int32_t *rids, int32_t i, int32_t j)
{
    double a = score[i], b = score[j];
    if (a > b)
        return 1;
    if (a < b)
        return 0;
    if ((a != a) != (b != b))
        return b != b;
    return rids[i] != rids[j] ? rids[i] < rids[j] : i < j;
}

/* Restore the heap whose root is the last in rank. */
static void memxd_sift_down(int32_t *heap, size_t size, size_t root, const double *score, const int32_t *rids)
{
    int32_t moving = heap[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= size)
            break;
        if (child + 1 < size && memxd_before(score, rids, heap[child], heap[child + 1]))
            child++;
        if (!memxd_before(score, rids, moving, heap[child]))
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = moving;
}

/* best: k positions out of n, k <= n, best first. */
static void memxd_top_k(const double *score, const int32_t *rids, size_t n, int32_t *best, size_t k)
{
    if (k == 0)
        return;
    for (size_t i = 0; i < k; i++)
        best[i] = (int32_t)i;
    for (size_t i = k / 2; i-- > 0;)
        memxd_sift_down(best, k, i, score, rids);
    for (size_t i = k; i < n; i++)
        if (!(score[i] < score[best[0]]) && memxd_before(score, rids, (int32_t)i, best[0])) {
            best[0] = (int32_t)i;
            memxd_sift_down(best, k, 0, score, rids);
        }
    for (size_t i = k; i-- > 1;) {
        int32_t last = best[0];
        best[0] = best[i];
        best[i] = last;
        memxd_sift_down(best, i, 0, score, rids);
    }
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

static inline size_t memxd_buckets(size_t n)
{
    size_t buckets = 2;
    while (buckets < 2 * n)
        buckets *= 2;
    return buckets;
}

/* Ascends as the score falls; NaN goes to the last, as -infinity does. */
static inline size_t memxd_bucket(double score, double high, double scale, size_t buckets)
{
    double x = (high - score) * scale;
    return x < (double)buckets ? (x > 0.0 ? (size_t)x : 0) : buckets - 1;
}

/* Entries of n scores, best first: dealt into twice as many buckets by size, which leaves little to sort unless scores
 * crowd. room is for n entries, starts for memxd_buckets(n) + 1 numbers. */
static void memxd_order(const double *score, const int32_t *rids, size_t n, memxd_entry *entries, memxd_entry *room,
                        uint32_t *starts)
{
    size_t buckets = memxd_buckets(n);
    uint32_t most = 0;
    double low, high, scale;
    memxd_range(score, n, INFINITY, &low, &high);
    scale = low < high ? (double)buckets / (high - low) : 0.0;
    if (!(scale > 0.0 && scale < INFINITY))
        buckets = 1;
    memset(starts, 0, (buckets + 1) * sizeof *starts);
    for (size_t i = 0; i < n; i++) {
        uint32_t *count = &starts[memxd_bucket(score[i], high, scale, buckets) + 1];
        most = ++*count > most ? *count : most;
    }
    for (size_t b = 0; b < buckets; b++)
        starts[b + 1] += starts[b];
    for (size_t i = 0; i < n; i++)
        entries[starts[memxd_bucket(score[i], high, scale, buckets)]++]
            = memxd_make_entry(score[i], rids[i], (uint32_t)i);
    if (most <= MEMXD_CROWD)
        memxd_insertion_sort(entries, n);
    else
        memxd_sort_entries(entries, room, n);
}

/* -- deduplication ------------------------------------------------------------------------------------------------- */

/* A hash table of kept positions + 1 (0 = free), size a power of two; its keys are read from the candidates' arrays.
 * keys NULL: the table does nothing. kinds not NULL: equal kinds are needed as well. */
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

/* slots: 3 * size zeros, size >= 2 * limit; third: key 0 stands for none; suspect: 0 for positions that are like no
 * other, NULL = not known. Answers how many are kept (<= limit). */
static size_t memxd_dedup(const int32_t *order, size_t m, const uint64_t *ids, const uint64_t *content,
                          const uint64_t *third, const uint8_t *third_kinds, const uint8_t *suspect, int32_t *slots,
                          size_t size, int32_t *kept, size_t limit, int32_t *folded_into)
{
    memxd_table tables[3] = {
        {slots, size, ids, NULL}, {slots + size, size, content, NULL}, {slots + 2 * size, size, third, third_kinds}};
    size_t n = 0;
    for (size_t i = 0; i < m; i++) {
        int32_t p = order[i], found = 0, *places[3] = {NULL, NULL, NULL};
        if (suspect && !suspect[p] && n < limit) {
            kept[n++] = p;
            continue;
        }
        for (int t = 0; t < 3; t++) {
            if (!tables[t].keys || (t == 2 && tables[t].keys[p] == 0))
                continue;
            places[t] = memxd_slot(&tables[t], p);
            found = found ? found : *places[t];
        }
        if (found) {
            folded_into[p] = found - 1;
        } else if (n < limit) {
            kept[n++] = p;
            for (int t = 0; t < 3; t++)
                if (places[t])
                    *places[t] = p + 1;
        }
    }
    return n;
}

#endif
