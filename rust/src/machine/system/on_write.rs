//! A value that several hold, copied when one of them changes it: the rows of a dataset are most of a corpus, and the same
//! sentences with other labels, or cut elsewhere, have the same rows.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct OnWrite<T>(Arc<T>);

impl<T> Clone for OnWrite<T> {
    fn clone(&self) -> Self {
        OnWrite(Arc::clone(&self.0))
    }
}

impl<T> From<T> for OnWrite<T> {
    fn from(value: T) -> Self {
        OnWrite(Arc::new(value))
    }
}

impl<T> Deref for OnWrite<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for OnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::OnWrite;

    #[test]
    fn is_copied_by_who_changes_it_while_others_hold_it() {
        let mut one: OnWrite<Vec<u32>> = vec![1, 2].into();
        let at = one.as_ptr();
        one[0] = 7;
        assert_eq!((at, &one[..]), (one.as_ptr(), &[7, 2][..]));
        let two = one.clone();
        assert_eq!(two.as_ptr(), at);
        one[1] = 9;
        assert_eq!((&one[..], &two[..]), (&[7, 9][..], &[7, 2][..]));
        assert_eq!(two.as_ptr(), at);
    }
}
