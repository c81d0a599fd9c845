/**
 * Real numbers as integers: 512 bits stand after the binary point, and u = 2^-512 is the unit of the last one.
 *
 * Everything is cut downwards. Who decides with such a number says by how much it may err, and to which side.
 */
export const FIXED_BITS = 512n;
export const ONE = 1n << FIXED_BITS;
const PI = 0x3243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89452821e638d01377be5466cf34e90c6cc0ac29b7c97c50dd3f84d5b5b5470917n;
/** sqrt(2 pi), less than 2 u too small. */
export const ROOT_TWO_PI = squareRoot(PI << (FIXED_BITS + 1n));
const HALVINGS = 8n;
/** Exponents up to here have a power; e^-512 is below 2^-738, so it is 0 here. */
export const MOST_EXPONENT = 512n * ONE;
/**
 * e^x for x in 0..512, never more than the exact power, and less by at most 2^-490 of it.
 *
 * The series of x / 2^8, at most 2, and eight squarings. x / 2^8 loses less than u. The series has fewer than 140
 * terms; each is what is left of the one before after a product that loses less than u, and all later ones together
 * are at most e^2 - 1 times as much: the sum, at least 1, loses less than 140 * 8 u. A squaring doubles the relative
 * error and adds u: 2^8 (u + 140 * 8 u) + 2^8 u < 2^20 u.
 */
export function exponential(x) {
    const exponent = x >> HALVINGS;
    let [sum, term] = [0n, ONE];
    for (let k = 1n; term > 0n; k += 1n) {
        sum += term;
        term = ((term * exponent) >> FIXED_BITS) / k;
    }
    for (let squaring = 0n; squaring < HALVINGS; squaring += 1n)
        sum = (sum * sum) >> FIXED_BITS;
    return sum;
}
/** The integer square root of an integer that is not negative: floor(sqrt(n)). */
export function squareRoot(n) {
    if (n < 2n)
        return n;
    // Newton's steps from above fall until they reach the root.
    let root = 1n << BigInt(Math.ceil(n.toString(2).length / 2));
    for (;;) {
        const next = (root + n / root) >> 1n;
        if (next >= root)
            return root;
        root = next;
    }
}
