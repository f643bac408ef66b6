/* The loops of _rank.pyx that merge, choose and fold: plain C on bare arrays, whose lengths and contents its entries
 * have checked. No Python object is touched, so all of it runs without the GIL. */
#ifndef MEMXD_RANK_SELECT_H
#define MEMXD_RANK_SELECT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* -- reciprocal rank fusion ---------------------------------------------------------------------------------------- */

static int memxd_compare_keys(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* keys = rid and rank in one number, ascending: equal rids come best rank first. */
static void memxd_sort_leg(const int32_t *rids, size_t n, int64_t *keys)
{
    for (size_t i = 0; i < n; i++)
        keys[i] = (int64_t)rids[i] * 4294967296 + (int64_t)(i + 1);
    if (n > 1)
        qsort(keys, n, sizeof *keys, memxd_compare_keys);
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

/* Outputs have room for a_n + b_n, key arrays for a_n and b_n; answers how many rids there are. */
static size_t memxd_fuse(const int32_t *a, size_t a_n, const int32_t *b, size_t b_n, int64_t *a_keys, int64_t *b_keys,
                         int64_t k, double a_weight, double b_weight, int32_t *rids, double *score, int32_t *a_rank,
                         int32_t *b_rank)
{
    size_t i = 0, j = 0, n = 0;
    memxd_sort_leg(a, a_n, a_keys);
    memxd_sort_leg(b, b_n, b_keys);
    for (; i < a_n || j < b_n; n++) {
        int from_a = j >= b_n || (i < a_n && memxd_key_rid(a_keys[i]) <= memxd_key_rid(b_keys[j]));
        int32_t rid = memxd_key_rid(from_a ? a_keys[i] : b_keys[j]);
        rids[n] = rid;
        a_rank[n] = memxd_take(a_keys, a_n, &i, rid);
        b_rank[n] = memxd_take(b_keys, b_n, &j, rid);
        score[n] = (a_rank[n] ? a_weight / (double)(k + a_rank[n]) : 0.0)
            + (b_rank[n] ? b_weight / (double)(k + b_rank[n]) : 0.0);
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

/* -- deduplication ------------------------------------------------------------------------------------------------- */

/* A hash table of kept positions + 1 (0 = free), size a power of two; its keys are read from the candidates' arrays.
 * keys NULL: the table does nothing. kinds not NULL: equal kinds are needed as well. */
typedef struct {
    int32_t *slots;
    size_t size;
    const uint64_t *keys;
    const uint8_t *kinds;
} memxd_table;

/* The slot that holds an equal key, or the free one where p belongs. */
static inline int32_t *memxd_slot(const memxd_table *table, int32_t p)
{
    uint64_t hash = (table->keys[p] ^ (table->keys[p] >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
    size_t slot = (size_t)(hash ^ (hash >> 29)) & (table->size - 1);
    while (table->slots[slot]) {
        int32_t other = table->slots[slot] - 1;
        if (table->keys[other] == table->keys[p] && (!table->kinds || table->kinds[other] == table->kinds[p]))
            break;
        slot = (slot + 1) & (table->size - 1);
    }
    return table->slots + slot;
}

/* slots: 3 * size zeros, size >= 2 * limit; third: key 0 stands for none. Answers how many are kept (<= limit). */
static size_t memxd_dedup(const int32_t *order, size_t m, const uint64_t *ids, const uint64_t *content,
                          const uint64_t *third, const uint8_t *third_kinds, int32_t *slots, size_t size,
                          int32_t *kept, size_t limit, int32_t *folded_into)
{
    memxd_table tables[3] = {
        {slots, size, ids, NULL}, {slots + size, size, content, NULL}, {slots + 2 * size, size, third, third_kinds}};
    size_t n = 0;
    for (size_t i = 0; i < m; i++) {
        int32_t p = order[i], found = 0, *places[3] = {NULL, NULL, NULL};
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
