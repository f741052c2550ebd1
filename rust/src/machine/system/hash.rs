//! Two independent 64-bit hashes of bytes, which identify attributes and texts.

use rapidhash::v3::{rapidhash_v3_seeded, RapidSecrets};

/// Identity of an attribute while a vocabulary grows: `key` is stored, `check` is only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub key: u64,
    pub check: u64,
}

const KEY: RapidSecrets = RapidSecrets::seed_cpp(0x9e37_79b9_7f4a_7c15);

const CHECK: RapidSecrets = RapidSecrets::seed_cpp(0xd1b5_4a32_d192_ed03);

/// Return two independent 64-bit hashes of bytes. They are equal on every platform and in every version, since model
/// files hold them.
#[inline]
pub fn hash(bytes: &[u8]) -> Key {
    Key { key: rapidhash_v3_seeded(bytes, &KEY), check: rapidhash_v3_seeded(bytes, &CHECK) }
}

impl Key {
    /// Return the key of an attribute.
    #[inline]
    pub fn of_text(text: &str) -> Key {
        hash(text.as_bytes())
    }

    /// Return the stored half alone, which is enough to look an attribute up.
    #[inline]
    pub fn lookup(text: &str) -> u64 {
        rapidhash_v3_seeded(text.as_bytes(), &KEY)
    }
}
