//! How much memory a call may ask for: computed before anything is allocated, in one place.
//!
//! A file of a few kilobytes, or one parameter, can ask for more memory than a machine has: tables of label pairs, cells of
//! history, beams, lists. What grows faster than its input is claimed here first. The limit is half of the machine's
//! memory, or of the control group's that the process is in; the environment variable `TAGWISE_MEMORY` gives another one in
//! GiB. Where the system refuses the process more than so many bytes (`ulimit -d`, `ulimit -v`), no call may claim more than
//! is left of them: a failed allocation aborts the process, a failed claim is an error that can be reported.

use crate::error::{Error, Result};
use crate::machine::system::environment;
use std::path::Path;

const GIB: f64 = (1u64 << 30) as f64;
/// Half of the memory of a machine that does not say how much it has.
const UNKNOWN: usize = 4 << 30;
/// What stays for small arrays at least, where the system has set a limit.
const UNCLAIMED: usize = 32 << 20;
/// Less is not looked at: the system is asked each time.
const SMALL: usize = 1 << 22;

/// A number of bytes in which nothing overflows: sums and products stay at the largest number there is.
pub fn bytes(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, &x| product.saturating_mul(x))
}

/// Gives the system back what was freed: the allocator of glibc keeps blocks of up to 32 MiB for the process, and what encoding
/// freed (25 MiB on conll2000) would stand beside what training needs. For the ends of large pieces of work; some milliseconds.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: may be called at any time, by any thread (malloc_trim(3), MT-Safe).
        unsafe { malloc_trim(0) };
    }
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
    let total = kilobytes(&info, "MemTotal:")?;
    Some(group(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default()).map_or(total, |most| total.min(most)))
}

/// The number of a line such as `MemTotal:  16384 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<usize> {
    let number = text.lines().find_map(|line| line.strip_prefix(name))?.trim().trim_end_matches(" kB");
    number.parse::<usize>().ok()?.checked_mul(1024)
}

/// The smallest limit of the control groups that hold a process, as its `/proc/self/cgroup` names them: of both versions,
/// and of all groups above. Inside of a container the group's own folder is the root.
fn group(groups: &str) -> Option<usize> {
    let mut least = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if kinds.split(',').any(|kind| kind == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        for above in Path::new(path.trim_start_matches('/')).ancestors() {
            let most = std::fs::read_to_string(Path::new(root).join(above).join(file)).ok();
            let most = most.and_then(|most| most.trim().parse::<usize>().ok()); // "max" is no number
            least = [least, most].into_iter().flatten().min();
        }
    }
    least
}

/// What the limits of the process leave it, as `/proc/self/limits` and `/proc/self/status` say: of its data, and of its
/// addresses.
fn left(limits: &str, status: &str) -> Option<usize> {
    let of = |limit: &str, used: &str| {
        let most = limits.lines().find_map(|line| line.strip_prefix(limit))?.split_whitespace().next()?;
        let most = most.parse::<usize>().ok()?; // "unlimited" is no number
        Some(most.saturating_sub(kilobytes(status, used)?))
    };
    [of("Max data size", "VmData:"), of("Max address space", "VmSize:")].into_iter().flatten().min()
}

/// What the process may still get where the system has set it a limit; some of it stays for what nobody claims.
fn room() -> Option<usize> {
    let read = |name| std::fs::read_to_string(name).ok();
    left(&read("/proc/self/limits")?, &read("/proc/self/status")?)
        .map(|left| left.saturating_sub((left / 8).max(UNCLAIMED)))
}

/// The limit in GiB that the environment sets.
pub fn given() -> Result<Option<f64>> {
    let text = environment::value("TAGWISE_MEMORY");
    match text.parse::<f64>() {
        Ok(gib) if gib > 0.0 => Ok(Some(gib)),
        _ if text.is_empty() => Ok(None),
        _ => Err(environment::refused("TAGWISE_MEMORY", &text, "a number of GiB above 0")),
    }
}

/// The most that may be asked for, and how a person raises it: of the machine's memory a half, or the whole.
fn most(whole: bool) -> Result<(usize, &'static str)> {
    let limit = match given()? {
        Some(gib) => (gib * GIB) as usize,
        None => machine().unwrap_or(2 * UNKNOWN) / if whole { 1 } else { 2 },
    };
    Ok(match room() {
        Some(room) if room < limit => (room, "the limit of the process (ulimit -d, ulimit -v), of which this is left"),
        _ => (limit, "the limit (environment variable TAGWISE_MEMORY, in GiB)"),
    })
}

/// Return an error if `bytes` exceed the limit; `what` takes them, `remedy` is what to do.
pub fn claim(what: &str, bytes: usize, remedy: &str) -> Result<()> {
    refuse(what, bytes, remedy, false)
}

/// The same for what grows as its input does, which may take all that there is.
pub fn need(what: &str, bytes: usize, remedy: &str) -> Result<()> {
    refuse(what, bytes, remedy, true)
}

/// Bytes for people.
fn shown(bytes: usize) -> String {
    match bytes as f64 / GIB {
        gib if gib < 0.1 => format!("{:.0} MiB", 1024.0 * gib),
        gib => format!("{gib:.1} GiB"),
    }
}

fn refuse(what: &str, bytes: usize, remedy: &str, whole: bool) -> Result<()> {
    let (limit, raise) = if bytes < SMALL { (bytes, "") } else { most(whole)? };
    match bytes <= limit {
        true => Ok(()),
        false => Err(Error::Memory(format!(
            "{what} would take {}, the limit is {}; {remedy}, or raise {raise}",
            shown(bytes),
            shown(limit)
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

    #[test]
    fn limits_of_the_process_count() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max data size             1073741824           unlimited            bytes     \n\
                      Max address space         unlimited            unlimited            bytes     \n";
        let status = "VmSize:\t  500000 kB\nVmData:\t  524288 kB\n";
        assert_eq!(left(limits, status), Some(1 << 29));
        assert_eq!(
            left(&limits.replace("Max address space         unlimited", "Max address space  512000000"), status),
            Some(0)
        );
        assert_eq!(left(&limits.replace("1073741824", "unlimited"), status), None);
        assert_eq!(left("", status), None);
        assert_eq!(kilobytes("a: 1 kB\nMemTotal:       7 kB", "MemTotal:"), Some(7 << 10));
        assert_eq!(group("0::/there/is/no/such\n1:cpu:/a\nnonsense"), group("0::/"));
    }
}
