//! Run-time selection of the instruction set, and flushing of subnormal numbers to zero.

use crate::error::Result;
use crate::machine::simd::Level;
use crate::machine::system::environment;
use crate::machine::system::testing::{self, CodePath};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Return the instruction set to use: the best one of this machine, or a lower one that a test forces.
#[inline]
pub fn level() -> Level {
    let highest = if testing::is_forced(CodePath::Baseline) {
        Level::Baseline
    } else if testing::is_forced(CodePath::Avx2) {
        Level::Avx2
    } else {
        Level::Avx512
    };
    best().max(highest)
}

/// Return the highest instruction set that `TAGWISE_SIMD` allows. The variable is for bug reports.
pub fn allowed() -> Result<Level> {
    match environment::value("TAGWISE_SIMD").as_str() {
        "" | "avx512" => Ok(Level::Avx512),
        "avx2" => Ok(Level::Avx2),
        "baseline" => Ok(Level::Baseline),
        other => Err(environment::invalid_value("TAGWISE_SIMD", other, "avx512, avx2 or baseline")),
    }
}

/// Return the best allowed instruction set of this machine.
fn best() -> Level {
    static LEVEL: AtomicU8 = AtomicU8::new(u8::MAX);
    let find = || {
        let highest = allowed().unwrap_or(Level::Baseline); // an invalid value has already failed the import
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512f") {
                return highest;
            }
            if avx2 {
                return highest.max(Level::Avx2);
            }
        }
        highest.max(Level::Baseline)
    };
    match LEVEL.load(Relaxed) {
        u8::MAX => {
            let level = find();
            LEVEL.store(level as u8, Relaxed);
            level
        }
        known => [Level::Avx512, Level::Avx2, Level::Baseline][known as usize],
    }
}

/// Guard that treats subnormal numbers as zero on this thread while it is alive. Products of many small probabilities
/// are full of subnormals, and each of them costs about a hundred cycles.
pub struct FlushToZero(#[cfg(target_arch = "x86_64")] u32);

impl FlushToZero {
    #[allow(clippy::new_without_default)]
    pub fn new() -> FlushToZero {
        #[cfg(target_arch = "x86_64")]
        {
            // Flush-to-zero and denormals-are-zero of MXCSR.
            let (mut before, flags) = (0u32, 0x8040u32);
            // SAFETY: reads and writes the floating-point control register of this thread, which `drop` restores.
            unsafe {
                std::arch::asm!("stmxcsr [{}]", in(reg) &mut before, options(nostack));
                let now = before | flags;
                std::arch::asm!("ldmxcsr [{}]", in(reg) &now, options(nostack));
            }
            FlushToZero(before)
        }
        #[cfg(not(target_arch = "x86_64"))]
        FlushToZero()
    }
}

impl Drop for FlushToZero {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: restores the value saved by `new`.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &self.0, options(nostack));
        }
    }
}

/// `dispatch!(fn name(arg: Type, ...) -> R = |simd| expression)` defines `name`, which evaluates the expression with
/// the token of the machine's instruction set, compiled for that set. `= kernel` is short for `|simd| kernel(simd, arg,
/// ...)`.
macro_rules! dispatch {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = |$simd:ident| $body:expr) => {
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn at_level<S: $crate::machine::simd::find::Find>($simd: S, $($arg: $ty),*) $(-> $ret)? {
                $body
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    at_level($crate::machine::simd::x86::Avx512::new(), $($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    at_level($crate::machine::simd::x86::Avx2::new(), $($arg),*)
                }
                match $crate::machine::simd::dispatch::level() {
                    // SAFETY: `level` has detected exactly these features.
                    $crate::machine::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::machine::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::machine::simd::Level::Baseline => {}
                }
            }
            at_level($crate::machine::simd::Baseline, $($arg),*)
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $kernel:path) => {
        $crate::machine::simd::dispatch::dispatch!(
            $(#[$meta])* $vis fn $name($($arg: $ty),*) $(-> $ret)? = |simd| $kernel(simd, $($arg),*)
        );
    };
}
pub(crate) use dispatch;
