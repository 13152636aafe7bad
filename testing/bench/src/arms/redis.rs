//! The usual hand-written way on Redis: `SET NX` claims the key, a second `SET` keeps the result.
//!
//! All callers share one connection, as clients that multiplex do, and the value begins with a hash
//! that tells requests apart. There is no fence: whoever comes late writes over a later result.

use hapax_services::redis::RedisServer;

use super::{
    Arm, EffectCounter, StoredCount,
    resp::{RedisError, Reply, RespClient},
};
use crate::{
    error::BenchError,
    request::{self, SCOPE, TENANT},
};

/// How long a claim without a result blocks its key, in milliseconds.
const LEASE_MS: &[u8] = b"30000";
/// How long results are kept, in milliseconds.
const KEPT_MS: &[u8] = b"86400000";

/// Counts the keys that hold a whole result, and all keys.
const COUNT: &[u8] = b"local next, completed = '0', 0
repeat
    local page = redis.call('SCAN', next, 'COUNT', 1000)
    next = page[1]
    for _, key in ipairs(page[2]) do
        if redis.call('GETRANGE', key, 0, 0) == 'c' and redis.call('STRLEN', key) == tonumber(ARGV[1]) then
            completed = completed + 1
        end
    end
until next == '0'
return {completed, redis.call('DBSIZE')}";

pub(crate) struct RedisArm {
    client: RespClient,
    pid: u32,
    answer: Vec<u8>,
    effects: EffectCounter,
}

impl RedisArm {
    pub(crate) async fn connect(server: &RedisServer) -> Result<Self, BenchError> {
        Ok(Self {
            client: RespClient::connect(server.address()).await?,
            pid: server.pid(),
            answer: request::answer(),
            effects: EffectCounter::default(),
        })
    }

    /// Whether the key was set.
    async fn set(&self, words: [&[u8]; 4]) -> Result<bool, BenchError> {
        let [key, value, condition, kept_ms] = words;
        match self.client.ask(&[b"SET", key, value, condition, b"PX", kept_ms]).await? {
            Reply::Ok => Ok(true),
            Reply::Nothing => Ok(false),
            other @ (Reply::Numbers(_) | Reply::Refused(_)) => Err(unexpected(&other)),
        }
    }
}

impl Arm for RedisArm {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        let key = format!("{TENANT}/{SCOPE}/{}", request::key(number));
        let hash = request::hash(number);
        let running = format!("r{hash:016x}");
        if !self.set([key.as_bytes(), running.as_bytes(), b"NX", LEASE_MS]).await? {
            return Err(BenchError::NotFresh { found: "a value" });
        }
        self.effects.happened();
        let mut completed = format!("c{hash:016x}").into_bytes();
        completed.extend_from_slice(&self.answer);
        if !self.set([key.as_bytes(), &completed, b"XX", KEPT_MS]).await? {
            return Err(RedisError::Unexpected { found: "that a claim was lost".to_owned() }.into());
        }
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let bytes = (1 + 16 + self.answer.len()).to_string();
        let counted = self.client.ask(&[b"EVAL", COUNT, b"0", bytes.as_bytes()]).await?;
        match &counted {
            Reply::Numbers(numbers) if numbers.len() == 2 => {
                let (completed, all) = (numbers[0], numbers[1]);
                Ok(StoredCount { completed, others: all.saturating_sub(completed) })
            }
            Reply::Ok | Reply::Nothing | Reply::Numbers(_) | Reply::Refused(_) => {
                Err(unexpected(&counted))
            }
        }
    }

    fn server(&self) -> Option<u32> {
        Some(self.pid)
    }
}

fn unexpected(reply: &Reply) -> BenchError {
    RedisError::Unexpected { found: format!("{reply:?}") }.into()
}
