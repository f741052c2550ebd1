//! Two independent 64-bit hashes of bytes: how attributes and texts are told apart.

use rapidhash::v3::{rapidhash_v3_seeded, RapidSecrets};

/// The identity of an attribute while a vocabulary grows: `key` is stored, `check` only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub key: u64,
    pub check: u64,
}

const KEY: RapidSecrets = RapidSecrets::seed_cpp(0x9e37_79b9_7f4a_7c15);

const CHECK: RapidSecrets = RapidSecrets::seed_cpp(0xd1b5_4a32_d192_ed03);

/// Two independent 64-bit hashes of bytes, the same on every platform and in every version (model files hold them).
#[inline]
pub fn hash(bytes: &[u8]) -> Key {
    Key { key: rapidhash_v3_seeded(bytes, &KEY), check: rapidhash_v3_seeded(bytes, &CHECK) }
}

impl Key {
    /// Key of an attribute given as text.
    #[inline]
    pub fn of_text(text: &str) -> Key {
        hash(text.as_bytes())
    }

    /// The stored half alone: enough to look an attribute up.
    #[inline]
    pub fn lookup(text: &str) -> u64 {
        rapidhash_v3_seeded(text.as_bytes(), &KEY)
    }
}
