//! Memory limits, checked before anything is allocated.
//!
//! A file of a few kilobytes, or one parameter, can require more memory than a machine has: tables of label pairs,
//! cells of history, beams, lists. Every allocation that grows faster than its input is claimed here first. The limit
//! is half the memory of the machine or of the control group of the process. The environment variable `TAGWISE_MEMORY`
//! sets another limit in GiB. If the process has resource limits (`ulimit -d`, `ulimit -v`), a call may claim no more
//! than is left of them: a failed allocation aborts the process, a failed claim is an error that can be reported.

use crate::error::{Error, Result};
use crate::machine::system::environment;
use std::path::Path;

const GIB: f64 = (1u64 << 30) as f64;
/// Half the memory of a machine whose size is unknown.
const DEFAULT_LIMIT: usize = 4 << 30;
/// Minimum reserve for small allocations that are not claimed, if the process has a resource limit.
const UNCLAIMED: usize = 32 << 20;
/// Smaller claims are always granted: reading the limits costs system calls.
const ALWAYS_GRANTED: usize = 1 << 22;

/// Return the product of the factors, saturated at `usize::MAX`.
pub fn bytes(factors: &[usize]) -> usize {
    factors.iter().fold(1, |product: usize, &x| product.saturating_mul(x))
}

/// Return freed memory to the system. The allocator of glibc keeps freed blocks of up to 32 MiB for the process, so
/// that memory freed by encoding would count in addition to that of training. Takes some milliseconds: call it at the
/// end of large pieces of work.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: may be called at any time from any thread (malloc_trim(3), MT-Safe).
        unsafe { malloc_trim(0) };
    }
}

/// Return min(base^power, most) without overflow, such as the number of paths of a sentence.
pub fn power(base: usize, power: usize, max: usize) -> usize {
    let mut out = 1usize;
    for _ in 0..power {
        out = out.saturating_mul(base);
        if out >= max || base < 2 {
            break;
        }
    }
    out.min(max)
}

/// Return the memory of the machine or of the control group of the process in bytes, if the system reports it.
fn machine_memory() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = kilobytes(&info, "MemTotal:")?;
    Some(
        cgroup_limit(&std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
            .map_or(total, |max| total.min(max)),
    )
}

/// Return the number of a line such as `MemTotal:  16384 kB` in bytes.
fn kilobytes(text: &str, name: &str) -> Option<usize> {
    let number = text.lines().find_map(|line| line.strip_prefix(name))?.trim().trim_end_matches(" kB");
    number.parse::<usize>().ok()?.checked_mul(1024)
}

/// Return the smallest memory limit of the control groups of a process, given its `/proc/self/cgroup`. Covers both
/// versions of control groups and all parent groups. In a container the folder of the group is the root.
fn cgroup_limit(groups: &str) -> Option<usize> {
    let mut smallest = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(kinds), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match kinds {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if kinds.split(',').any(|kind| kind == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        for above in Path::new(path.trim_start_matches('/')).ancestors() {
            let max = std::fs::read_to_string(Path::new(root).join(above).join(file)).ok();
            let max = max.and_then(|max| max.trim().parse::<usize>().ok()); // "max" is not a number
            smallest = [smallest, max].into_iter().flatten().min();
        }
    }
    smallest
}

/// Return the memory left under the limits of data size and address space, from `/proc/self/limits` and
/// `/proc/self/status`.
fn remaining(limits: &str, status: &str) -> Option<usize> {
    let of = |limit: &str, used: &str| {
        let max = limits.lines().find_map(|line| line.strip_prefix(limit))?.split_whitespace().next()?;
        let max = max.parse::<usize>().ok()?; // "unlimited" is not a number
        Some(max.saturating_sub(kilobytes(status, used)?))
    };
    [of("Max data size", "VmData:"), of("Max address space", "VmSize:")].into_iter().flatten().min()
}

/// Return the memory that may be claimed under the resource limits, less a reserve for allocations that are not
/// claimed.
fn claimable() -> Option<usize> {
    let read = |name| std::fs::read_to_string(name).ok();
    remaining(&read("/proc/self/limits")?, &read("/proc/self/status")?)
        .map(|remaining| remaining.saturating_sub((remaining / 8).max(UNCLAIMED)))
}

/// Return the limit in GiB from the environment, if it is set.
pub fn from_environment() -> Result<Option<f64>> {
    let text = environment::value("TAGWISE_MEMORY");
    match text.parse::<f64>() {
        Ok(gib) if gib > 0.0 => Ok(Some(gib)),
        _ if text.is_empty() => Ok(None),
        _ => Err(environment::invalid_value("TAGWISE_MEMORY", &text, "a number of GiB above 0")),
    }
}

/// Return the largest claim allowed and how to raise it. `all_memory`: all memory of the machine instead of half of it.
fn largest_claim(all_memory: bool) -> Result<(usize, &'static str)> {
    let limit = match from_environment()? {
        Some(gib) => (gib * GIB) as usize,
        None => machine_memory().unwrap_or(2 * DEFAULT_LIMIT) / if all_memory { 1 } else { 2 },
    };
    Ok(match claimable() {
        Some(claimable) if claimable < limit => {
            (claimable, "the limit of the process (ulimit -d, ulimit -v), of which this is left")
        }
        _ => (limit, "the limit (environment variable TAGWISE_MEMORY, in GiB)"),
    })
}

/// Return an error if `bytes` exceed the limit. `what` names the data, `remedy` says what to do.
pub fn claim(what: &str, bytes: usize, remedy: &str) -> Result<()> {
    check_limit(what, bytes, remedy, false)
}

/// Version of `claim` for data that grow linearly with their input, which may take all memory of the machine.
pub fn claim_linear(what: &str, bytes: usize, remedy: &str) -> Result<()> {
    check_limit(what, bytes, remedy, true)
}

/// Format a number of bytes.
fn format_bytes(bytes: usize) -> String {
    match bytes as f64 / GIB {
        gib if gib < 0.1 => format!("{:.0} MiB", 1024.0 * gib),
        gib => format!("{gib:.1} GiB"),
    }
}

fn check_limit(what: &str, bytes: usize, remedy: &str, all_memory: bool) -> Result<()> {
    let (limit, raise) = if bytes < ALWAYS_GRANTED { (bytes, "") } else { largest_claim(all_memory)? };
    match bytes <= limit {
        true => Ok(()),
        false => Err(Error::Memory(format!(
            "{what} would take {}, the limit is {}; {remedy}, or raise {raise}",
            format_bytes(bytes),
            format_bytes(limit)
        ))),
    }
}

/// Return `n` copies of a value, or an error if the system has no memory for them.
pub fn filled<T: Clone>(what: &str, value: T, n: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    reserve(what, &mut out, n)?;
    out.resize(n, value);
    Ok(out)
}

/// Reserve capacity for `more` elements, or return an error if the system has no memory for them.
pub fn reserve<T>(what: &str, array: &mut Vec<T>, more: usize) -> Result<()> {
    array.try_reserve_exact(more).map_err(|_| {
        Error::Memory(format!("{what}: the system has no memory for {} bytes", bytes(&[more, size_of::<T>()])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_saturate_and_claims_are_limited() {
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
    fn resource_limits_reduce_the_claimable_memory() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max data size             1073741824           unlimited            bytes     \n\
                      Max address space         unlimited            unlimited            bytes     \n";
        let status = "VmSize:\t  500000 kB\nVmData:\t  524288 kB\n";
        assert_eq!(remaining(limits, status), Some(1 << 29));
        assert_eq!(
            remaining(&limits.replace("Max address space         unlimited", "Max address space  512000000"), status),
            Some(0)
        );
        assert_eq!(remaining(&limits.replace("1073741824", "unlimited"), status), None);
        assert_eq!(remaining("", status), None);
        assert_eq!(kilobytes("a: 1 kB\nMemTotal:       7 kB", "MemTotal:"), Some(7 << 10));
        assert_eq!(cgroup_limit("0::/there/is/no/such\n1:cpu:/a\nnonsense"), cgroup_limit("0::/"));
    }
}
