/* One term looked up in a mapped dictionary of Whoosh's, as text_py.find_term documents it: 256 hash tables with open
 * addressing, by the last four bytes of MD5 (RFC 1321), every number big-endian. Nothing in the map is trusted: what leads
 * outside it is told. Called by _text.pyx.
 */
#ifndef MEMXD_TERMS_H
#define MEMXD_TERMS_H

#include <stdint.h>
#include <string.h>

#define TERMS_SLOT 12  /* hash, place of the item (0 = an empty slot) */
#define TERMS_SIZES 8  /* sizes of key and value, before both */
#define TERMS_PLACE 35 /* a value: documents at 5, offset at 23, size at 31 */

static const uint32_t terms_sines[64] = {
    0xd76aa478u, 0xe8c7b756u, 0x242070dbu, 0xc1bdceeeu, 0xf57c0fafu, 0x4787c62au, 0xa8304613u, 0xfd469501u,
    0x698098d8u, 0x8b44f7afu, 0xffff5bb1u, 0x895cd7beu, 0x6b901122u, 0xfd987193u, 0xa679438eu, 0x49b40821u,
    0xf61e2562u, 0xc040b340u, 0x265e5a51u, 0xe9b6c7aau, 0xd62f105du, 0x02441453u, 0xd8a1e681u, 0xe7d3fbc8u,
    0x21e1cde6u, 0xc33707d6u, 0xf4d50d87u, 0x455a14edu, 0xa9e3e905u, 0xfcefa3f8u, 0x676f02d9u, 0x8d2a4c8au,
    0xfffa3942u, 0x8771f681u, 0x6d9d6122u, 0xfde5380cu, 0xa4beea44u, 0x4bdecfa9u, 0xf6bb4b60u, 0xbebfbc70u,
    0x289b7ec6u, 0xeaa127fau, 0xd4ef3085u, 0x04881d05u, 0xd9d4d039u, 0xe6db99e5u, 0x1fa27cf8u, 0xc4ac5665u,
    0xf4292244u, 0x432aff97u, 0xab9423a7u, 0xfc93a039u, 0x655b59c3u, 0x8f0ccc92u, 0xffeff47du, 0x85845dd1u,
    0x6fa87e4fu, 0xfe2ce6e0u, 0xa3014314u, 0x4e0811a1u, 0xf7537e82u, 0xbd3af235u, 0x2ad7d2bbu, 0xeb86d391u};
static const uint8_t terms_turns[16] = {7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

static inline uint32_t terms_swapped(uint32_t v) { return v >> 24 | (v >> 8 & 0xff00u) | (v << 8 & 0xff0000u) | v << 24; }

static inline uint32_t terms_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint64_t terms_u64(const uint8_t *at) { return (uint64_t)terms_u32(at) << 32 | terms_u32(at + 4); }

static void terms_block(uint32_t state[4], const uint8_t *block) {
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], words[16];
    for (int i = 0; i < 16; i++) words[i] = terms_swapped(terms_u32(block + 4 * i));
    for (int i = 0; i < 64; i++) {
        const int round = i / 16, turn = terms_turns[4 * round + i % 4];
        const int word = round == 0 ? i : (round == 1 ? 5 * i + 1 : round == 2 ? 3 * i + 5 : 7 * i) % 16;
        const uint32_t mixed = round == 0 ? (b & c) | (~b & d) : round == 1 ? (d & b) | (~d & c) : round == 2 ? b ^ c ^ d
                                                                                                 : c ^ (b | ~d);
        const uint32_t sum = a + mixed + terms_sines[i] + words[word];
        a = d, d = c, c = b, b += sum << turn | sum >> (32 - turn);
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

/* The last four bytes of the key's MD5 as a big-endian number. */
static uint32_t terms_hash(const uint8_t *key, int64_t size) {
    uint32_t state[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    const int64_t whole = size & ~(int64_t)63, rest = size - whole;
    const uint64_t bits = (uint64_t)size * 8;
    uint8_t last[128] = {0};
    for (int64_t at = 0; at < whole; at += 64) terms_block(state, key + at);
    memcpy(last, key + whole, (size_t)rest);
    last[rest] = 0x80;
    const int ends = rest < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++) last[ends - 8 + i] = (uint8_t)(bits >> (8 * i));
    terms_block(state, last);
    if (ends == 128) terms_block(state, last + 64);
    return terms_swapped(state[3]);
}

/* 1 = found: documents, offset and size into place; 0 = there is no such term; -1 = the map is not what it should be. */
static int terms_find(const uint8_t *map, int64_t size, const int64_t *tables, const uint8_t *key, int64_t length,
                      int64_t place[3]) {
    const uint32_t wanted = terms_hash(key, length);
    const int64_t start = tables[2 * (wanted & 255)], slots = tables[2 * (wanted & 255) + 1];
    if (slots <= 0) return slots ? -1 : 0;
    if (start < 0 || start > size || slots > (size - start) / TERMS_SLOT) return -1;
    int64_t slot = (int64_t)(wanted >> 8) % slots;
    for (int64_t step = 0; step < slots; step++, slot = slot + 1 < slots ? slot + 1 : 0) {
        const uint8_t *at = map + start + slot * TERMS_SLOT;
        const uint32_t hash = terms_u32(at);
        const int64_t item = (int64_t)terms_u64(at + 4);
        if (!item) return 0;
        if (hash != wanted) continue;
        if (item < 0 || item > size - TERMS_SIZES) return -1;
        if ((int64_t)terms_u32(map + item) != length) continue;
        if (length > size - item - TERMS_SIZES) return -1;
        if (memcmp(map + item + TERMS_SIZES, key, (size_t)length)) continue;
        if (TERMS_PLACE > size - item - TERMS_SIZES - length) return -1;
        at = map + item + TERMS_SIZES + length;
        place[0] = (int64_t)terms_u32(at + 5);
        place[1] = (int64_t)terms_u64(at + 23);
        place[2] = (int64_t)(int32_t)terms_u32(at + 31);
        return 1;
    }
    return 0;
}

#endif
