//! Who wants which events, and from when on.

use super::event::{InvalidEvent, named};
use crate::limits::DESTINATION_TOPICS_MAX;

/// Somewhere events are sent, with progress of its own.
///
/// ```
/// use hapax_core::outbox::{Destination, Topics};
///
/// let mailer = Destination::new("mailer", Topics::parse(["orders.*"])?)?;
/// assert!(mailer.topics().wants("orders.placed"));
/// # Ok::<(), hapax_core::outbox::InvalidDestination>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    name: String,
    topics: Topics,
}

impl Destination {
    /// A destination of this name: 1 to 255 bytes of text.
    pub fn new(name: impl Into<String>, topics: Topics) -> Result<Self, InvalidDestination> {
        let name = name.into();
        named("name", &name).map_err(InvalidDestination::Name)?;
        Ok(Self { name, topics })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it wants.
    pub fn topics(&self) -> &Topics {
        &self.topics
    }
}

/// Which topics a destination wants.
///
/// ```
/// use hapax_core::outbox::Topics;
///
/// let topics = Topics::parse(["orders.*", "payments.made"])?;
/// assert!(topics.wants("orders.placed") && !topics.wants("payments.refunded"));
/// assert!(Topics::parse(["*.placed"]).is_err());
/// # Ok::<(), hapax_core::outbox::InvalidDestination>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topics {
    patterns: Vec<String>,
}

impl Topics {
    /// Every topic there is and will be.
    pub fn all() -> Self {
        Self { patterns: vec!["*".to_owned()] }
    }

    /// Those that match one of these: a topic's name, `orders.*` for all that begin with `orders.`,
    /// or `*` for all.
    pub fn parse<T: Into<String>>(
        patterns: impl IntoIterator<Item = T>,
    ) -> Result<Self, InvalidDestination> {
        let patterns: Vec<String> = patterns.into_iter().map(Into::into).collect();
        if patterns.is_empty() || patterns.len() > DESTINATION_TOPICS_MAX {
            return Err(InvalidDestination::Topics { count: patterns.len() });
        }
        for pattern in &patterns {
            named("topic", pattern).map_err(InvalidDestination::Name)?;
            let stars = pattern.matches('*').count();
            let star_at_end = pattern == "*" || pattern.ends_with(".*");
            if stars > 1 || (stars == 1 && !star_at_end) {
                return Err(InvalidDestination::Star { pattern: pattern.clone() });
            }
        }
        Ok(Self { patterns })
    }

    /// Whether this topic is wanted.
    pub fn wants(&self, topic: &str) -> bool {
        self.exact().any(|name| name == topic)
            || self.prefixes().any(|prefix| topic.starts_with(prefix))
    }

    /// The patterns, as they were given.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// The names among the patterns.
    pub fn exact(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().map(String::as_str).filter(|pattern| !pattern.ends_with('*'))
    }

    /// The beginnings among the patterns; the empty one begins everything.
    pub fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().filter_map(|pattern| pattern.strip_suffix('*'))
    }
}

/// Where a new destination begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the oldest event that is still kept.
    Beginning,
    /// After every position given out so far: what a transaction wrote that is open at this
    /// instant may be passed over.
    Now,
}

/// Why a destination was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDestination {
    /// Its name, or one of its topics, is empty or too long.
    #[error("a destination cannot be called that")]
    Name(#[source] InvalidEvent),
    /// It names no topic, or too many.
    #[error("it names {count} topics; give 1 to {DESTINATION_TOPICS_MAX}")]
    Topics {
        /// How many.
        count: usize,
    },
    /// A star stands where none can.
    #[error("`{pattern}` is not a topic: a star stands alone, or at the end after a dot")]
    Star {
        /// What was given.
        pattern: String,
    },
}
