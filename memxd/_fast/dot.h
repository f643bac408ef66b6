/* Dot product of a float32 query with a float16 row, in the canonical order that dot_py.py documents:
 * sixteen float32 lanes, product rounded and then added, lanes folded 8, 4, 2, 1. No FMA anywhere (the build sets
 * -ffp-contract=off), so every variant answers the same bits. memxd_dot_pick() chooses once at import.
 */
#ifndef MEMXD_DOT_H
#define MEMXD_DOT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef float (*memxd_dot_fn)(const float *query, const uint16_t *row, ptrdiff_t width);
/* Two rows at once, whose sums do not wait for each other. */
typedef void (*memxd_dots_fn)(const float *query, const uint16_t *one, const uint16_t *two, ptrdiff_t width, float *out);

/* The empty volatile statement keeps GCC from taking a function that only prefetches for one without effect, whose
 * calls it removes. */
#if defined(__GNUC__) || defined(__clang__)
#define MEMXD_PREFETCH(address) \
    do { \
        __builtin_prefetch((address), 0, 3); \
        __asm__ volatile(""); \
    } while (0)
#else
#define MEMXD_PREFETCH(address) ((void)(address))
#endif

static inline float memxd_half(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu;
    const uint32_t fraction = half & 0x3ffu;
    uint32_t bits;
    float value;
    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f; /* zero and subnormals: exact in float32 */
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    } else if (exponent == 31) {
        bits = sign | 0x7f800000u | (fraction << 13);
    } else {
        bits = sign | ((exponent + 112u) << 23) | (fraction << 13);
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The last width % 16 elements, into the first lanes; then the fold. */
static inline float memxd_finish(float *lane, const float *query, const uint16_t *row, ptrdiff_t done, ptrdiff_t width) {
    for (ptrdiff_t i = done; i < width; i++) lane[i - done] += query[i] * memxd_half(row[i]);
    for (int step = 8; step; step /= 2)
        for (int j = 0; j < step; j++) lane[j] += lane[j + step];
    return lane[0];
}

static float memxd_dot_portable(const float *query, const uint16_t *row, ptrdiff_t width) {
    float lane[16] = {0};
    const ptrdiff_t whole = width & ~(ptrdiff_t)15;
    for (ptrdiff_t i = 0; i < whole; i += 16)
        for (int j = 0; j < 16; j++) lane[j] += query[i + j] * memxd_half(row[i + j]);
    return memxd_finish(lane, query, row, whole, width);
}

static void memxd_dots_portable(const float *query, const uint16_t *one, const uint16_t *two, ptrdiff_t width, float *out) {
    out[0] = memxd_dot_portable(query, one, width);
    out[1] = memxd_dot_portable(query, two, width);
}

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#define MEMXD_DOT_X86 1

__attribute__((target("avx2,f16c"))) static float memxd_dot_avx2(const float *query, const uint16_t *row,
                                                                 ptrdiff_t width) {
    const ptrdiff_t whole = width & ~(ptrdiff_t)15;
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    for (ptrdiff_t i = 0; i < whole; i += 16) {
        const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row + i)));
        const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row + i + 8)));
        low = _mm256_add_ps(low, _mm256_mul_ps(_mm256_loadu_ps(query + i), a));
        high = _mm256_add_ps(high, _mm256_mul_ps(_mm256_loadu_ps(query + i + 8), b));
    }
    if (whole == width) { /* the fold in registers: 8, 4, 2, 1 */
        const __m256 eight = _mm256_add_ps(low, high);
        const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    float lane[16];
    _mm256_storeu_ps(lane, low);
    _mm256_storeu_ps(lane + 8, high);
    return memxd_finish(lane, query, row, whole, width);
}

__attribute__((target("avx2,f16c"))) static void memxd_dots_avx2(const float *query, const uint16_t *one,
                                                                 const uint16_t *two, ptrdiff_t width, float *out) {
    __m256 low[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, high[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    const uint16_t *row[2] = {one, two};
    if (width & 15) {
        out[0] = memxd_dot_avx2(query, one, width);
        out[1] = memxd_dot_avx2(query, two, width);
        return;
    }
    for (ptrdiff_t i = 0; i < width; i += 16) {
        const __m256 q = _mm256_loadu_ps(query + i), r = _mm256_loadu_ps(query + i + 8);
        for (int j = 0; j < 2; j++) {
            const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row[j] + i)));
            const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(row[j] + i + 8)));
            low[j] = _mm256_add_ps(low[j], _mm256_mul_ps(q, a));
            high[j] = _mm256_add_ps(high[j], _mm256_mul_ps(r, b));
        }
    }
    for (int j = 0; j < 2; j++) {
        const __m256 eight = _mm256_add_ps(low[j], high[j]);
        const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        const __m128 pair = _mm_add_ps(four, _mm_movehl_ps(four, four));
        out[j] = _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
    }
}
#endif

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define MEMXD_DOT_NEON 1

static float memxd_dot_neon(const float *query, const uint16_t *row, ptrdiff_t width) {
    const ptrdiff_t whole = width & ~(ptrdiff_t)15;
    float32x4_t part[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    for (ptrdiff_t i = 0; i < whole; i += 16)
        for (int j = 0; j < 4; j++) {
            const float32x4_t value = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(row + i + 4 * j)));
            part[j] = vaddq_f32(part[j], vmulq_f32(vld1q_f32(query + i + 4 * j), value));
        }
    float lane[16];
    for (int j = 0; j < 4; j++) vst1q_f32(lane + 4 * j, part[j]);
    return memxd_finish(lane, query, row, whole, width);
}

static void memxd_dots_neon(const float *query, const uint16_t *one, const uint16_t *two, ptrdiff_t width, float *out) {
    out[0] = memxd_dot_neon(query, one, width);
    out[1] = memxd_dot_neon(query, two, width);
}
#endif

/* variant: 0 = the best this processor has, 1 = portable. */
static memxd_dot_fn memxd_dot_pick(int variant) {
    if (variant == 1) return memxd_dot_portable;
#if defined(MEMXD_DOT_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return memxd_dot_avx2;
#elif defined(MEMXD_DOT_NEON)
    return memxd_dot_neon;
#endif
    return memxd_dot_portable;
}

/* What goes with it. */
static memxd_dots_fn memxd_dots_pick(memxd_dot_fn dot) {
#if defined(MEMXD_DOT_X86)
    if (dot == memxd_dot_avx2) return memxd_dots_avx2;
#elif defined(MEMXD_DOT_NEON)
    if (dot == memxd_dot_neon) return memxd_dots_neon;
#endif
    return memxd_dots_portable;
}

#endif
