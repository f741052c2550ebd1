//! Loops over blocks of constant size, so that the accumulators of a block stay in registers.

/// `by_block!([1 2 3 4] n, at, N => body)` runs `body` for consecutive blocks `at..at + N` of 0..n. N is a constant:
/// the largest size in the list, or the remainder for the last block.
///
/// `[sizes] even most, n, ...` uses blocks of at most `most` that are as even as possible: one register less costs less
/// than one more pass.
///
/// `[sizes] = n, N => body, _ => rest` runs `body` once for the size n, or `rest` if n is not in the list.
macro_rules! by_block {
    ([$($k:literal)*] = $n:expr, $N:ident => $body:expr, _ => $rest:expr) => {
        match $n {
            $($k => {
                const $N: usize = $k;
                $body
            })*
            _ => $rest,
        }
    };
    ([$($k:literal)*] even $most:expr, $n:expr, $at:ident, $N:ident => $body:block) => {{
        let (n, mut $at) = ($n, 0usize);
        let blocks = n.div_ceil($most);
        for block in 0..blocks {
            let size = (n - $at).div_ceil(blocks - block);
            match size {
                $($k if $k <= $most => {
                    const $N: usize = $k;
                    $body
                })*
                _ => {}
            }
            $at += size;
        }
    }};
    ([$($k:literal)*] $n:expr, $at:ident, $N:ident => $body:expr) => {{
        const MOST: usize = [$($k),*].len();
        let (n, mut $at) = ($n, 0usize);
        while $at < n {
            let size = (n - $at).min(MOST);
            $crate::machine::simd::blocks::by_block!([$($k)*] = size, $N => $body, _ => {});
            $at += size;
        }
    }};
}
pub(crate) use by_block;
