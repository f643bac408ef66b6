/* One list after the other, the one that can add most first: the way for questions of a few words. Part of bm25_run.h,
 * which has the other (all lists at once, by windows) and explains why approximations may decide what is looked at.
 *
 * The first lists are short, and their documents are likely the best: they raise the floor before a long list is read.
 * A list's documents need look only into the lists behind it, and only as long as these can add enough; the lists at the
 * end, which together cannot reach the floor, are not read at all. Bounds are those of the piece that is read.
 */
#ifndef MEMXD_BM25_TURNS_H
#define MEMXD_BM25_TURNS_H

#include "bm25_sieve.h"
#include "bm25_wait.h"

#define BM25_PIECE 512 /* postings read at a time, about: then the floor is asked again */

/* What reading a posting, looking one up, reading and adding it by windows, and each list of each window cost. */
#define BM25_COST_READ 1.0
#define BM25_COST_LOOK 0.4
#define BM25_COST_ADD 3.5
#define BM25_COST_WINDOW 20.0

/* Bounds descending. */
static int bm25_by_bound(const void *left, const void *right) {
    const bm25_turn *a = (const bm25_turn *)left, *b = (const bm25_turn *)right;
    if (a->ratio != b->ratio) return a->ratio > b->ratio ? -1 : 1;
    return a->lane < b->lane ? -1 : a->lane > b->lane;
}

static inline bm25_lane *bm25_turn_of(const bm25_search *s, int64_t turn) { return &s->lanes[s->turns[turn].lane]; }

static void bm25_take_turns(bm25_search *s, int64_t lanes) {
    float rest = 0.0f;
    for (int64_t i = 0; i < lanes; i++) s->turns[i].ratio = s->lanes[i].bound, s->turns[i].lane = (int32_t)i;
    qsort(s->turns, (size_t)lanes, sizeof *s->turns, bm25_by_bound);
    for (int64_t i = lanes - 1; i >= 0; i--) {
        bm25_lane *lane = bm25_turn_of(s, i);
        lane->rest = rest;
        rest += lane->bound;
    }
}

/* What a sum must be when `rest` is all that can come. */
static inline float bm25_need(double least, float rest) {
    const double need = (least - (double)rest) * 0.9999999;
    return need > 0.0 ? (float)need : 0.0f;
}

/* What the posting `at` of a list adds. */
static inline float bm25_share_at(const bm25_list *list, int64_t at, float norm, float weight) {
    const uint32_t packed = list->packed[at] >> 16;
    const float tf = packed == BM25_LARGE ? 1e30f : (float)(int32_t)packed;
    return weight * (tf / (tf + norm));
}

/* Add one list's shares to the n documents in scratch (ascending) and keep those that reach `need`; how many. */
static int64_t bm25_look(const bm25_lane *lane, bm25_scratch *scratch, int64_t n, float need) {
    const bm25_list *list = lane->list;
    const float weight = lane->weight;
    int64_t kept = 0, cursor = list->from;
    for (int64_t i = 0; i < n; i++) {
        const int32_t doc = scratch->docs[i];
        const float norm = scratch->parts[i];
        float value = scratch->values[i];
        if (list->dense && list->dense[doc] < 255) {
            value += weight * bm25_saturated((float)list->dense[doc], norm);
        } else if (!list->filter || bm25_possible(list, doc)) {
            cursor = list->starts ? bm25_in_list(list, doc) : bm25_gallop(list->docs, cursor, list->to, doc);
            if (list->starts ? cursor >= 0 : cursor < list->to && list->docs[cursor] == doc)
                value += bm25_share_at(list, cursor, norm, weight);
        }
        scratch->docs[kept] = doc, scratch->values[kept] = value, scratch->parts[kept] = norm;
        kept += value >= need;
    }
    return kept;
}

/* Whether an earlier list holds the document, which then was judged. */
static int bm25_judged(const bm25_search *s, int32_t doc, int64_t turn) {
    for (int64_t i = 0; i < turn; i++) {
        const bm25_list *list = bm25_turn_of(s, i)->list;
        if (list->dense ? list->dense[doc] != 0 : !(list->filter && !bm25_possible(list, doc)) && bm25_in_list(list, doc) >= 0)
            return 1;
    }
    return 0;
}

/* Keep those of the n documents in scratch that are selected living ones of the scope. */
static int64_t bm25_pass(const bm25_search *s, const bm25_segment *segment, int64_t n) {
    bm25_scratch *scratch = s->scratch;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t doc = scratch->docs[i];
        if (!bm25_own(s, segment, doc) || !bm25_selected(s, segment->rids[doc])) continue;
        scratch->docs[kept] = doc, scratch->values[kept] = scratch->values[i], scratch->parts[kept] = scratch->parts[i];
        kept++;
    }
    return kept;
}

/* The n documents in scratch have all their shares; `few`: all of them are selected. */
static void bm25_found(bm25_search *s, int64_t number, int64_t n, int64_t turn, int few) {
    const bm25_segment *segment = &s->segments[number];
    const bm25_scratch *scratch = s->scratch;
    if (s->floor <= 0.0 && s->kept < s->k && s->k - s->near_count < n)
        bm25_front(s->scratch->values, s->scratch->docs, n, s->k - s->near_count);
    for (int64_t i = 0; i < n; i++) {
        const int32_t doc = scratch->docs[i];
        if ((double)scratch->values[i] < bm25_least(s)) continue;
        if (!few && !(bm25_own(s, segment, doc) && bm25_selected(s, segment->rids[doc]))) continue;
        if (!bm25_judged(s, doc, turn)) bm25_candidate(s, number, doc, scratch->values[i]);
    }
}

/* Prepare for a piece of the list whose turn it is: bounds within some blocks (none = all) of what is behind each turn, into
 * reach; and what can be asked of the lists behind, without reading them. The sum of all bounds. */
static float bm25_prepare(bm25_search *s, bm25_piece *piece, int64_t turn, int64_t lanes, int64_t block, int64_t after) {
    float behind = 0.0f;
    piece->count = 0, piece->open = 0.0f;
    for (int64_t i = lanes - 1; i >= turn; i--) {
        const bm25_lane *lane = bm25_turn_of(s, i);
        const bm25_list *list = lane->list;
        float bound = lane->bound;
        s->reach[i] = behind;
        if (list->starts && block < after) {
            bound = list->bounds[block];
            for (int64_t b = block + 1; b < after; b++) bound = list->bounds[b] > bound ? list->bounds[b] : bound;
            bound *= lane->weight;
        }
        behind += bound;
        if (i == turn) break;
        if (list->dense || list->filter)
            s->tests[piece->count++] = (bm25_test){list->dense, list->filter, list->wrap, lane->weight, bound};
        else
            piece->open += bound;
    }
    return behind;
}

/* Whether adding up by windows is cheaper than what is left here, from `turn` on. */
static int bm25_windows_pay(const bm25_search *s, int64_t number, int64_t turn, int64_t lanes) {
    const double least = bm25_least(s);
    const bm25_segment *segment = &s->segments[number];
    double here = 0.0, there = 0.0;
    int64_t looks = lanes;
    for (int64_t i = 0; i < lanes; i++) {
        const bm25_lane *lane = bm25_turn_of(s, i);
        const double size = (double)(lane->list->to - lane->list->from);
        if ((double)lane->rest + (double)lane->bound < least) break;
        while (looks > i + 1 && (double)lane->bound + (double)bm25_turn_of(s, looks - 2)->rest < least) looks--;
        there += size * BM25_COST_ADD;
        if (i >= turn) here += size * (BM25_COST_READ + BM25_COST_LOOK * (double)(looks - 1 - i));
    }
    there += (double)((segment->high - segment->low) / BM25_WINDOW + 1) * (double)lanes * BM25_COST_WINDOW;
    return here > there;
}

/* How many postings are read before the floor is asked again: while it is not known, each is asked for in every list. */
static inline int64_t bm25_piece_size(const bm25_search *s) {
    const int64_t some = 64 + 2 * (s->k - s->near_count);
    return bm25_least(s) > 0.0 || some > BM25_PIECE ? BM25_PIECE : some;
}

/* Judge a piece of the list whose turn it is. */
static void bm25_judge(bm25_search *s, int64_t number, bm25_piece *piece, int64_t n, int64_t turn, int64_t lanes, int few) {
    bm25_scratch *scratch = s->scratch;
    const double least = bm25_least(s);
    piece->need = bm25_need(least, s->reach[turn]);
    piece->least = bm25_need(least, piece->open);
    int64_t left = bm25_sieve(piece, n, scratch->docs, scratch->values, scratch->parts);
    if (few) left = bm25_pass(s, &s->segments[number], left);
    for (int64_t j = turn + 1; j < lanes && left; j++)
        left = bm25_look(bm25_turn_of(s, j), scratch, left, bm25_need(least, s->reach[j]));
    if (left) bm25_found(s, number, left, turn, few);
}

/* 0 = all is left to the windows, which know the floor now. */
static int bm25_in_turn(bm25_search *s, int64_t number, int64_t lanes) {
    const bm25_segment *segment = &s->segments[number];
    const int64_t first = segment->low >> BM25_BITS, blocks = (segment->high + BM25_BLOCK - 1) >> BM25_BITS;
    const int64_t settled = s->settled;
    const int few = s->m * 2 < s->rows; /* selected: ask at once */
    int chosen = 0;
    bm25_take_turns(s, lanes);
    for (int64_t i = 0; i < lanes; i++) {
        const bm25_lane *lane = bm25_turn_of(s, i);
        const bm25_list *list = lane->list;
        const int64_t step = list->starts ? BM25_PIECE * blocks / list->size + 1 : blocks;
        bm25_piece piece = {NULL, NULL, (float)s->fixed, (float)s->slope, lane->weight, 0.0f, 0.0f, 0.0f, s->tests, 0};
        if ((double)lane->rest + (double)lane->bound < bm25_least(s)) break;
        for (int64_t block = first; block < blocks; block += step) {
            const int64_t after = block + step < blocks ? block + step : blocks;
            int64_t from = list->from, to = list->to;
            if (list->starts) {
                from = list->starts[block] > from ? list->starts[block] : from;
                to = list->starts[after] < to ? list->starts[after] : to;
            }
            if (to <= from) continue;
            const float reach = bm25_prepare(s, &piece, i, lanes, block, list->starts ? after : block);
            for (int64_t n; from < to && !((double)reach < bm25_least(s)); from += n) {
                const int64_t most = bm25_piece_size(s);
                n = to - from < 2 * most ? to - from : most;
                piece.docs = list->docs + from, piece.packed = list->packed + from;
                bm25_judge(s, number, &piece, n, i, lanes, few);
                if (chosen || bm25_least(s) <= 0.0) continue;
                chosen = 1;
                if (s->settled == settled && bm25_windows_pay(s, number, i, lanes)) {
                    s->near_count = s->waiting = 0;
                    return 0;
                }
            }
        }
    }
    bm25_settle(s, number);
    return 1;
}

#endif
