//! Work for a thread of the store that only its asker understands.

use std::fmt;

/// What a thread is to do, given itself.
pub(crate) struct Errand<T>(Box<dyn FnOnce(&mut T) + Send>);

impl<T> Errand<T> {
    pub(crate) fn new(work: impl FnOnce(&mut T) + Send + 'static) -> Self {
        Self(Box::new(work))
    }

    pub(crate) fn run(self, thread: &mut T) {
        (self.0)(thread);
    }
}

impl<T> fmt::Debug for Errand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Errand(..)")
    }
}
