//! Whether an id may be among those that memory has no room for.

/// Bits for each key: about one in a hundred others is taken for one of them.
const KEY_BITS: usize = 10;
/// Bits that are set for each key, in one block.
const HASHES: u32 = 6;
/// The words of a block: what the processor fetches at once.
const BLOCK_WORDS: usize = 8;

/// A blocked Bloom filter over the beginnings of ids.
#[derive(Debug)]
pub(super) struct BloomFilter {
    blocks: Vec<[u64; BLOCK_WORDS]>,
    keys: usize,
}

impl BloomFilter {
    /// An empty one, for so many keys.
    pub(super) fn with_room(keys: usize) -> Self {
        let blocks = (keys * KEY_BITS).div_ceil(BLOCK_WORDS * 64);
        Self { blocks: vec![[0; BLOCK_WORDS]; blocks], keys: 0 }
    }

    /// How many keys are in it.
    pub(super) fn len(&self) -> usize {
        self.keys
    }

    pub(super) fn insert(&mut self, prefix: u32) {
        let (block, bits) = self.place(prefix);
        if let Some(block) = self.blocks.get_mut(block) {
            self.keys += 1;
            bits.for_each(|bit| block[bit / 64] |= 1 << (bit % 64));
        }
    }

    /// Whether a key that begins like this may be in it; never `false` for one that is.
    pub(super) fn may_have(&self, prefix: u32) -> bool {
        let (block, mut bits) = self.place(prefix);
        let block = self.blocks.get(block);
        block.is_some_and(|block| bits.all(|bit| block[bit / 64] >> (bit % 64) & 1 == 1))
    }

    /// The block of a key, and its bits in that block.
    fn place(&self, prefix: u32) -> (usize, impl Iterator<Item = usize> + use<>) {
        // The finisher of SplitMix64: each bit of the prefix changes half of the others.
        let mut hash = u64::from(prefix).wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        let blocks = u64::try_from(self.blocks.len()).unwrap_or(u64::MAX);
        let block = usize::try_from((u64::from(prefix) * blocks) >> 32).unwrap_or(0);
        let bits = (0..HASHES).map(move |n| usize::try_from(hash >> (n * 9) & 511).unwrap_or(0));
        (block, bits)
    }
}
