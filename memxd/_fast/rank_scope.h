/* Ranking every row of a scope in one run: rank_py.rank_all in C, on bare arrays that its entry has checked.
 *
 * Rows are scored in blocks that stay in the first cache and are not stored: the sums for mean and deviation are taken
 * on the way, and of every chunk of rows only the largest score is kept. The m-th largest of those is a bound that at
 * least m rows reach, so the few chunks that reach it are scored again and sorted. No row order makes that slow. The
 * scores of a small scope are kept instead, and its best are taken from buckets by size unless scores crowd.
 */
#ifndef MEMXD_RANK_SCOPE_H
#define MEMXD_RANK_SCOPE_H

#include "rank_select.h"

#define MEMXD_CHUNK 64 /* rows of a chunk, and of a word of the set of rows that the legs brought */
#define MEMXD_SMALL 8192

/* The rows of the scope that a leg brought, by position ascending: n of each array. Which these are is told by a set of
 * bits, one a row, and by how many rows come before each word of it; so nothing is sorted, and each is found at once.
 */
typedef struct {
    double *rrf, *semantic;
    uint64_t *bits; /* [rows / 64 + 1] */
    uint32_t *before;
    int32_t *positions, *vector_rank, *keyword_rank;
    size_t n;
    void *block; /* what to free */
} memxd_fused;

/* What to rank: n rids strictly ascending, what is fused, and how. */
typedef struct {
    const int32_t *rids;
    size_t n;
    memxd_columns columns;
    memxd_fused fused;
    double now, rate;
    memxd_weights weights;
    double *raw; /* [n], every row's score, of a small scope; NULL = the few that matter are scored again */
} memxd_scope;

/* The best depth rows, best first; the caller frees entries. */
typedef struct {
    memxd_entry *entries;
    int32_t *rids, *kept, *folded_into; /* [depth]; the last two within entries */
    size_t depth, kept_n;
    memxd_moments moments;
} memxd_best;

/* Where rids lie in the scope: bucket b holds those of equal leading bits, from position starts[b] on, a row on average;
 * the bucket is searched. When few are looked for, one bucket holds all, because dealing the scope would cost more. */
typedef struct {
    uint32_t *starts; /* [buckets + 1] */
    size_t buckets;
    int shift;
} memxd_finder;

static inline size_t memxd_bucket_of(const memxd_finder *p, int64_t first, int32_t rid)
{
    uint64_t bucket = (uint64_t)((int64_t)rid - first) >> p->shift;
    return bucket < p->buckets ? (size_t)bucket : p->buckets - 1;
}

/* Rids that do not ascend, which are refused later, leave starts that no search leaves the scope by. */
static void memxd_fill_finder(const memxd_scope *s, size_t most, memxd_finder *p)
{
    int64_t first = s->rids[0], span = (int64_t)s->rids[s->n - 1] - first;
    p->buckets = span > 0 ? most : 1;
    for (p->shift = 0; p->shift < 32 && (uint64_t)span >> p->shift >= most; p->shift++)
        ;
    memset(p->starts, 0, (p->buckets + 1) * sizeof *p->starts);
    for (size_t i = 0; i < s->n && p->buckets > 1; i++)
        p->starts[memxd_bucket_of(p, first, s->rids[i]) + 1] = (uint32_t)(i + 1);
    p->starts[p->buckets] = (uint32_t)s->n;
    for (size_t b = 1; b < p->buckets; b++)
        p->starts[b] = p->starts[b] > p->starts[b - 1] ? p->starts[b] : p->starts[b - 1];
}

/* The position of rid, the scope's length if it is none of its. */
static inline size_t memxd_position(const memxd_scope *s, const memxd_finder *p, int32_t rid)
{
    size_t bucket = memxd_bucket_of(p, s->rids[0], rid), at = p->starts[bucket], n = p->starts[bucket + 1] - at;
    while (n > 1) {
        size_t half = n / 2;
        at = s->rids[at + half] <= rid ? at + half : at;
        n -= half;
    }
    return at < s->n && s->rids[at] == rid ? at : s->n;
}

/* Note where the rows of a leg lie in the scope, and set their bits. */
static inline void memxd_find_leg(const memxd_scope *s, const memxd_finder *p, const int32_t *leg, size_t m,
                                  int32_t *where)
{
    for (size_t i = 0; i < m; i++) {
        size_t at = memxd_position(s, p, leg[i]);
        where[i] = (int32_t)at;
        s->fused.bits[at / 64] |= UINT64_C(1) << (at % 64);
    }
}

/* The number of a position among those that legs brought: its own if it was brought. */
static inline size_t memxd_fused_number(const memxd_fused *f, size_t at)
{
    return f->before[at / 64] + (size_t)__builtin_popcountll(f->bits[at / 64] & ((UINT64_C(1) << (at % 64)) - 1));
}

/* Ranks from 1 by number, 0 = absent; a rid that comes twice counts where it came first. */
static inline void memxd_rank_leg(const memxd_scope *s, const int32_t *where, size_t m, int32_t *ranks)
{
    for (size_t i = 0; i < m; i++) {
        size_t at = (size_t)where[i], number;
        if (at == s->n)
            continue;
        number = memxd_fused_number(&s->fused, at);
        s->fused.positions[number] = where[i];
        ranks[number] = ranks[number] ? ranks[number] : (int32_t)(i + 1);
    }
}

/* Both legs' rows counted and ranked; where: room for both. */
MEMXD_CLONES static void memxd_join_legs(memxd_scope *s, const memxd_finder *p, const int32_t *a, size_t a_n,
                                         const int32_t *b, size_t b_n, int32_t *where)
{
    memxd_fused *f = &s->fused;
    size_t words = s->n / 64 + 1;
    memxd_find_leg(s, p, a, a_n, where);
    memxd_find_leg(s, p, b, b_n, where + a_n);
    f->bits[s->n / 64] &= ~(UINT64_C(1) << (s->n % 64));
    for (size_t w = 0; w < words; w++) {
        f->before[w] = (uint32_t)f->n;
        f->n += f->bits[w] ? (size_t)__builtin_popcountll(f->bits[w]) : 0;
    }
    memxd_rank_leg(s, where, a_n, f->vector_rank);
    memxd_rank_leg(s, where + a_n, b_n, f->keyword_rank);
}

/* Fuse what two legs brought of the scope's rows, at least one; 0, or -1 without memory. */
static int memxd_fuse_legs(memxd_scope *s, const int32_t *a, size_t a_n, const int32_t *b, size_t b_n, double k,
                           double a_weight, double b_weight)
{
    memxd_fused *f = &s->fused;
    size_t both = a_n + b_n, words = s->n / 64 + 1, most = s->n <= 4 * both ? s->n : 1;
    memxd_finder finder;
    double most_rrf = memxd_most_rrf(k, a_weight, b_weight);
    size_t zeros = words * sizeof(uint64_t) + 2 * both * sizeof(int32_t);
    f->n = 0;
    f->block = malloc(zeros + 2 * both * (sizeof(double) + sizeof(int32_t))
                      + (words + most + 1) * sizeof(uint32_t));
    if (!f->block)
        return -1;
    memset(f->block, 0, zeros);
    f->bits = f->block;
    f->vector_rank = (int32_t *)(f->bits + words);
    f->keyword_rank = f->vector_rank + both;
    f->rrf = (double *)(f->keyword_rank + both);
    f->semantic = f->rrf + both;
    f->positions = (int32_t *)(f->semantic + both);
    f->before = (uint32_t *)(f->positions + 2 * both); /* behind the positions, room for where the legs' rows lie */
    finder.starts = f->before + words;
    memxd_fill_finder(s, most, &finder);
    memxd_join_legs(s, &finder, a, a_n, b, b_n, f->positions + both);
    memxd_rrf_all(f->vector_rank, f->keyword_rank, f->n, k, a_weight, b_weight, f->rrf);
    for (size_t i = 0; i < f->n; i++)
        f->semantic[i] = memxd_of_maximum(f->rrf[i], most_rrf);
    return 0;
}

/* Whether n rids ascend strictly from after the one given. */
MEMXD_CLONES static int memxd_ascending(const int32_t *restrict rids, size_t n, int32_t before)
{
    int wrong = rids[0] <= before;
    for (size_t i = 1; i < n; i++)
        wrong |= rids[i] <= rids[i - 1];
    return !wrong;
}

/* raw of count <= MEMXD_BLOCK rows from position at, a multiple of MEMXD_CHUNK. */
static void memxd_score_rows(const memxd_scope *s, size_t at, size_t count, double *restrict raw)
{
    double meaning[MEMXD_BLOCK];
    memxd_gathered g;
    const memxd_columns *c = &s->columns;
    const memxd_fused *fused = &s->fused;
    const int32_t *rids = s->rids + at;
    int32_t first = rids[0], last = rids[count - 1];
    memset(meaning, 0, count * sizeof *meaning);
    for (size_t f = fused->before[at / 64]; f < fused->n && (size_t)fused->positions[f] < at + count; f++)
        meaning[(size_t)fused->positions[f] - at] = fused->semantic[f];
    if ((size_t)(last - first) == count - 1) { /* no gap: the columns can be read as they lie */
        memxd_score_block(count, meaning, c->reference + first, c->retrieval + first, c->access + first,
                          c->importance + first, s->now, s->rate, s->weights, raw);
        return;
    }
    memxd_gather(c, rids, count, &g);
    memxd_score_block(count, meaning, g.reference, g.retrieval, g.access, g.importance, s->now, s->rate, s->weights,
                      raw);
}

/* Moments of a scope in which something is not finite: two more passes. */
static memxd_moments memxd_measure_again(const memxd_scope *s)
{
    memxd_moments none = {0.0, 0.0, 0.0, 0.0, 0.0};
    memxd_sums sums = {{{0.0}}};
    double raw[MEMXD_BLOCK], low = INFINITY, high = -INFINITY, l, h, shift = 0.0;
    for (size_t at = 0; at < s->n; at += MEMXD_BLOCK) {
        size_t count = s->n - at < MEMXD_BLOCK ? s->n - at : MEMXD_BLOCK;
        memxd_score_rows(s, at, count, raw);
        memxd_range(raw, count, INFINITY, &l, &h);
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    if (low > high)
        return none;
    for (size_t at = 0; at < s->n; at += MEMXD_BLOCK) {
        size_t count = s->n - at < MEMXD_BLOCK ? s->n - at : MEMXD_BLOCK;
        memxd_score_rows(s, at, count, raw);
        memxd_clamp_all(raw, count, low, high);
        shift = at ? shift : raw[0];
        memxd_add(&sums, raw, count, shift);
    }
    return memxd_of_sums(&sums, s->n, shift, low, high);
}

/* Score every row: moments, and the largest score of each chunk where scores are not kept. 0, or -1 when rids are not as they must be. */
static int memxd_scan(const memxd_scope *s, size_t columns_size, double *maxima, memxd_moments *moments)
{
    memxd_sums sums = {{{0.0}}};
    double block[MEMXD_BLOCK], shift = 0.0;
    int32_t before = -1;
    for (size_t at = 0; at < s->n; at += MEMXD_BLOCK) {
        double *raw = s->raw ? s->raw + at : block;
        size_t count = s->n - at < MEMXD_BLOCK ? s->n - at : MEMXD_BLOCK;
        if (!memxd_ascending(s->rids + at, count, before))
            return -1;
        before = s->rids[at + count - 1];
        if ((size_t)before >= columns_size)
            return -1;
        memxd_score_rows(s, at, count, raw);
        shift = at ? shift : raw[0];
        if (s->raw)
            memxd_add(&sums, raw, count, shift);
        for (size_t i = 0; i < count && !s->raw; i += MEMXD_CHUNK)
            *maxima++ = memxd_add(&sums, raw + i, count - i < MEMXD_CHUNK ? count - i : MEMXD_CHUNK, shift);
    }
    *moments = memxd_all_finite(&sums) ? memxd_of_sums(&sums, s->n, shift, -INFINITY, INFINITY) : memxd_measure_again(s);
    return 0;
}

/* The m-th largest of n values without NaN, 1 <= m <= n; heap has room for m. From the end, where the newest lie. */
static double memxd_nth_largest(const double *values, size_t n, double *heap, size_t m)
{
    size_t filled = 0;
    for (size_t i = n; i-- > 0;) {
        double v = values[i];
        size_t at = 0;
        if (filled < m) {
            for (at = filled++; at > 0 && v < heap[(at - 1) / 2]; at = (at - 1) / 2)
                heap[at] = heap[(at - 1) / 2];
        } else if (v > heap[0]) {
            for (size_t child = 1; child < m; child = 2 * at + 1) {
                child += child + 1 < m && heap[child + 1] < heap[child];
                if (!(heap[child] < v))
                    break;
                heap[at] = heap[child];
                at = child;
            }
        } else {
            continue;
        }
        heap[at] = v;
    }
    return heap[0];
}

/* Every row that may be among the best m: those above the bound, and the first m that equal it. */
static size_t memxd_collect(const memxd_scope *s, const double *maxima, double bound, size_t m, memxd_entry *entries)
{
    double block[MEMXD_CHUNK];
    size_t found = 0, equal = 0;
    int all = !(bound > -INFINITY);
    for (size_t at = 0; at < s->n; at += MEMXD_CHUNK) {
        double most = *maxima++;
        size_t count = s->n - at < MEMXD_CHUNK ? s->n - at : MEMXD_CHUNK;
        if (!all && (most < bound || (most == bound && equal >= m)))
            continue;
        const double *raw = s->raw ? s->raw + at : block;
        if (!s->raw)
            memxd_score_rows(s, at, count, block);
        for (size_t i = 0; i < count; i++) {
            if (!all && !(raw[i] > bound)) {
                if (raw[i] != bound || equal >= m)
                    continue;
                equal++;
            }
            entries[found++] = memxd_make_entry(raw[i], s->rids[at + i], (uint32_t)(at + i));
        }
    }
    return found;
}

/* Room for so many entries: the first depth of them, sorted, are the best; 0, or -1 without memory. */
static int memxd_make_room(size_t room, size_t extra, size_t m, memxd_best *best)
{
    memxd_entry *entries = malloc(2 * room * sizeof *entries + 3 * m * sizeof(int32_t) + extra);
    if (!entries)
        return -1;
    free(best->entries);
    best->entries = entries;
    best->rids = (int32_t *)(entries + 2 * room);
    best->kept = best->rids + m;
    best->folded_into = best->kept + m;
    best->depth = m;
    return 0;
}

/* The best m rows of a scope whose scores are kept; 1, 0 if scores crowd too much for it, or -1 without memory. */
static int memxd_take_dealt(const memxd_scope *s, size_t m, memxd_best *best)
{
    size_t room = 4 * m < s->n ? 4 * m : s->n;
    if (memxd_make_room(room, (s->n + memxd_buckets(s->n)) * sizeof(uint32_t), m, best))
        return -1;
    uint32_t *bucket = (uint32_t *)(best->folded_into + m);
    return memxd_order(s->raw, s->rids, s->n, m, room, best->entries, best->entries + room, bucket, bucket + s->n) > 0;
}

/* The best m rows by a bound; maxima: largest score of each chunk. 0, or -1 without memory. */
static int memxd_take_bounded(const memxd_scope *s, const double *maxima, size_t m, memxd_best *best)
{
    size_t chunks = (s->n + MEMXD_CHUNK - 1) / MEMXD_CHUNK, room = s->n;
    double bound = -INFINITY;
    if (m < chunks) {
        double *heap = malloc(m * sizeof *heap);
        if (!heap)
            return -1;
        bound = memxd_nth_largest(maxima, chunks, heap, m);
        free(heap);
        if (bound > -INFINITY && MEMXD_CHUNK * (m - 1) + m < room)
            room = MEMXD_CHUNK * (m - 1) + m;
    }
    if (memxd_make_room(room, 0, m, best))
        return -1;
    size_t found = memxd_collect(s, maxima, bound, m, best->entries);
    memxd_sort_entries(best->entries, best->entries + room, found);
    return 0;
}

/* The best m rows, and what repeats itself among them; 0, or -1 without memory. maxima are found here where scores are
 * kept. */
static int memxd_take_best(const memxd_scope *s, int mode, double *maxima, size_t m, memxd_best *best)
{
    memxd_folding folding;
    int taken = s->raw ? memxd_take_dealt(s, m, best) : 0;
    if (!taken) {
        for (size_t at = 0; at < s->n && s->raw; at += MEMXD_CHUNK)
            maxima[at / MEMXD_CHUNK]
                = memxd_largest(s->raw + at, s->n - at < MEMXD_CHUNK ? s->n - at : MEMXD_CHUNK, -INFINITY);
        taken = memxd_take_bounded(s, maxima, m, best);
    }
    if (taken < 0 || memxd_take_folding(&folding, m))
        return -1;
    int32_t *order = (int32_t *)(best->entries + m); /* what sorting used */
    for (size_t i = 0; i < m; i++) {
        best->rids[i] = s->rids[memxd_entry_position(best->entries[i])];
        order[i] = (int32_t)i;
    }
    best->kept_n = memxd_fold_rows(&s->columns, mode, best->rids, order, m, &folding, best->kept, best->folded_into);
    free(folding.content);
    return 0;
}

/* 0; -1 for rids that are not as they must be, -2 without memory. best->entries is the caller's to free, always. */
static int memxd_rank_scope(memxd_scope *s, size_t columns_size, int mode, size_t k, size_t whole, memxd_best *best)
{
    size_t depth = 2 * k > 64 ? 2 * k : 64, chunks = s->n / MEMXD_CHUNK + 1;
    int wrong;
    double *maxima = malloc((chunks + (s->n > MEMXD_SMALL ? 0 : s->n)) * sizeof *maxima);
    if (!maxima)
        return -2;
    s->raw = s->n > MEMXD_SMALL ? NULL : maxima + chunks;
    wrong = memxd_scan(s, columns_size, maxima, &best->moments);
    depth = s->n <= whole || depth > s->n ? s->n : depth;
    while (!wrong) {
        wrong = memxd_take_best(s, mode, maxima, depth, best) ? -2 : 0;
        if (wrong || best->kept_n >= k || depth == s->n)
            break;
        depth = depth > s->n / 4 ? s->n : 4 * depth;
    }
    free(maxima);
    return wrong;
}

/* Where the arrays of the answer lie: row r of ids begins at ids + r * depth, alike for values. */
static void memxd_fill_best(const memxd_scope *s, const memxd_best *best, int normalise, int32_t *ids, double *values)
{
    const memxd_fused *fused = &s->fused;
    size_t m = best->depth;
    double *semantic = values + m, *recency = semantic + m, *frequency = recency + m, *importance = frequency + m;
    double *raw = importance + m, *z = raw + m, *score = z + m;
    for (size_t i = 0; i < m; i++) {
        size_t at = memxd_entry_position(best->entries[i]), f = 0;
        int found = (int)(fused->bits[at / 64] >> (at % 64) & 1);
        if (found)
            f = memxd_fused_number(fused, at);
        ids[m + i] = found ? fused->vector_rank[f] : 0;
        ids[2 * m + i] = found ? fused->keyword_rank[f] : 0;
        values[i] = found ? fused->rrf[f] : 0.0;
        semantic[i] = found ? fused->semantic[f] : 0.0;
    }
    memcpy(ids, best->rids, m * sizeof *ids);
    memcpy(ids + 3 * m, best->folded_into, m * sizeof *ids);
    memxd_factors(&s->columns, ids, m, s->now, s->rate, recency, frequency, importance);
    memxd_combine(semantic, recency, frequency, importance, m, s->weights, raw);
    memxd_normalise(raw, m, best->moments, z, score);
    if (!normalise)
        memcpy(score, raw, m * sizeof *score);
}

#endif
