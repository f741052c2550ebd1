//! How much memory a call may ask for: computed before anything is allocated, in one place.
//!
//! A file of a few kilobytes, or one parameter, can ask for more memory than a machine has: tables of label pairs, cells of
//! history, beams, lists. What grows faster than its input is claimed here first. The limit is half of the machine's
//! memory; the environment variable `TAGWISE_MEMORY` gives another one in GiB.

use crate::error::{Error, Result};

const GIB: f64 = (1u64 << 30) as f64;
/// Half of the memory of a machine that does not say how much it has.
const UNKNOWN: usize = 4 << 30;

/// A number of bytes in which nothing overflows: sums and products stay at the largest number there is.
pub fn bytes(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, &x| product.saturating_mul(x))
}

/// min(base^power, most), without overflow: paths of a sentence, for one.
pub fn power(base: usize, power: usize, most: usize) -> usize {
    let mut out = 1usize;
    for _ in 0..power {
        out = out.saturating_mul(base);
        if out >= most || base < 2 {
            break;
        }
    }
    out.min(most)
}

/// Memory of the machine in bytes, or that of the control group that the process is in, where the system says.
fn machine() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim().trim_end_matches(" kB");
    let total = total.parse::<usize>().ok()?.checked_mul(1024)?;
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|max| max.trim().parse().ok());
    Some(group.map_or(total, |group: usize| total.min(group)))
}

/// The most that one call may claim.
pub fn limit() -> usize {
    let given = std::env::var("TAGWISE_MEMORY").ok().and_then(|gib| gib.trim().parse::<f64>().ok());
    match given.filter(|gib| *gib > 0.0) {
        Some(gib) => (gib * GIB) as usize,
        None => machine().map_or(UNKNOWN, |total| total / 2),
    }
}

/// Refuses what would take more bytes than the limit; `what` says what takes them, `remedy` what to do.
pub fn claim(what: &str, bytes: usize, remedy: &str) -> Result<()> {
    let limit = if bytes < 1 << 24 { bytes } else { limit() };
    match bytes <= limit {
        true => Ok(()),
        false => Err(Error::Memory(format!(
            "{what} would take {:.1} GiB, the limit is {:.1} GiB; {remedy}, or raise the limit (environment variable \
             TAGWISE_MEMORY, in GiB)",
            bytes as f64 / GIB,
            limit as f64 / GIB
        ))),
    }
}

/// `n` copies of a value, or an error where the system has no memory for them.
pub fn filled<T: Clone>(what: &str, value: T, n: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    reserve(what, &mut out, n)?;
    out.resize(n, value);
    Ok(out)
}

/// Room for `more` elements, or an error where the system has no memory for them.
pub fn reserve<T>(what: &str, array: &mut Vec<T>, more: usize) -> Result<()> {
    array.try_reserve_exact(more).map_err(|_| {
        Error::Memory(format!("{what}: the system has no memory for {} bytes", bytes(&[more, size_of::<T>()])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        assert_eq!(bytes(&[1 << 40, 1 << 40, 3]), usize::MAX);
        assert_eq!(power(10, 3, usize::MAX), 1000);
        assert_eq!(power(10, 1_000_000, 5000), 5000);
        assert_eq!(power(1, usize::MAX, 7), 1);
        assert_eq!(power(0, 3, 7), 0);
        assert!(claim("nothing", 1 << 20, "").is_ok());
        assert!(matches!(claim("all", usize::MAX, "stop"), Err(Error::Memory(m)) if m.contains("all would take")));
        assert!(matches!(filled("x", 0u64, usize::MAX), Err(Error::Memory(_))));
        assert_eq!(filled("x", 7u8, 3).unwrap(), [7, 7, 7]);
    }
}
