//! What is counted, and what is not.

use std::hint::black_box;

/// Rounds before those that are counted: what is made once is made then.
pub(crate) const WARM_UP: usize = 16;

/// Instructions are counted in here and nowhere else: `cargo xtask bench-guard` knows its name.
///
/// It is neither generic nor inlined, so that it is one function with this one name.
#[inline(never)]
pub(crate) fn counted(work: &mut dyn FnMut()) {
    work();
}

/// Does `work` once for each of `rounds` inputs, which are made before anything is counted.
pub(crate) fn each<I, O>(
    rounds: usize,
    mut input: impl FnMut(usize) -> I,
    mut work: impl FnMut(I) -> O,
) {
    for at in 0..WARM_UP {
        black_box(work(black_box(input(at))));
    }
    let mut inputs: Vec<_> = (WARM_UP..WARM_UP + rounds).map(input).collect();
    counted(&mut || {
        for input in inputs.drain(..) {
            black_box(work(black_box(input)));
        }
    });
}
