//! Claims, acts, keeps the answer, and refuses what comes meanwhile.

use crate::{Conduct, Species};
use std::sync::Arc;

pub(super) const SPECIES: Species = Species::correct("honest", || Arc::new(Honest));

#[derive(Debug)]
struct Honest;

impl Conduct for Honest {}
