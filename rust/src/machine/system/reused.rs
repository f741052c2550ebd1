//! Value that is kept from one call to the next.

use std::sync::Mutex;

/// Keeps a value between calls. It never blocks: a child process may have been forked while another thread held the
/// lock.
pub struct Reused<T>(Mutex<Option<T>>);

impl<T> Default for Reused<T> {
    fn default() -> Self {
        Reused(Mutex::new(None))
    }
}

impl<T> Reused<T> {
    /// Return the value, which the caller then owns, or `None` if there is none or another call has it.
    pub fn take(&self) -> Option<T> {
        self.0.try_lock().ok().and_then(|mut kept| kept.take())
    }

    pub fn put(&self, value: T) {
        if let Ok(mut kept) = self.0.try_lock() {
            *kept = Some(value);
        }
    }
}
